DROP TABLE state;
CREATE TABLE state (
    b     INTEGER PRIMARY KEY,
    codes BLOB NOT NULL
) STRICT;
CREATE TABLE lost (
    n      INTEGER PRIMARY KEY,
    winner INTEGER NOT NULL
) STRICT;
CREATE TABLE alike (
    n INTEGER PRIMARY KEY,
    c INTEGER NOT NULL
) STRICT;
CREATE INDEX alike_class ON alike (c, n);
DELETE FROM verdict;
-- A salt without a reason: nothing commits to it, so nothing could tell it from another.
UPDATE cause SET salt = NULL WHERE reason IS NULL;
UPDATE cause SET lift_salt = NULL WHERE lift_reason IS NULL;
CREATE TABLE tile (
    level INTEGER NOT NULL,
    i     INTEGER NOT NULL,
    hash  BLOB NOT NULL,
    PRIMARY KEY (level, i)
) STRICT, WITHOUT ROWID;
CREATE TABLE key (
    k       INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    public  BLOB NOT NULL,
    added   INTEGER NOT NULL REFERENCES event,
    retired INTEGER REFERENCES event
) STRICT;
CREATE TABLE checkpoint (
    size  INTEGER PRIMARY KEY,
    root  BLOB NOT NULL,
    note  TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;
DROP INDEX version_bookkeeping;
DROP INDEX version_constraint;
DROP INDEX version_creator;
DROP INDEX version_actor;
DROP INDEX version_ns;
CREATE INDEX version_ns ON version (ns, n, creator, actor);
ALTER TABLE decision RENAME TO decision_1;
CREATE TABLE decision (
    d      INTEGER PRIMARY KEY,
    id     TEXT NOT NULL,
    at_us  INTEGER NOT NULL,
    action TEXT NOT NULL,
    effect TEXT NOT NULL,
    ref    TEXT,
    body   BLOB NOT NULL
) STRICT;
INSERT INTO decision (id, at_us, action, effect, ref, body)
SELECT id, at_us, action, effect, ref, body FROM
    (SELECT * FROM decision_1 ORDER BY at_us DESC, id DESC LIMIT 100000) ORDER BY at_us, id;
DROP TABLE decision_1;
