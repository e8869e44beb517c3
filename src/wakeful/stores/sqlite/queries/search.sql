-- name: count_rows
SELECT count(*) FROM node WHERE scope = :scope

-- name: load_rows
-- What search and ranking look at, of rows behind the last known one.
SELECT n.row, n.layer, n.status, n.valid_from, n.valid_until, n.superseded, n.expires, n.terms,
    CASE WHEN n.embedding_model = :model THEN v.data END,
    n.id, n.session, n.speaker, n.asserted, n.importance, n.access_count + n.activation_count, n.label, n.content,
    CASE WHEN n.by = 'extractor' OR n.layer = 0 THEN json_extract(n.entries, '$[0]') END
FROM node AS n INDEXED BY node_by_scope
LEFT JOIN vector AS v ON v.node = n.row
WHERE n.scope = :scope AND n.row > :behind
ORDER BY n.row

-- name: revised_rows
SELECT r.node, n.id, n.access_count + n.activation_count
FROM revision AS r INDEXED BY revision_by_change
JOIN node AS n ON n.row = r.node
WHERE r.scope = :scope AND r.change > :change

-- name: load_revised
SELECT n.row, n.layer, n.status, n.valid_from, n.valid_until, n.superseded, n.expires, n.terms,
    CASE WHEN n.embedding_model = :model THEN v.data END,
    n.id, n.session, n.speaker, n.asserted, n.importance, n.access_count + n.activation_count, n.label, n.content,
    CASE WHEN n.by = 'extractor' OR n.layer = 0 THEN json_extract(n.entries, '$[0]') END
FROM revision AS r INDEXED BY revision_by_change
JOIN node AS n ON n.row = r.node
LEFT JOIN vector AS v ON v.node = n.row
WHERE r.scope = :scope AND r.change > :change AND r.searched > :change AND r.node <= :until
ORDER BY n.row

-- name: match_terms
SELECT n.row, n.terms
FROM lexeme AS l
JOIN node AS n ON n.row = l.rowid
WHERE lexeme MATCH :match AND {visible}
ORDER BY bm25(lexeme, 0, 1), n.id
LIMIT :limit

-- name: count_matches
SELECT count(*) FROM lexeme WHERE lexeme MATCH :match

-- name: scan_vectors
SELECT n.row, n.id, v.data
FROM node AS n INDEXED BY node_by_scope
JOIN vector AS v ON v.node = n.row
WHERE n.scope = :scope AND n.embedding_model = :model AND {visible}
