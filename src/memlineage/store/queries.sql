-- Every read of lineage is batched: ids come in as one carray, answers in one result.

-- name: nodes
SELECT v.n, v.u, v.version, v.g, v.form, u.current = v.n, coalesce(l.winner, 0), v.integrity, v.creator, v.ts_us,
       v.seq, coalesce(a.c, 0), EXISTS (SELECT 1 FROM verdict d WHERE d.older = v.n)
FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u
LEFT JOIN lost l ON l.n = v.n LEFT JOIN alike a ON a.n = v.n;

-- name: supports
SELECT e.child, e.justification, e.parent, e.weight, e.role
FROM carray(?1) c JOIN edge e ON e.child = c.value
ORDER BY e.child, e.justification, e.parent;

-- name: strong_children
SELECT DISTINCT e.child FROM carray(?1) c JOIN edge e ON e.parent = c.value
WHERE e.weight >= 500000 AND e.role IN (0, 2, 3, 4) LIMIT ?2;

-- name: said_before  (pairs of older versions whose condition is read off these)
SELECT d.older, d.newer FROM carray(?1) c JOIN verdict d ON d.newer = c.value;

-- name: verdicts
SELECT d.older, d.newer FROM carray(?1) c JOIN verdict d ON d.older = c.value;

-- name: classes  (which of these are in a class of versions that say the same)
SELECT a.c, a.n FROM carray(?1) c JOIN alike a ON a.n = c.value ORDER BY a.c, a.n;

-- name: class_members
SELECT n FROM alike WHERE c = ?1 ORDER BY n;

-- name: class_members_back
SELECT n FROM alike WHERE c = ?1 ORDER BY n DESC;

-- name: put_alike
INSERT OR IGNORE INTO alike (n, c) VALUES (?, ?);

-- name: one_block
SELECT codes FROM state WHERE b = ?1;

-- name: blocks
SELECT s.b, s.codes FROM carray(?1) c JOIN state s ON s.b = c.value;

-- name: blocks_between
SELECT b, codes FROM state WHERE b BETWEEN ?1 AND ?2;

-- name: put_block
INSERT INTO state (b, codes) VALUES (?1, ?2) ON CONFLICT (b) DO UPDATE SET codes = ?2;

-- name: drop_blocks
DELETE FROM state WHERE b IN (SELECT value FROM carray(?1));

-- name: members
SELECT v.g, v.n FROM carray(?1) c JOIN version v ON v.g = c.value AND v.g <> 0 JOIN unit u ON u.u = v.u
WHERE u.current = v.n ORDER BY v.g, v.n;

-- name: hops_up
SELECT e.child, e.parent, e.justification, e.role, e.weight FROM carray(?1) c JOIN edge e ON e.child = c.value;

-- name: hops_down
SELECT e.child, e.parent, e.justification, e.role, e.weight FROM carray(?1) c JOIN edge e ON e.parent = c.value;

-- name: ways_down  (children of these, over roles whose bits are set)
SELECT DISTINCT e.child, e.parent FROM carray(?1) c JOIN edge e ON e.parent = c.value WHERE (1 << e.role) & ?2;

-- name: any_hub  (whether one of these has more than so many edges down)
SELECT EXISTS (SELECT 1 FROM carray(?1) c
               WHERE EXISTS (SELECT 1 FROM edge e WHERE e.parent = c.value LIMIT 1 OFFSET ?2));

-- name: children_after  (the same of one version, a page at a time)
SELECT DISTINCT e.child FROM edge e WHERE e.parent = ?1 AND e.child > ?2 AND (1 << e.role) & ?3
ORDER BY e.child LIMIT ?4;

-- name: written
SELECT v.n, v.creator, v.actor, v.integrity,
       coalesce((SELECT max(x.level) FROM endorsement x
                 WHERE x.n = v.n AND x.action IS NULL AND x.expires_us IS NULL), 0)
FROM carray(?1) c JOIN version v ON v.n = c.value;

-- name: written_edges
SELECT e.child, e.parent, e.role FROM carray(?1) c JOIN edge e ON e.child = c.value WHERE e.justification = 0;

-- name: written_children
SELECT e.parent, e.child FROM carray(?1) c JOIN edge e ON e.parent = c.value WHERE e.justification = 0;

