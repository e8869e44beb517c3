-- name: schema
CREATE TABLE IF NOT EXISTS session_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
    id         TEXT PRIMARY KEY,
    epoch      INTEGER NOT NULL,
    dialect    TEXT NOT NULL,
    head       TEXT,
    seq        INTEGER NOT NULL DEFAULT 0,
    compaction INTEGER,
    turn       TEXT,
    created_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session_entries (
    session   TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    parent_id TEXT,
    turn_id   TEXT,
    pinned    INTEGER NOT NULL,
    message   TEXT NOT NULL,
    PRIMARY KEY (session, id),
    UNIQUE (session, seq)
);
CREATE TABLE IF NOT EXISTS session_compactions (
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq      INTEGER NOT NULL,
    id       TEXT NOT NULL,
    after_id TEXT,
    shown    TEXT NOT NULL,
    covered  TEXT NOT NULL,
    meta     TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);

-- name: create
INSERT INTO sessions (id, epoch, dialect, created_at) VALUES (:session, :epoch, :dialect, :at)
ON CONFLICT (id) DO NOTHING RETURNING id;

-- name: lock
SELECT epoch, head, seq FROM sessions WHERE id = :session;

-- name: read
SELECT epoch, dialect, head, turn FROM sessions WHERE id = :session;

-- name: set_epoch
UPDATE sessions SET epoch = :epoch WHERE id = :session;

-- name: set_head
UPDATE sessions SET head = :head WHERE id = :session;

-- name: advance
UPDATE sessions SET head = :head, seq = :seq WHERE id = :session;

-- name: save_turn
UPDATE sessions SET turn = :turn WHERE id = :session;

-- name: set_compaction
UPDATE sessions SET compaction = :compaction WHERE id = :session;

-- name: insert_entry
INSERT INTO session_entries (session, id, seq, parent_id, turn_id, pinned, message)
VALUES (:session, :id, :seq, :parent_id, :turn_id, :pinned, :message);

-- name: by_id
SELECT id, seq, parent_id, turn_id, pinned, message FROM session_entries
WHERE session = :session AND id IN (SELECT value FROM json_each(:ids));

-- name: all
SELECT id, seq, parent_id, turn_id, pinned, message FROM session_entries WHERE session = :session ORDER BY seq;

-- name: path
WITH RECURSIVE path (id, seq, parent_id, turn_id, pinned, message) AS (
    SELECT id, seq, parent_id, turn_id, pinned, message FROM session_entries
    WHERE session = :session AND id = :head AND id IS NOT :after
    UNION ALL
    SELECT e.id, e.seq, e.parent_id, e.turn_id, e.pinned, e.message
    FROM path JOIN session_entries AS e ON e.session = :session AND e.id = path.parent_id
    WHERE e.id IS NOT :after
)
SELECT id, seq, parent_id, turn_id, pinned, message FROM path ORDER BY seq;

-- name: insert_compaction
INSERT INTO session_compactions (session, seq, id, after_id, shown, covered, meta)
VALUES (:session, :seq, :id, :after_id, :shown, :covered, :meta);

-- name: delete_compaction
DELETE FROM session_compactions WHERE session = :session AND seq = :seq;

-- name: compactions
SELECT seq, id, after_id, shown, covered, meta FROM session_compactions WHERE session = :session ORDER BY seq;

-- name: current_compaction
SELECT c.seq, c.id, c.after_id, c.shown, c.covered, c.meta
FROM sessions AS s JOIN session_compactions AS c ON c.session = s.id AND c.seq = s.compaction
WHERE s.id = :session;

-- name: compaction_on_path
WITH RECURSIVE path (id, parent_id) AS (
    SELECT id, parent_id FROM session_entries WHERE session = :session AND id = :head
    UNION ALL
    SELECT e.id, e.parent_id FROM path JOIN session_entries AS e ON e.session = :session AND e.id = path.parent_id
)
SELECT seq FROM session_compactions
WHERE session = :session AND (after_id IS NULL OR after_id IN (SELECT id FROM path)) ORDER BY seq DESC LIMIT 1;

-- name: erase
DELETE FROM sessions WHERE id = :session RETURNING id;

-- name: list
SELECT id FROM sessions WHERE substr(id, 1, length(:prefix)) = :prefix AND id > :after ORDER BY id LIMIT :limit;
