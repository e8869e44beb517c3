-- name: visible_rows
SELECT n.id, n.row FROM json_each(:ids) AS j
CROSS JOIN node AS n ON n.id = j.value
JOIN scope AS s ON s.id = n.scope
WHERE s.path IN (SELECT value FROM json_each(:paths))

-- name: same_edges
SELECT {edge_columns}
FROM json_each(:keys) AS j
CROSS JOIN edge AS e ON e.source = j.value ->> 0 AND e.relation = j.value ->> 1 AND e.target = j.value ->> 2
    AND e.scope = :scope
JOIN scope AS s ON s.id = e.scope
JOIN node AS a ON a.row = e.source
JOIN node AS b ON b.row = e.target

-- name: put_edge
INSERT INTO edge (
    source, relation, target, scope, id, weight, provenance, evidence, properties,
    asserted, updated, recorded, valid_from, valid_until, superseded, expires
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source, relation, target, scope) DO UPDATE SET
    weight = excluded.weight, provenance = excluded.provenance, evidence = excluded.evidence,
    properties = excluded.properties, asserted = excluded.asserted, updated = excluded.updated,
    valid_from = excluded.valid_from, valid_until = excluded.valid_until, superseded = excluded.superseded,
    expires = excluded.expires

-- name: edges_out
SELECT * FROM (
    SELECT e.source, {edge_columns},
        row_number() OVER (PARTITION BY e.source ORDER BY e.weight DESC, e.id) AS place
    FROM json_each(:rows) AS j
    CROSS JOIN edge AS e ON e.source = j.value
    JOIN scope AS s ON s.id = e.scope
    JOIN node AS a ON a.row = e.source
    JOIN node AS b ON b.row = e.target
    WHERE s.path IN (SELECT value FROM json_each(:paths))
        AND (:relation IS NULL OR e.relation = :relation)
        AND {fresh_edge}
)
WHERE place <= :limit

-- name: edges_in
SELECT * FROM (
    SELECT e.target, {edge_columns},
        row_number() OVER (PARTITION BY e.target ORDER BY e.weight DESC, e.id) AS place
    FROM json_each(:rows) AS j
    CROSS JOIN edge AS e INDEXED BY edge_by_target ON e.target = j.value
    JOIN scope AS s ON s.id = e.scope
    JOIN node AS a ON a.row = e.source
    JOIN node AS b ON b.row = e.target
    WHERE s.path IN (SELECT value FROM json_each(:paths))
        AND (:relation IS NULL OR e.relation = :relation)
        AND {fresh_edge}
)
WHERE place <= :limit

-- name: linked_rows
SELECT n.row FROM json_each(:ids) AS j
CROSS JOIN node AS n ON n.id = j.value
JOIN scope AS s ON s.id = n.scope
WHERE s.path IN (SELECT value FROM json_each(:paths))
    AND (
        EXISTS (SELECT 1 FROM edge AS e WHERE e.source = n.row)
        OR EXISTS (SELECT 1 FROM edge AS e INDEXED BY edge_by_target WHERE e.target = n.row)
    )

-- name: subtree_edges
SELECT {edge_columns}
FROM edge AS e
JOIN scope AS s ON s.id = e.scope
JOIN node AS a ON a.row = e.source
JOIN node AS b ON b.row = e.target
WHERE e.scope IN (SELECT value FROM json_each(:scopes))
ORDER BY s.path, e.id

-- name: drop_edges
DELETE FROM edge WHERE id IN (SELECT value FROM json_each(:ids)) AND scope = :scope