-- name: confidences
SELECT v.confidence FROM carray(?1) c JOIN version v ON v.n = c.value;

-- name: voices  (who said these, how sure, and when)
SELECT v.n, v.creator, v.actor, v.confidence, v.ts_us FROM carray(?1) c JOIN version v ON v.n = c.value;

-- name: corroborated  (how many justifications came later)
SELECT e.child, count(DISTINCT e.justification) FROM carray(?1) c JOIN edge e ON e.child = c.value
WHERE e.justification > 0 GROUP BY e.child;

-- name: corroborated_at_all
SELECT DISTINCT child FROM edge WHERE justification > 0;

-- name: by_principal
SELECT n FROM version WHERE creator = ?1 OR actor = ?1;

-- name: due  (versions whose time has run out and of which no event says so yet)
SELECT v.n FROM version v
WHERE v.valid_until <= ?1 AND v.valid_until IS NOT NULL AND v.waived = 0
  AND NOT EXISTS (SELECT 1 FROM cause c WHERE c.n = v.n AND c.kind = 5 AND c.lifted IS NULL);

-- name: units
SELECT v.n, u.id, v.version, v.content, v.kind, v.tags, v.subject, v.key, v.w, v.creator, v.actor, v.owner,
       v.creator_id, v.ts_us, v.ts_offset, v.recorded_us, v.seq, v.confidence, v.pinned, v.metadata,
       v.expires_us, v.valid_to_us, v.valid_until, v.context, v.recipe, v.reasserts, v.integrity, v.waived,
       coalesce((SELECT min(later.ts_us) FROM version later WHERE later.u = v.u AND later.version > v.version
                   AND NOT EXISTS (SELECT 1 FROM cause q WHERE q.n = later.n AND q.kind = 3 AND q.lifted IS NULL)),
                (SELECT took.ts_us FROM lost l JOIN version took ON took.n = l.winner
                 WHERE l.n = v.n AND took.ts_us > v.ts_us)),
       v.mask
FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u;

-- name: unit_edges
SELECT e.child, e.justification, e.parent, e.role, e.weight, u.id, v.version
FROM carray(?1) c JOIN edge e ON e.child = c.value JOIN version v ON v.n = e.parent JOIN unit u ON u.u = v.u
ORDER BY e.child, e.justification, e.parent, e.role;

-- name: unit_causes
SELECT x.n, x.seq, x.kind, x.by, x.reason, x.at_us
FROM carray(?1) c JOIN cause x ON x.n = c.value WHERE x.lifted IS NULL ORDER BY x.n, x.seq;

-- name: refs
SELECT v.n, u.id, v.version FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u;

-- name: find_current
SELECT u.current, u.u, u.w, u.latest FROM unit u WHERE u.id = ?1;

-- name: find_version
SELECT v.n, u.u, u.w, u.latest FROM unit u JOIN version v ON v.u = u.u WHERE u.id = ?1 AND v.version = ?2;

-- name: recipes_of  (versions that recipes made of one, with the call that each keeps)
SELECT DISTINCT v.n, v.recipe FROM edge e JOIN version v ON v.n = e.child
WHERE e.parent = ?1 AND e.justification = 0 AND v.recipe IS NOT NULL ORDER BY v.n;

-- name: unit_versions
SELECT n, version FROM version WHERE u = ?1 ORDER BY version;

-- name: replaced_by  (of these versions, those that a bare id does not mean, with the one that it does)
SELECT v.n, u.current FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u WHERE u.current <> v.n;

-- name: current_of  (per version: its unit, and what a bare id of that means)
SELECT v.n, v.u, u.current FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u ORDER BY v.n;

-- name: vectors_of
SELECT v.n, v.vector FROM carray(?1) c JOIN version v ON v.n = c.value WHERE v.vector IS NOT NULL;

-- name: active_causes
SELECT kind, seq, by, at_us FROM cause WHERE n = ?1 AND lifted IS NULL ORDER BY seq;

-- name: causes_awaiting  (what is held against a version, and whether that ends by itself once others say the same)
SELECT c.seq, EXISTS (SELECT 1 FROM awaiting a WHERE a.n = c.n AND a.cause = c.seq)
FROM cause c WHERE c.n = ?1 AND c.lifted IS NULL;

