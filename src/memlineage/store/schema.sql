-- One file, one transaction per operation. What is marked DERIVED can be recomputed from the rest and is
-- checked that way; everything else is committed to by the event that wrote it (semantics.md, section 7).

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- The ledger. `data` is the canonical bytes, `leaf` their RFC 6962 leaf hash.
CREATE TABLE event (
    seq   INTEGER PRIMARY KEY,
    ts_us INTEGER NOT NULL,
    kind  INTEGER NOT NULL,
    data  BLOB NOT NULL,
    leaf  BLOB NOT NULL
) STRICT;

-- Names of principals, once each. `level` is what was registered, NULL where nothing was.
CREATE TABLE principal (
    p     INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE,
    level INTEGER,
    verifier INTEGER NOT NULL DEFAULT 0,
    salt  BLOB NOT NULL
) STRICT;

-- Whose memory: one row per tenant and user, or per tenant and agent for an agent's own.
CREATE TABLE namespace (
    ns     INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    user   TEXT,
    agent  TEXT
) STRICT;
CREATE UNIQUE INDEX namespace_user ON namespace (tenant, user) WHERE user IS NOT NULL;
CREATE UNIQUE INDEX namespace_agent ON namespace (tenant, agent) WHERE user IS NULL;

CREATE TABLE wall (
    w          INTEGER PRIMARY KEY,
    ns         INTEGER NOT NULL REFERENCES namespace,
    tenant     TEXT NOT NULL,
    user       TEXT,
    agent      TEXT,
    session    TEXT,
    visibility TEXT NOT NULL,
    identity   TEXT NOT NULL UNIQUE   -- the five fields above as JSON: NULL and '' stay apart
) STRICT;

