CREATE TABLE subscription (
    s     INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE,
    owner INTEGER REFERENCES principal,
    kinds TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;
CREATE TABLE notice (
    o        INTEGER PRIMARY KEY,
    s        INTEGER NOT NULL REFERENCES subscription,
    seq      INTEGER NOT NULL,
    at_us    INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    n        BLOB NOT NULL,
    said     TEXT,
    holder   TEXT,
    until_us INTEGER NOT NULL DEFAULT 0,
    failed   INTEGER NOT NULL DEFAULT 0,
    error    TEXT
) STRICT;
CREATE INDEX notice_s ON notice (s, o);
CREATE TABLE failure (
    u     INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;
CREATE TABLE awaiting (
    n     INTEGER NOT NULL,
    name  TEXT NOT NULL,
    cause INTEGER NOT NULL,
    PRIMARY KEY (n, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE checked (
    name    TEXT NOT NULL,
    n       INTEGER NOT NULL,
    at_us   INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    PRIMARY KEY (name, n)
) STRICT, WITHOUT ROWID;