-- name: awaited  (which of these wait for what, and by which cause)
SELECT a.n, a.name, a.cause FROM carray(?1) i JOIN awaiting a ON a.n = i.value
JOIN cause c ON c.n = a.n AND c.seq = a.cause WHERE c.lifted IS NULL;

-- name: awaited_forms  (what is said by whatever waits)
SELECT DISTINCT v.form, v.content, v.kind FROM awaiting a JOIN cause c ON c.n = a.n AND c.seq = a.cause
JOIN version v ON v.n = a.n WHERE v.content IS NOT NULL AND c.lifted IS NULL;

-- name: checked_of  (when versions were last held against the source of a check)
SELECT n, at_us FROM checked WHERE name = ?1 AND n > 0;

-- name: put_checked
INSERT OR REPLACE INTO checked (name, n, at_us, verdict) VALUES (?, ?, ?, ?);

-- name: check_lease
SELECT at_us, verdict FROM checked WHERE name = ?1 AND n = 0;

-- name: end_check_lease
DELETE FROM checked WHERE name = ?1 AND n = 0 AND verdict = ?2;

-- name: current_versions
SELECT current FROM unit ORDER BY u;

-- name: labels_of  (the current version of a unit)
SELECT v.kind, v.tags, v.subject, v.key FROM unit u JOIN version v ON v.n = u.current WHERE u.id = ?1;

-- name: said  (same normal form: from the index alone)
SELECT v.form, v.n, v.ns FROM carray(?1) c JOIN version v ON v.form = c.value;

-- name: said_once
SELECT n, ns FROM version WHERE form = ?1;

-- name: claims  (what these are about, unless erased)
SELECT v.n, v.u, u.id, v.version, v.subject, v.key
FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u
WHERE v.content IS NOT NULL ORDER BY v.n DESC;

-- name: levels
SELECT v.n, v.integrity FROM carray(?1) c JOIN version v ON v.n = c.value;

-- name: place_of
SELECT v.n, u.u, u.w FROM unit u JOIN version v ON v.u = u.u WHERE u.id = ?1 AND v.version = ?2;

-- name: retried
SELECT v.n, v.form, v.creator, u.id, v.version, v.w FROM version v JOIN unit u ON u.u = v.u
WHERE v.ns = ?1 AND v.retry = ?2;

-- name: forms_of
SELECT v.form, v.kind FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ?1 AND v.content IS NOT NULL;

-- name: put_lost
INSERT INTO lost (n, winner) VALUES (?1, ?2) ON CONFLICT (n) DO UPDATE SET winner = ?2;

-- name: drop_lost
DELETE FROM lost WHERE n IN (SELECT value FROM carray(?1));

-- name: put_event
INSERT INTO event (seq, ts_us, kind, data, leaf) VALUES (?, ?, ?, ?, ?);

-- name: put_version
INSERT INTO version (n, u, version, w, ns, seq, content, form, kind, tags, subject, key, g, creator, actor, owner,
    creator_id, ts_us, ts_offset, recorded_us, confidence, pinned, metadata, expires_us, valid_to_us, valid_until,
    context, recipe, reasserts, retry, salt, integrity, vector, mask)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_mask
UPDATE version SET mask = ?2 WHERE n = ?1 AND content IS NOT NULL AND mask IS NOT ?2;

-- name: put_unit  (with its first version)
INSERT INTO unit (u, id, w, latest, current) VALUES (?, ?, ?, 1, ?);

-- name: put_text
INSERT INTO text (rowid, ns, terms) VALUES (?, ?, ?);

-- name: put_edge
INSERT INTO edge (child, justification, parent, role, weight) VALUES (?, ?, ?, ?, ?);

-- name: put_cause
INSERT INTO cause (seq, n, kind, by, reason, salt, at_us) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: deletable
SELECT v.n FROM version v CROSS JOIN unit u ON u.u = v.u AND u.current = v.n
WHERE v.ns = ?1 AND v.kind NOT IN ('verification', 'action', 'approval', 'resolution')
  AND NOT EXISTS (SELECT 1 FROM cause c WHERE c.n = v.n AND c.kind IN (1, 4) AND c.lifted IS NULL)
ORDER BY v.n;

