-- name: scope_id
SELECT id FROM scope WHERE path = :path

-- name: add_scope
INSERT INTO scope (path) VALUES (:path)

-- name: seen_scopes
SELECT id, path, change, gone FROM scope WHERE path IN (SELECT value FROM json_each(:paths))

-- name: scopes_below
-- '0' is the character behind '/', which no level may hold: the range is exactly what lies below.
SELECT id, path FROM scope
WHERE path = :path OR (path > :path || '/' AND path < :path || '0')
ORDER BY path

-- name: list_scopes
SELECT s.path FROM scope AS s
WHERE (:path IS NULL OR s.path = :path OR (s.path > :path || '/' AND s.path < :path || '0'))
    AND (:after IS NULL OR s.path > :after)
    AND EXISTS (SELECT 1 FROM node AS n WHERE n.scope = s.id)
ORDER BY s.path
LIMIT :limit

-- name: changed_scope
UPDATE scope SET change = :change, gone = CASE WHEN :gone THEN :change ELSE gone END WHERE id = :scope

-- name: counters
SELECT change, row, token, embedding_model, embedding_dimensions, purge FROM counter

-- name: count_on
UPDATE counter SET change = :change, row = :row

-- name: set_embedding
UPDATE counter SET embedding_model = :model, embedding_dimensions = :dimensions

-- name: erased_at
SELECT max(at) FROM tombstone WHERE mark IN (SELECT value FROM json_each(:marks))

-- name: held_nodes
SELECT {columns}, v.data
FROM json_each(:ids) AS j
JOIN node AS n ON n.id = j.value
JOIN scope AS s ON s.id = n.scope
LEFT JOIN vector AS v ON v.node = n.row

