-- name: schema
CREATE TABLE IF NOT EXISTS wakeful_sessions (
    id         text COLLATE "C" PRIMARY KEY,
    epoch      bigint NOT NULL,
    dialect    text NOT NULL,
    head       text COLLATE "C",
    seq        bigint NOT NULL DEFAULT 0,
    compaction bigint,
    turn       text,
    created_at text NOT NULL
);
CREATE TABLE IF NOT EXISTS wakeful_session_entries (
    session   text COLLATE "C" NOT NULL REFERENCES wakeful_sessions (id) ON DELETE CASCADE,
    id        text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    parent_id text COLLATE "C",
    turn_id   text,
    pinned    smallint NOT NULL,
    message   text NOT NULL,
    PRIMARY KEY (session, id),
    UNIQUE (session, seq)
);
CREATE TABLE IF NOT EXISTS wakeful_session_compactions (
    session  text COLLATE "C" NOT NULL REFERENCES wakeful_sessions (id) ON DELETE CASCADE,
    seq      bigint NOT NULL,
    id       text NOT NULL,
    after_id text COLLATE "C",
    shown    text NOT NULL,
    covered  text NOT NULL,
    meta     text NOT NULL,
    PRIMARY KEY (session, seq)
);

-- name: create
INSERT INTO wakeful_sessions (id, epoch, dialect, created_at)
VALUES (%(session)s, %(epoch)s, %(dialect)s, %(at)s)
ON CONFLICT (id) DO NOTHING RETURNING id;

-- name: lock
SELECT epoch, head, seq FROM wakeful_sessions WHERE id = %(session)s FOR UPDATE;

-- name: read
SELECT epoch, dialect, head, turn FROM wakeful_sessions WHERE id = %(session)s;

-- name: set_epoch
UPDATE wakeful_sessions SET epoch = %(epoch)s WHERE id = %(session)s;

-- name: set_head
UPDATE wakeful_sessions SET head = %(head)s WHERE id = %(session)s;

-- name: advance
UPDATE wakeful_sessions SET head = %(head)s, seq = %(seq)s WHERE id = %(session)s;

-- name: save_turn
UPDATE wakeful_sessions SET turn = %(turn)s WHERE id = %(session)s;

-- name: set_compaction
UPDATE wakeful_sessions SET compaction = %(compaction)s WHERE id = %(session)s;

-- name: insert_entry
INSERT INTO wakeful_session_entries (session, id, seq, parent_id, turn_id, pinned, message)
VALUES (%(session)s, %(id)s, %(seq)s, %(parent_id)s, %(turn_id)s, %(pinned)s, %(message)s);

-- name: by_id
SELECT id, seq, parent_id, turn_id, pinned, message FROM wakeful_session_entries
WHERE session = %(session)s AND id IN (SELECT jsonb_array_elements_text(%(ids)s::jsonb));

-- name: all
SELECT id, seq, parent_id, turn_id, pinned, message FROM wakeful_session_entries
WHERE session = %(session)s ORDER BY seq;

-- name: path
WITH RECURSIVE path (id, seq, parent_id, turn_id, pinned, message) AS (
    SELECT id, seq, parent_id, turn_id, pinned, message FROM wakeful_session_entries
    WHERE session = %(session)s AND id = %(head)s AND id IS DISTINCT FROM %(after)s
    UNION ALL
    SELECT e.id, e.seq, e.parent_id, e.turn_id, e.pinned, e.message
    FROM path JOIN wakeful_session_entries AS e ON e.session = %(session)s AND e.id = path.parent_id
    WHERE e.id IS DISTINCT FROM %(after)s
)
SELECT id, seq, parent_id, turn_id, pinned, message FROM path ORDER BY seq;

-- name: insert_compaction
INSERT INTO wakeful_session_compactions (session, seq, id, after_id, shown, covered, meta)
VALUES (%(session)s, %(seq)s, %(id)s, %(after_id)s, %(shown)s, %(covered)s, %(meta)s);

-- name: delete_compaction
DELETE FROM wakeful_session_compactions WHERE session = %(session)s AND seq = %(seq)s;

-- name: compactions
SELECT seq, id, after_id, shown, covered, meta FROM wakeful_session_compactions
WHERE session = %(session)s ORDER BY seq;

-- name: current_compaction
SELECT c.seq, c.id, c.after_id, c.shown, c.covered, c.meta
FROM wakeful_sessions AS s JOIN wakeful_session_compactions AS c ON c.session = s.id AND c.seq = s.compaction
WHERE s.id = %(session)s;

-- name: compaction_on_path
WITH RECURSIVE path (id, parent_id) AS (
    SELECT id, parent_id FROM wakeful_session_entries WHERE session = %(session)s AND id = %(head)s
    UNION ALL
    SELECT e.id, e.parent_id
    FROM path JOIN wakeful_session_entries AS e ON e.session = %(session)s AND e.id = path.parent_id
)
SELECT seq FROM wakeful_session_compactions
WHERE session = %(session)s AND (after_id IS NULL OR after_id IN (SELECT id FROM path)) ORDER BY seq DESC LIMIT 1;

-- name: erase
DELETE FROM wakeful_sessions WHERE id = %(session)s RETURNING id;

-- name: list
SELECT id FROM wakeful_sessions
WHERE substr(id, 1, length(%(prefix)s)) = %(prefix)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;