-- name: actions_among  (as they ended, not as they began)
SELECT v.n FROM carray(?1) c CROSS JOIN version v ON v.n = c.value CROSS JOIN unit u ON u.u = v.u AND u.current = v.n
WHERE v.kind = 'action' ORDER BY v.n;

-- name: contested  (groups of a namespace in which something lost its key)
SELECT DISTINCT v.g, v.subject, v.key FROM version v CROSS JOIN lost l ON l.n = v.n WHERE v.ns = ?1;

-- name: find_contest
SELECT g FROM contest WHERE identity = ?1;

-- name: both_hold  (of these versions, those that somebody said hold together, and the unit that says so)
SELECT e.child, e.parent FROM carray(?1) c JOIN edge e ON e.parent = c.value JOIN version v ON v.n = e.child
WHERE v.kind = 'resolution' AND v.creator_id = 'both';

-- name: walls_of
SELECT v.n, v.w FROM carray(?1) c JOIN version v ON v.n = c.value ORDER BY v.n;

-- name: said_between  (not invalid yet)
SELECT v.n FROM version v
WHERE v.n IN (SELECT n FROM version WHERE creator = (SELECT p FROM principal WHERE name = ?1))
  AND v.ts_us >= ?2 AND v.ts_us < ?3
  AND NOT EXISTS (SELECT 1 FROM cause c WHERE c.n = v.n AND c.kind IN (1, 2) AND c.lifted IS NULL) ORDER BY v.n;

-- name: columns  (what a search keeps of the versions of a namespace)
SELECT v.n, v.vector, v.w, v.kind IN ('verification', 'approval', 'resolution'), v.kind IN ('constraint', 'goal', 'preference'),
       d.sz, v.recorded_us, v.confidence, v.pinned
FROM version v LEFT JOIN text_docsize d ON d.id = v.n WHERE v.ns = ?1 AND v.n > ?2 ORDER BY v.n;

-- name: walls
SELECT w, tenant, user, agent, session, visibility FROM carray(?1) c JOIN wall ON w = c.value;

-- name: ways_up  (of the versions of a namespace)
SELECT e.child, e.parent, e.justification FROM version v JOIN edge e ON e.child = v.n
WHERE v.ns = ?1 AND v.n > ?2 AND e.role <> 5 ORDER BY v.n;

-- name: foreign_children  (how many children others wrote, by version of a namespace)
SELECT p.n, count(DISTINCT e.child) FROM version p JOIN edge e ON e.parent = p.n JOIN version k ON k.n = e.child
WHERE p.ns = ?1 AND p.n > ?2 AND e.role <> 5 AND k.creator <> p.creator GROUP BY p.n;

-- name: children_since  (the same of versions written after ?1, by parent wherever it stands)
SELECT p.ns, p.n, count(DISTINCT e.child) FROM edge e JOIN version p ON p.n = e.parent JOIN version k ON k.n = e.child
WHERE e.child > ?1 AND e.role <> 5 AND k.creator <> p.creator GROUP BY p.n;

-- name: justified_since  (justifications that were added after an event)
SELECT data FROM event WHERE seq > ?1 AND kind = 4;

-- name: children_by  (parents that one late justification gave a child by somebody else for the first time)
SELECT p.ns, p.n FROM edge e JOIN version p ON p.n = e.parent JOIN version k ON k.n = e.child
WHERE e.child = ?1 AND e.justification = ?2 AND e.role <> 5 AND k.creator <> p.creator
  AND NOT EXISTS (SELECT 1 FROM edge f WHERE f.child = ?1 AND f.justification < ?2 AND f.parent = e.parent AND f.role <> 5)
GROUP BY p.n;

-- name: namespaces_of
SELECT v.ns, v.n FROM carray(?1) c JOIN version v ON v.n = c.value;

-- name: steps_down
SELECT DISTINCT e.child FROM carray(?1) c JOIN edge e ON e.parent = c.value WHERE e.role <> 5;

-- name: current_among
SELECT v.n FROM carray(?1) c JOIN version v ON v.n = c.value JOIN unit u ON u.u = v.u WHERE u.current = v.n ORDER BY v.n;

-- name: searched  (the moment a snapshot shows, in the terms of what is derived from it)
SELECT (SELECT coalesce(max(seq), 0) FROM event), (SELECT coalesce(max(n), 0) FROM version),
       (SELECT block FROM text_data WHERE id = 1);