-- name: add_node
INSERT INTO node (
    row, id, scope, layer, status, label, content, properties, importance,
    session, turn, ref, speaker, entries, by, trust,
    asserted, updated, recorded, accessed, valid_from, valid_until, superseded, superseded_by, expires,
    access_count, activation_count, pinned, embedding_model, terms, due, event
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: change_node
UPDATE node SET
    layer = ?, status = ?, label = ?, content = ?, properties = ?, importance = ?,
    session = ?, turn = ?, ref = ?, speaker = ?, entries = ?, by = ?, trust = ?,
    asserted = ?, updated = ?, recorded = ?, accessed = ?, valid_from = ?, valid_until = ?, superseded = ?,
    superseded_by = ?, expires = ?, access_count = ?, activation_count = ?, pinned = ?, embedding_model = ?,
    terms = ?, due = ?, event = ?,
    claimed = CASE WHEN due IS ?28 AND event IS ?29 THEN claimed END
WHERE row = ?

-- name: note_revision
INSERT INTO revision (scope, node, change, searched) VALUES (:scope, :node, :change, :change)
ON CONFLICT (scope, node) DO UPDATE SET change = excluded.change, searched = excluded.searched

-- name: note_use
INSERT INTO revision (scope, node, change, searched)
SELECT :scope, row, :change, 0 FROM node WHERE id IN (SELECT value FROM json_each(:ids)) AND +scope = :scope
ON CONFLICT (scope, node) DO UPDATE SET change = excluded.change

-- name: put_vector
INSERT INTO vector (node, data) VALUES (?, ?) ON CONFLICT (node) DO UPDATE SET data = excluded.data

-- name: drop_vector
DELETE FROM vector WHERE node = ?

-- name: terms_of
SELECT scope, terms FROM node WHERE row = :row

-- name: index_terms
INSERT INTO lexeme (rowid, s, t) VALUES (?, ?, ?)

-- name: unindex_terms
INSERT INTO lexeme (lexeme, rowid, s, t) VALUES ('delete', ?, ?, ?)

-- name: get_nodes
SELECT {columns}
FROM json_each(:ids) AS j
JOIN node AS n ON n.id = j.value
JOIN scope AS s ON s.id = n.scope
WHERE s.path IN (SELECT value FROM json_each(:paths)) AND (NOT :checked OR ({visible}))
ORDER BY j.key

-- name: get_whole_nodes
SELECT {columns}, v.data
FROM json_each(:ids) AS j
JOIN node AS n ON n.id = j.value
JOIN scope AS s ON s.id = n.scope
LEFT JOIN vector AS v ON v.node = n.row
WHERE s.path IN (SELECT value FROM json_each(:paths)) AND (NOT :checked OR ({visible}))
ORDER BY j.key

-- name: get_rows
SELECT {columns}
FROM json_each(:rows) AS j
JOIN node AS n ON n.row = j.value
JOIN scope AS s ON s.id = n.scope

-- name: newest_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_updated
JOIN scope AS s ON s.id = n.scope
WHERE n.scope = :scope AND n.layer = :layer AND n.updated >= :since AND n.updated < :before
    AND {visible} AND {filtered}
ORDER BY n.updated DESC, n.id DESC
LIMIT :limit

-- name: oldest_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_updated
JOIN scope AS s ON s.id = n.scope
WHERE n.scope = :scope AND n.layer = :layer AND n.updated >= :since AND n.updated < :before
    AND {visible} AND {filtered}
ORDER BY n.updated, n.id
LIMIT :limit

-- name: sorted_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_updated
JOIN scope AS s ON s.id = n.scope
WHERE n.scope IN (SELECT value FROM json_each(:scopes))
    AND n.layer IN (SELECT value FROM json_each(:every_layer)) AND n.updated >= :since AND n.updated < :before
    AND {visible} AND {filtered}
ORDER BY {ordered}
LIMIT :limit

-- name: labelled_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_label
JOIN scope AS s ON s.id = n.scope
WHERE n.scope IN (SELECT value FROM json_each(:scopes)) AND n.label <> '' AND n.label = :label
    AND {visible} AND {filtered}
ORDER BY {ordered}
LIMIT :limit

-- name: claimed_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_claim
JOIN scope AS s ON s.id = n.scope
WHERE n.scope IN (SELECT value FROM json_each(:scopes))
    AND json_extract(n.properties, '$.attribute') = :attribute
    AND json_extract(n.properties, '$.subject') = :subject
    AND {visible} AND {filtered}
ORDER BY {ordered}
LIMIT :limit

-- name: accessed_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_accessed
JOIN scope AS s ON s.id = n.scope
WHERE n.scope IN (SELECT value FROM json_each(:scopes))
    AND n.accessed >= :used_since
    AND {visible} AND {filtered}
ORDER BY {ordered}
LIMIT :limit

-- name: expiring_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_expires
JOIN scope AS s ON s.id = n.scope
WHERE n.scope IN (SELECT value FROM json_each(:scopes))
    AND n.expires <= :expires_before
    AND {visible} AND {filtered}
ORDER BY {ordered}
LIMIT :limit

-- name: superseded_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_superseded
JOIN scope AS s ON s.id = n.scope
WHERE n.scope IN (SELECT value FROM json_each(:scopes))
    AND n.superseded < :superseded_before
    AND {visible} AND {filtered}
ORDER BY {ordered}
LIMIT :limit

-- name: place_of
SELECT n.row, s.path FROM node AS n JOIN scope AS s ON s.id = n.scope WHERE n.id = :id

-- name: subtree_nodes
SELECT {columns}, v.data
FROM node AS n INDEXED BY node_by_scope
JOIN scope AS s ON s.id = n.scope
LEFT JOIN vector AS v ON v.node = n.row
WHERE n.scope = :scope AND n.row > :behind
    AND (NOT :checked OR ({visible}))
    AND (:stale_for IS NULL OR n.embedding_model IS NOT :stale_for)
ORDER BY n.row
LIMIT :limit

-- name: recent_subtree_nodes
SELECT {columns}, v.data
FROM node AS n INDEXED BY node_by_updated
JOIN scope AS s ON s.id = n.scope
LEFT JOIN vector AS v ON v.node = n.row
WHERE n.scope = :scope AND n.layer IN (SELECT value FROM json_each(:every_layer)) AND n.updated >= :since
    AND n.row > :behind
    AND (NOT :checked OR ({visible}))
    AND (:stale_for IS NULL OR n.embedding_model IS NOT :stale_for)
ORDER BY n.row
LIMIT :limit

-- name: anchors
SELECT n.id, n.row, n.scope, n.session, n.layer, n.asserted
FROM json_each(:ids) AS j
JOIN node AS n ON n.id = j.value
JOIN scope AS s ON s.id = n.scope
WHERE s.path IN (SELECT value FROM json_each(:paths)) AND n.session IS NOT NULL

-- name: beside
-- The row :offset places before each anchor and the one after it, whether or not the reader may be given them.
SELECT
    a.id,
    a.row,
    (
        SELECT b.row FROM node AS b INDEXED BY node_by_session
        WHERE b.scope = a.scope AND b.session = a.session AND b.layer = a.layer
            AND (b.asserted, b.row) < (a.asserted, a.row)
        ORDER BY b.asserted DESC, b.row DESC LIMIT 1 OFFSET :offset
    ),
    (
        SELECT b.row FROM node AS b INDEXED BY node_by_session
        WHERE b.scope = a.scope AND b.session = a.session AND b.layer = a.layer
            AND (b.asserted, b.row) > (a.asserted, a.row)
        ORDER BY b.asserted, b.row LIMIT 1 OFFSET :offset
    )
FROM json_each(:ids) AS j
JOIN node AS a ON a.id = j.value
JOIN scope AS s ON s.id = a.scope
WHERE s.path IN (SELECT value FROM json_each(:paths)) AND a.session IS NOT NULL

-- name: said_before
SELECT {columns}
FROM node AS n INDEXED BY node_by_session
JOIN scope AS s ON s.id = n.scope
WHERE n.scope = :scope AND n.session = :said_in AND n.layer = :layer
    AND (n.asserted, n.row) < (:asserted, :row)
    AND {visible}
ORDER BY n.asserted DESC, n.row DESC
LIMIT :distance

-- name: said_after
SELECT {columns}
FROM node AS n INDEXED BY node_by_session
JOIN scope AS s ON s.id = n.scope
WHERE n.scope = :scope AND n.session = :said_in AND n.layer = :layer
    AND (n.asserted, n.row) > (:asserted, :row)
    AND {visible}
ORDER BY n.asserted, n.row
LIMIT :distance

-- name: touch_access
UPDATE node SET access_count = access_count + 1, accessed = max(coalesce(accessed, :at), :at)
WHERE id IN (SELECT value FROM json_each(:ids)) AND +scope = :scope

-- name: touch_activation
UPDATE node SET activation_count = activation_count + 1, accessed = max(coalesce(accessed, :at), :at)
WHERE id IN (SELECT value FROM json_each(:ids)) AND +scope = :scope

-- name: owned_rows
SELECT row FROM node WHERE id IN (SELECT value FROM json_each(:ids)) AND +scope = :scope

-- name: unindex_rows
INSERT INTO lexeme (lexeme, rowid, s, t)
SELECT 'delete', row, scope, terms FROM node WHERE row IN (SELECT value FROM json_each(:rows))

-- name: drop_edges_of_rows
DELETE FROM edge
WHERE source IN (SELECT value FROM json_each(:rows)) OR target IN (SELECT value FROM json_each(:rows))

-- name: drop_history_of_rows
DELETE FROM history WHERE node IN (SELECT value FROM json_each(:rows))

-- name: drop_vectors_of_rows
DELETE FROM vector WHERE node IN (SELECT value FROM json_each(:rows))

-- name: drop_revisions_of_rows
DELETE FROM revision WHERE scope = :scope AND node IN (SELECT value FROM json_each(:rows))

-- name: drop_rows
DELETE FROM node WHERE row IN (SELECT value FROM json_each(:rows))

-- name: add_history
INSERT INTO history (node, action, reason, at, version)
SELECT row, :action, :reason, :at, :version FROM node WHERE id = :id AND scope = :scope

-- name: history_of
SELECT h.action, h.reason, h.at, h.version
FROM node AS n
JOIN scope AS s ON s.id = n.scope
JOIN history AS h ON h.node = n.row
WHERE n.id = :id AND s.path IN (SELECT value FROM json_each(:paths))
ORDER BY h.number

-- name: stats
SELECT
    count(*),
    coalesce(sum(n.superseded IS NOT NULL), 0),
    coalesce(sum(EXISTS (SELECT 1 FROM vector AS v WHERE v.node = n.row)), 0),
    coalesce(sum((SELECT count(*) FROM history AS h WHERE h.node = n.row)), 0)
FROM node AS n WHERE n.scope = :scope

-- name: stats_by_layer
SELECT layer, status, count(*) FROM node WHERE scope = :scope GROUP BY layer, status

-- name: count_visible
SELECT count(*) FROM node WHERE scope IN (SELECT value FROM json_each(:scopes))

-- name: count_edges
SELECT count(*) FROM edge WHERE scope = :scope
