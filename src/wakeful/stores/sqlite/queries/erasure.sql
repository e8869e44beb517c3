-- name: count_scope
SELECT
    (SELECT count(*) FROM node WHERE scope = :scope),
    (SELECT count(*) FROM edge WHERE scope = :scope),
    (SELECT count(*) FROM history WHERE node IN (SELECT row FROM node WHERE scope = :scope)),
    (SELECT count(*) FROM node WHERE scope = :scope AND (due IS NOT NULL OR event IS NOT NULL)),
    (SELECT count(*) FROM vector WHERE node IN (SELECT row FROM node WHERE scope = :scope)),
    (SELECT count(*) FROM state WHERE scope = :scope),
    (SELECT count(*) FROM lease WHERE scope = :scope)

-- name: unindex_scope
INSERT INTO lexeme (lexeme, rowid, s, t) SELECT 'delete', row, scope, terms FROM node WHERE scope = :scope

-- name: erase_edges
DELETE FROM edge WHERE scope = :scope

-- name: erase_edges_from
DELETE FROM edge WHERE source IN (SELECT row FROM node WHERE scope = :scope)

-- name: erase_edges_to
DELETE FROM edge WHERE target IN (SELECT row FROM node WHERE scope = :scope)

-- name: erase_history
DELETE FROM history WHERE node IN (SELECT row FROM node WHERE scope = :scope)

-- name: erase_vectors
DELETE FROM vector WHERE node IN (SELECT row FROM node WHERE scope = :scope)

-- name: erase_revisions
DELETE FROM revision WHERE scope = :scope

-- name: erase_state
DELETE FROM state WHERE scope = :scope

-- name: erase_lease
DELETE FROM lease WHERE scope = :scope

-- name: erase_nodes
DELETE FROM node WHERE scope = :scope

-- name: erase_scope
DELETE FROM scope WHERE id = :scope

-- name: put_tombstone
INSERT INTO tombstone (mark, at) VALUES (:mark, :at)
ON CONFLICT (mark) DO UPDATE SET at = max(at, excluded.at)

-- name: want_purge
UPDATE counter SET purge = 1

-- name: purged
UPDATE counter SET purge = 0

-- name: optimize_lexemes
INSERT INTO lexeme (lexeme) VALUES ('optimize')