-- name: term_rows  (where a term stands after a version, and how well it matches there)
SELECT rowid, bm25(text, 0.0, 1.0) FROM text WHERE text MATCH ?1 AND rowid > ?2;

-- name: term_count
SELECT count(*) FROM text WHERE text MATCH ?1 AND rowid > ?2;

-- name: latest_parents
SELECT e.child, max(e.parent) FROM carray(?1) c JOIN edge e ON e.child = c.value WHERE e.role <> 5 GROUP BY e.child;

-- name: steps_up
SELECT e.child, e.parent FROM carray(?1) c JOIN edge e ON e.child = c.value WHERE e.role <> 5;

-- name: vouched  (endorsements in force at an instant, unbound or bound to one action)
SELECT x.n, x.level, x.action, x.seq FROM carray(?1) c JOIN endorsement x ON x.n = c.value
WHERE (x.expires_us IS NULL OR x.expires_us > ?2) AND (x.action IS NULL OR x.action = ?3);

-- name: actions_since
SELECT n FROM version
WHERE kind IN ('action', 'approval') AND kind = 'action' AND creator_id = ?1 AND seq > ?2 ORDER BY n;

-- name: approvals  (of one action, not used by it yet)
SELECT v.n FROM version v CROSS JOIN unit u ON u.u = v.u AND u.current = v.n
WHERE v.kind IN ('action', 'approval') AND v.kind = 'approval' AND v.ns = ?1 AND v.creator_id = ?2
  AND NOT EXISTS (SELECT 1 FROM edge e JOIN version a ON a.n = e.child
                  WHERE e.parent = v.n AND e.role = 0 AND a.kind = 'action')
ORDER BY v.n;

-- name: ended_by_time  (the one cause that time itself recorded)
SELECT c.n, max(c.seq) FROM cause c JOIN principal p ON p.p = c.by
WHERE c.kind = 5 AND c.lifted IS NULL AND c.reason IS NULL AND p.name = 'system' GROUP BY c.n;

-- name: context_of
SELECT c.body FROM version v JOIN context c ON c.hash = v.context WHERE v.n = ?1;

-- name: index_unit_of  (for the arrays of store/index.py: two numbers in one)
SELECT (n << 31) | u FROM version ORDER BY u, version;

-- name: index_group_of
SELECT (n << 31) | g FROM version WHERE g <> 0 ORDER BY g, n;

-- name: index_versions
SELECT n, u, g FROM version WHERE n > ?1 AND n <= ?2 ORDER BY n;

-- name: index_edges  (edges that versions were written with; the last bit says whether standing is carried)
SELECT (child << 32) | (parent << 1) | (weight >= 500000 AND role IN (0, 2, 3, 4)) FROM edge
WHERE child > ?1 AND child <= ?2 AND justification = 0 AND role <> 5 ORDER BY child;

-- name: index_late  (edges of later justifications; parents below 0 do not carry standing)
SELECT child, justification, CASE WHEN weight >= 500000 AND role IN (0, 2, 3, 4) THEN parent WHEN role = 5 THEN 0 ELSE -parent END
FROM edge WHERE justification > 0;

-- name: index_late_of
SELECT child, justification, CASE WHEN weight >= 500000 AND role IN (0, 2, 3, 4) THEN parent WHEN role = 5 THEN 0 ELSE -parent END
FROM edge WHERE child = ?1 AND justification = ?2;

-- name: index_justified  (justifications added after one event, up to another)
SELECT seq, data FROM event WHERE seq > ?1 AND seq <= ?2 AND kind = 4;

-- name: index_alike
SELECT (n << 31) | c FROM alike WHERE n > ?1 AND n <= ?2;

-- name: index_judged
SELECT (older << 31) | newer FROM verdict WHERE newer > ?1 AND newer <= ?2 ORDER BY newer;

-- name: index_actions
SELECT n FROM version WHERE kind = 'action' AND n > ?1 AND n <= ?2 ORDER BY n;

-- name: index_all_actions  (versions are wide: the index knows which are looked for)
SELECT n FROM version INDEXED BY version_action
WHERE kind IN ('action', 'approval') AND kind = 'action' AND n <= ?1 ORDER BY n;