-- What units compete in: wall group, subject and key, as JSON.
CREATE TABLE contest (
    g        INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE unit (
    u       INTEGER PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    w       INTEGER NOT NULL REFERENCES wall,
    latest  INTEGER NOT NULL,          -- highest version number
    current INTEGER NOT NULL           -- DERIVED: n of the version that a bare id means
) STRICT;

CREATE TABLE version (
    n             INTEGER PRIMARY KEY,  -- in the order of writing
    u             INTEGER NOT NULL REFERENCES unit,
    version       INTEGER NOT NULL,
    w             INTEGER NOT NULL REFERENCES wall,
    ns            INTEGER NOT NULL REFERENCES namespace,
    seq           INTEGER NOT NULL REFERENCES event,
    content       TEXT,                 -- NULL once erased
    form          BLOB NOT NULL,        -- DERIVED from content
    kind          TEXT NOT NULL,
    tags          TEXT NOT NULL,        -- sorted JSON array
    subject       TEXT,
    key           TEXT,
    g             INTEGER NOT NULL DEFAULT 0,
    creator       INTEGER NOT NULL REFERENCES principal,
    actor         INTEGER NOT NULL REFERENCES principal,
    owner         INTEGER NOT NULL REFERENCES principal,
    creator_id    TEXT,
    ts_us         INTEGER NOT NULL,
    ts_offset     INTEGER NOT NULL,
    recorded_us   INTEGER NOT NULL,
    confidence    INTEGER,              -- millionths
    pinned        INTEGER NOT NULL,
    metadata      TEXT NOT NULL,
    expires_us    INTEGER,
    valid_to_us   INTEGER,
    valid_until   INTEGER,              -- DERIVED: first instant at which it counts as expired, by policy too
    waived        INTEGER NOT NULL DEFAULT 0,
    context       BLOB,
    recipe        TEXT,
    reasserts     INTEGER,
    retry         TEXT,                 -- actor and idempotency key of the write
    salt          BLOB,                 -- of the content commitment, then of the record's; NULL once erased
    integrity     INTEGER NOT NULL,     -- DERIVED
    vector        BLOB,                 -- DERIVED from content by the store's embedder
    mask          BLOB,                 -- DERIVED: 8 bytes of a policy revision, then a bit for each of its rules that
                                        -- may matter for this version (policy/fast/fields.py); NULL or of another
                                        -- revision until somebody asks
    UNIQUE (u, version)
) STRICT;
-- Who said it stands here too: what a principal said is asked for seldom, and found by a walk through this index.
CREATE INDEX version_ns ON version (ns, n, creator, actor);
CREATE INDEX version_form ON version (form, ns);
CREATE UNIQUE INDEX version_retry ON version (ns, retry) WHERE retry IS NOT NULL;
CREATE INDEX version_contest ON version (g, n) WHERE g <> 0;
CREATE INDEX version_until ON version (valid_until) WHERE valid_until IS NOT NULL AND waived = 0;
CREATE INDEX version_action ON version (creator_id) WHERE kind IN ('action', 'approval');

CREATE TABLE edge (
    child         INTEGER NOT NULL,
    justification INTEGER NOT NULL,
    parent        INTEGER NOT NULL,
    role          INTEGER NOT NULL,
    weight        INTEGER NOT NULL,     -- millionths
    PRIMARY KEY (child, justification, parent, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX edge_down ON edge (parent, child, justification, role, weight);
CREATE INDEX edge_late ON edge (child) WHERE justification > 0;

-- Equivalences recorded when the newer version was written. Versions of a unit that all say the same are one class,
-- named by its first member: N equal versions are N rows. `verdict` has the pairs of a version that says the same as
-- some of a class, or as some of several.
CREATE TABLE alike (
    n INTEGER PRIMARY KEY,
    c INTEGER NOT NULL
) STRICT;
CREATE INDEX alike_class ON alike (c, n);

CREATE TABLE verdict (
    older INTEGER NOT NULL,
    newer INTEGER NOT NULL,
    PRIMARY KEY (older, newer)
) STRICT, WITHOUT ROWID;
CREATE INDEX verdict_newer ON verdict (newer, older);

CREATE TABLE cause (
    seq    INTEGER NOT NULL,            -- the event that added it, which names it
    n      INTEGER NOT NULL,
    kind   INTEGER NOT NULL,
    by     INTEGER NOT NULL REFERENCES principal,
    reason TEXT,
    salt   BLOB,
    at_us  INTEGER NOT NULL,
    lifted INTEGER,                     -- the event that removed it, why, and the salt of that reason
    lift_reason TEXT,
    lift_salt   BLOB,
    PRIMARY KEY (n, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE endorsement (
    seq        INTEGER PRIMARY KEY,
    n          INTEGER NOT NULL,
    level      INTEGER NOT NULL,
    by         INTEGER NOT NULL REFERENCES principal,
    reason     TEXT,
    salt       BLOB,
    expires_us INTEGER,
    action     TEXT                     -- hash of the one action it is bound to, which may use it once
) STRICT;
CREATE INDEX endorsement_n ON endorsement (n);

-- DERIVED: one byte per version, as packed by model/state.py, in blocks of 1024; a block without a row is all zeros.
CREATE TABLE state (
    b     INTEGER PRIMARY KEY,
    codes BLOB NOT NULL
) STRICT;

-- DERIVED: the version that took the key of this one.
CREATE TABLE lost (
    n      INTEGER PRIMARY KEY,
    winner INTEGER NOT NULL
) STRICT;

CREATE TABLE context (
    hash BLOB PRIMARY KEY,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Who is refreshing what, so that one process in all calls the tool (single flight), and how it ended.
CREATE TABLE refresh (
    u        INTEGER PRIMARY KEY,
    holder   TEXT,
    until_us INTEGER NOT NULL,
    failed   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The decision log, in the order in which it was written; only the latest are kept (engine/decisions.py).
CREATE TABLE decision (
    d      INTEGER PRIMARY KEY,
    id     TEXT NOT NULL,
    at_us  INTEGER NOT NULL,
    action TEXT NOT NULL,
    effect TEXT NOT NULL,
    ref    TEXT,
    body   BLOB NOT NULL,
    asked  BLOB                         -- what the request said, as JSON, for whoever asks why; NULL if it is kept back
) STRICT;

-- Every generation of policy that was in force, as its POLICY event names it: an old decision is explained by the rules
-- that made it.
CREATE TABLE generation (
    revision TEXT PRIMARY KEY,
    body     BLOB NOT NULL,
    seq      INTEGER NOT NULL           -- the last event that put it in force
) STRICT, WITHOUT ROWID;

-- What rules in async mode have yet to judge (engine/afterwards.py), and who is at it.
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

-- Flags that rules in async mode put on versions afterwards; `mark` tells a rule from what it was before a change.
CREATE TABLE finding (
    n        INTEGER NOT NULL,
    rule     TEXT NOT NULL,
    mark     BLOB NOT NULL,
    at_us    INTEGER NOT NULL,
    decision TEXT NOT NULL,
    PRIMARY KEY (n, rule)
) STRICT, WITHOUT ROWID;

-- Who is told what becomes of whose memories (engine/owners.py); `owner` is NULL where somebody is told of all.
CREATE TABLE subscription (
    s     INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE,
    owner INTEGER REFERENCES principal,
    kinds TEXT NOT NULL,                -- sorted JSON array
    at_us INTEGER NOT NULL
) STRICT;

-- The outbox: what subscribers have yet to be told, written with what it tells; and who is at it. `n` has the versions,
-- as JSON; `seq` is the last event of the act.
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

-- Why a unit could not be made again when that was last tried (engine/replay).
CREATE TABLE failure (
    u     INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;

-- Versions that a check on entry holds back until enough sources say so; `cause` is the event that names the cause.
CREATE TABLE awaiting (
    n     INTEGER NOT NULL,
    name  TEXT NOT NULL,
    cause INTEGER NOT NULL,
    PRIMARY KEY (n, name)
) STRICT, WITHOUT ROWID;

-- When a version was last held against a more authoritative source, and what came of it.
CREATE TABLE checked (
    name    TEXT NOT NULL,
    n       INTEGER NOT NULL,
    at_us   INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    PRIMARY KEY (name, n)
) STRICT, WITHOUT ROWID;

-- DERIVED: pre-tokenised text; `ns` holds one token that names the namespace.
CREATE VIRTUAL TABLE text USING fts5 (
    ns, terms, content='', contentless_delete=1, tokenize='porter unicode61'
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(text, 'row');
CREATE INDEX wall_ns ON wall (ns);

-- DERIVED: the hash of the i-th complete subtree of 256^level events, from level 1 on (store/tiles.py).
CREATE TABLE tile (
    level INTEGER NOT NULL,
    i     INTEGER NOT NULL,
    hash  BLOB NOT NULL,
    PRIMARY KEY (level, i)
) STRICT, WITHOUT ROWID;

-- Public keys of the ledger, each as its KEY event says. `added` and `retired` are the events that did so.
CREATE TABLE key (
    k       INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    public  BLOB NOT NULL,
    added   INTEGER NOT NULL REFERENCES event,
    retired INTEGER REFERENCES event
) STRICT;

-- What was signed: each row is what its note says, `at_us` the time of the last event that it covers.
CREATE TABLE checkpoint (
    size  INTEGER PRIMARY KEY,
    root  BLOB NOT NULL,
    note  TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;
