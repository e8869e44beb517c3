-- The schema of a SQLite memory store, version 1. The files in migrations/ lead to exactly this.
--
-- Times are microseconds since 1970-01-01 UTC. Layers: 0 semantic, 1 episodic, 2 procedural, 3 prospective, 4 working.
-- Statuses: 0 active, 1 draft, 2 retracted.

-- One row: numbers that only rise, and the embedding model of the vectors.
CREATE TABLE counter (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    change INTEGER NOT NULL DEFAULT 0,
    row INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    embedding_model TEXT,
    embedding_dimensions INTEGER NOT NULL DEFAULT 0,
    purge INTEGER NOT NULL DEFAULT 0
);

-- Owners. change: the last change to rows of it; gone: the last one that took rows away.
CREATE TABLE scope (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    change INTEGER NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0
);

-- Nodes in the order of first writing. due, event and claimed: the pending occurrence of a reminder.
CREATE TABLE node (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scope (id),
    layer INTEGER NOT NULL,
    status INTEGER NOT NULL,
    label TEXT NOT NULL,
    content TEXT NOT NULL,
    properties TEXT NOT NULL,
    importance REAL NOT NULL,
    session TEXT,
    turn TEXT,
    ref TEXT,
    speaker TEXT,
    entries TEXT,
    by TEXT NOT NULL,
    trust TEXT NOT NULL,
    asserted INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    accessed INTEGER,
    valid_from INTEGER,
    valid_until INTEGER,
    superseded INTEGER,
    superseded_by TEXT,
    expires INTEGER,
    access_count INTEGER NOT NULL,
    activation_count INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    embedding_model TEXT,
    terms TEXT NOT NULL,
    due INTEGER,
    event TEXT,
    claimed INTEGER
);

CREATE INDEX node_by_scope ON node (scope);

CREATE INDEX node_by_updated ON node (scope, layer, updated);

CREATE INDEX node_by_session ON node (scope, session, layer, asserted) WHERE session IS NOT NULL;

CREATE INDEX node_by_accessed ON node (scope, accessed) WHERE accessed IS NOT NULL;

CREATE INDEX node_by_expires ON node (scope, expires) WHERE expires IS NOT NULL;

CREATE INDEX node_by_superseded ON node (scope, superseded) WHERE superseded IS NOT NULL;

CREATE INDEX node_by_due ON node (scope, due) WHERE due IS NOT NULL;

CREATE INDEX node_by_event ON node (scope, event) WHERE event IS NOT NULL;

CREATE INDEX node_by_label ON node (scope, label) WHERE label <> '';

CREATE INDEX node_by_claim ON node (
    scope, json_extract(properties, '$.attribute'), json_extract(properties, '$.subject')
) WHERE json_extract(properties, '$.attribute') IS NOT NULL;

-- Vectors, as little-endian float16.
CREATE TABLE vector (
    node INTEGER PRIMARY KEY REFERENCES node (row),
    data BLOB NOT NULL
);

-- Nodes that changed after their first writing: the number of the last change of any kind, and of the last one in what
-- search looks at.
CREATE TABLE revision (
    scope INTEGER NOT NULL,
    node INTEGER NOT NULL,
    change INTEGER NOT NULL,
    searched INTEGER NOT NULL,
    PRIMARY KEY (scope, node)
) WITHOUT ROWID;

CREATE INDEX revision_by_change ON revision (scope, change);

-- Full-text index of node.terms; s holds the scope's id as a token, so one scope's search reads its own entries.
CREATE VIRTUAL TABLE lexeme USING fts5 (
    s, t, content = '', tokenize = "ascii tokenchars '+#-_.:@&/'"
);

CREATE TABLE edge (
    source INTEGER NOT NULL REFERENCES node (row),
    relation TEXT NOT NULL,
    target INTEGER NOT NULL REFERENCES node (row),
    scope INTEGER NOT NULL REFERENCES scope (id),
    id TEXT NOT NULL UNIQUE,
    weight REAL NOT NULL,
    provenance TEXT NOT NULL,
    evidence TEXT NOT NULL,
    properties TEXT NOT NULL,
    asserted INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    valid_from INTEGER,
    valid_until INTEGER,
    superseded INTEGER,
    expires INTEGER,
    PRIMARY KEY (source, relation, target, scope)
) WITHOUT ROWID;

CREATE INDEX edge_by_target ON edge (target);

CREATE INDEX edge_by_scope ON edge (scope);

CREATE TABLE history (
    number INTEGER PRIMARY KEY,
    node INTEGER NOT NULL REFERENCES node (row),
    action TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    version TEXT NOT NULL
);

CREATE INDEX history_by_node ON history (node);

CREATE TABLE lease (
    scope INTEGER PRIMARY KEY REFERENCES scope (id),
    owner TEXT NOT NULL,
    token INTEGER NOT NULL,
    until INTEGER NOT NULL
);

CREATE TABLE state (
    scope INTEGER NOT NULL REFERENCES scope (id),
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

-- Erasures: a hash of the scope's path, so the name itself is gone.
CREATE TABLE tombstone (
    mark TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO counter (one) VALUES (1);
