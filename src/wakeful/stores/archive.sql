-- name: schema
CREATE TABLE IF NOT EXISTS archive_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS archive_records (
    number     INTEGER PRIMARY KEY,
    space      TEXT NOT NULL,
    id         TEXT NOT NULL,
    dialect    TEXT NOT NULL,
    position   INTEGER NOT NULL,
    messages   TEXT NOT NULL,
    entry_ids  TEXT NOT NULL,
    what       TEXT NOT NULL,
    tokens     INTEGER NOT NULL,
    text       TEXT NOT NULL,
    count      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    created_at TEXT,
    UNIQUE (space, id)
);
CREATE VIRTUAL TABLE IF NOT EXISTS archive_terms USING fts5 (space, terms, content = '');

-- name: insert
INSERT INTO archive_records
    (space, id, dialect, position, messages, entry_ids, what, tokens, text, count, bytes, created_at)
VALUES (:space, :id, :dialect, :position, :messages, :entry_ids, :what, :tokens, :text, :count, :bytes, :created_at)
ON CONFLICT (space, id) DO NOTHING;

-- name: get
SELECT id, dialect, position, messages, entry_ids, what, tokens, text
FROM archive_records WHERE space = :space AND id = :id;

-- name: list
SELECT id, dialect, position, what, tokens, count, bytes, created_at
FROM archive_records WHERE space = :space ORDER BY number LIMIT :limit;

-- name: count
SELECT count(*), coalesce(sum(count), 0), coalesce(sum(bytes), 0) FROM archive_records WHERE space = :space;

-- name: words
SELECT r.number, r.id FROM archive_terms JOIN archive_records AS r ON r.number = archive_terms.rowid
WHERE archive_terms MATCH :match AND r.space = :space ORDER BY bm25(archive_terms, 0.0, 1.0) LIMIT :limit;

-- name: index
INSERT INTO archive_terms (rowid, space, terms) VALUES (:number, :space_term, :terms);

-- name: unindex
INSERT INTO archive_terms (archive_terms, rowid, space, terms) VALUES ('delete', :number, :space_term, :terms);

-- name: rows_of
SELECT number, space, text FROM archive_records WHERE space = :space AND id = :id;

-- name: rows_within
SELECT number, space, text FROM archive_records
WHERE space = :space OR (:space <> '' AND space >= :space || '/' AND space < :space || '0');

-- name: exact
SELECT number, id FROM archive_records
WHERE space = :space AND instr(text, :query) > 0 ORDER BY number DESC LIMIT :limit;

-- name: delete
DELETE FROM archive_records WHERE number = :number;
