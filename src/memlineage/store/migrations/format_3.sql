ALTER TABLE version ADD COLUMN mask BLOB;
ALTER TABLE decision ADD COLUMN asked BLOB;
CREATE TABLE generation (
    revision TEXT PRIMARY KEY,
    body     BLOB NOT NULL,
    seq      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE task (
    t        INTEGER PRIMARY KEY,
    n        INTEGER NOT NULL,
    at_us    INTEGER NOT NULL,
    decision TEXT NOT NULL,
    asked    BLOB NOT NULL,
    holder   TEXT,
    until_us INTEGER NOT NULL DEFAULT 0,
    failed   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE finding (
    n        INTEGER NOT NULL,
    rule     TEXT NOT NULL,
    mark     BLOB NOT NULL,
    at_us    INTEGER NOT NULL,
    decision TEXT NOT NULL,
    PRIMARY KEY (n, rule)
) STRICT, WITHOUT ROWID;
INSERT INTO generation (revision, body, seq)
SELECT p.value, CAST(s.value AS BLOB), (SELECT max(seq) FROM event WHERE kind = 7) FROM meta p, meta s
WHERE p.name = 'policy' AND s.name = 'policy_set';