-- name: put_task
INSERT INTO task (n, at_us, decision, asked) VALUES (?, ?, ?, ?);

-- name: tasks_span  (how many wait, or somewhat more: they are taken from the front)
SELECT coalesce((SELECT max(t) FROM task) - (SELECT min(t) FROM task) + 1, 0);

-- name: free_tasks
SELECT t, n, decision, asked, holder, failed FROM task WHERE until_us <= ?1 ORDER BY t LIMIT ?2;

-- name: lease_task
UPDATE task SET holder = ?2, until_us = ?3, failed = failed + 1 WHERE t = ?1;

-- name: drop_task
DELETE FROM task WHERE t = ?;

-- name: put_finding
INSERT OR REPLACE INTO finding (n, rule, mark, at_us, decision) VALUES (?, ?, ?, ?, ?);

-- name: findings_of
SELECT rule, mark FROM finding WHERE n = ? ORDER BY rule;

-- name: version_before
SELECT o.n FROM version v JOIN version o ON o.u = v.u AND o.version = v.version - 1 WHERE v.n = ?;

-- name: subscriptions
SELECT s, name, owner, kinds, at_us FROM subscription ORDER BY s;

-- name: subscribed_owners
SELECT DISTINCT p.name FROM subscription s CROSS JOIN principal p ON p.p = s.owner;

-- name: put_subscription
INSERT INTO subscription (name, owner, kinds, at_us) VALUES (?, ?, ?, ?);

-- name: fresh_versions  (written from a version on, with what owners are told by)
SELECT n, owner, creator, version, kind FROM version WHERE n >= ?1 ORDER BY n;

-- name: owned_among
SELECT v.n FROM carray(?1) c CROSS JOIN version v ON v.n = c.value WHERE v.owner = ?2 ORDER BY v.n;

-- name: put_notice
INSERT INTO notice (s, seq, at_us, kind, n, said) VALUES (?, ?, ?, ?, ?, ?);

-- name: first_notice  (that one subscription waits for: what was given up does not hold up what came after it)
SELECT o, seq, at_us, kind, n, said, until_us, failed FROM notice
WHERE s = ?1 AND NOT (failed >= ?2 AND until_us <= ?3) ORDER BY o LIMIT 1;

-- name: lease_notice
UPDATE notice SET holder = ?2, until_us = ?3, failed = failed + 1 WHERE o = ?1;

-- name: keep_notice  (for as long as whoever has it is at it)
UPDATE notice SET until_us = ?3 WHERE o = ?1 AND holder = ?2;

-- name: drop_notice
DELETE FROM notice WHERE o = ?1 AND holder = ?2;

-- name: fail_notice
UPDATE notice SET holder = NULL, until_us = ?3, error = ?4 WHERE o = ?1 AND holder = ?2;

-- name: notices
SELECT o, s, seq, at_us, kind, n, said, holder, until_us, failed, error FROM notice ORDER BY o;

-- name: notices_waiting
SELECT count(*) FROM notice WHERE s = ?1;

-- name: try_notices_again  (those of one subscription that were given up)
UPDATE notice SET failed = 0, until_us = 0, holder = NULL WHERE s = ?1 AND failed >= ?2 AND until_us <= ?3;

-- name: events_between  (the first of those that an act wrote)
SELECT seq, kind, data FROM event WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3;

-- name: reason_of  (why a cause was added)
SELECT reason FROM cause WHERE n = ?1 AND seq = ?2;

-- name: owners_and_places  (of versions: whose they are, and in which namespace)
SELECT v.n, v.owner, v.ns FROM carray(?1) c CROSS JOIN version v ON v.n = c.value;

-- name: acted  (versions of actions and approvals: from the index alone)
SELECT n FROM version INDEXED BY version_action WHERE kind IN ('action', 'approval') ORDER BY n;

-- name: compensating  (of actions: the records, as they stand, of what was done to undo them)
SELECT e.parent, v.n FROM carray(?1) c CROSS JOIN edge e ON e.parent = c.value CROSS JOIN version v ON v.n = e.child
CROSS JOIN unit u ON u.u = v.u AND u.current = v.n
WHERE v.kind = 'action' AND e.role = 0 ORDER BY e.parent, v.n;
