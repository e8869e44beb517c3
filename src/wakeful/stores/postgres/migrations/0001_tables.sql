-- The tables of memory. Owners are small numbers; their paths stand in "scopes" alone.
CREATE EXTENSION IF NOT EXISTS vector;

CREATE SCHEMA IF NOT EXISTS wakeful;

CREATE TABLE wakeful.settings (
    key text PRIMARY KEY,
    value jsonb NOT NULL
);

CREATE SEQUENCE wakeful.tokens;

CREATE TABLE wakeful.scopes (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path text COLLATE "C" NOT NULL UNIQUE,
    nodes bigint NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    next_doc bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE TABLE wakeful.nodes (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner integer NOT NULL REFERENCES wakeful.scopes (id),
    doc bigint NOT NULL,
    id text COLLATE "C" NOT NULL UNIQUE,
    layer text NOT NULL,
    label text NOT NULL,
    content text NOT NULL,
    properties jsonb NOT NULL,
    importance double precision NOT NULL,
    status text NOT NULL,
    session text,
    source jsonb NOT NULL,
    asserted_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    accessed_at timestamptz,
    valid_from timestamptz,
    valid_until timestamptz,
    recorded_at timestamptz NOT NULL,
    superseded_at timestamptz,
    superseded_by text,
    expires_at timestamptz,
    access_count bigint NOT NULL,
    activation_count bigint NOT NULL,
    pinned boolean NOT NULL,
    embedding_model text,
    due_at timestamptz,
    event text,
    claimed_until timestamptz,
    used_at timestamptz NOT NULL GENERATED ALWAYS AS (GREATEST(updated_at, accessed_at)) STORED,
    label_key bigint GENERATED ALWAYS AS (CASE WHEN label <> '' THEN hashtextextended(label, 0) END) STORED,
    UNIQUE (owner, doc)
) WITH (fillfactor = 90);

CREATE INDEX nodes_updated ON wakeful.nodes (owner, updated_at);
CREATE INDEX nodes_used ON wakeful.nodes (owner, used_at);
CREATE INDEX nodes_accessed ON wakeful.nodes (owner, accessed_at) WHERE accessed_at IS NOT NULL;
CREATE INDEX nodes_expires ON wakeful.nodes (owner, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX nodes_superseded ON wakeful.nodes (owner, superseded_at) WHERE superseded_at IS NOT NULL;
CREATE INDEX nodes_session ON wakeful.nodes (owner, session, layer, asserted_at, place) WHERE session IS NOT NULL;
CREATE INDEX nodes_label ON wakeful.nodes (owner, label_key) WHERE label_key IS NOT NULL;
CREATE INDEX nodes_due ON wakeful.nodes (owner, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX nodes_event ON wakeful.nodes (owner) WHERE event IS NOT NULL;

-- The words of each owner: one row for a term and 1,024 documents. An entry is four bytes: see words.py.
CREATE TABLE wakeful.words (
    owner integer NOT NULL,
    term bigint NOT NULL,
    chunk integer NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY (owner, term, chunk)
) WITH (fillfactor = 80);
ALTER TABLE wakeful.words ALTER COLUMN entries SET STORAGE PLAIN;

CREATE TABLE wakeful.models (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);

CREATE TABLE wakeful.vectors (
    place bigint PRIMARY KEY REFERENCES wakeful.nodes (place) ON DELETE CASCADE,
    owner integer NOT NULL,
    model integer NOT NULL REFERENCES wakeful.models (id),
    embedding halfvec NOT NULL
);
ALTER TABLE wakeful.vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX vectors_owner ON wakeful.vectors (owner);

CREATE TABLE wakeful.edges (
    id text COLLATE "C" PRIMARY KEY,
    owner integer NOT NULL REFERENCES wakeful.scopes (id),
    source_place bigint NOT NULL REFERENCES wakeful.nodes (place) ON DELETE CASCADE,
    target_place bigint NOT NULL REFERENCES wakeful.nodes (place) ON DELETE CASCADE,
    source_id text COLLATE "C" NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    relation text NOT NULL,
    weight double precision NOT NULL,
    provenance text NOT NULL,
    evidence jsonb NOT NULL,
    properties jsonb NOT NULL,
    asserted_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    valid_from timestamptz,
    valid_until timestamptz,
    recorded_at timestamptz NOT NULL,
    superseded_at timestamptz,
    expires_at timestamptz,
    UNIQUE (source_place, target_place, owner, relation)
);
CREATE INDEX edges_target ON wakeful.edges (target_place);
CREATE INDEX edges_owner ON wakeful.edges (owner);

CREATE TABLE wakeful.history (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    place bigint NOT NULL REFERENCES wakeful.nodes (place) ON DELETE CASCADE,
    owner integer NOT NULL,
    node jsonb NOT NULL,
    action text NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX history_place ON wakeful.history (place, number);
CREATE INDEX history_owner ON wakeful.history (owner);

CREATE TABLE wakeful.states (
    owner integer NOT NULL REFERENCES wakeful.scopes (id),
    key text NOT NULL,
    value json NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE TABLE wakeful.leases (
    owner integer PRIMARY KEY REFERENCES wakeful.scopes (id),
    holder text NOT NULL,
    token bigint NOT NULL,
    until timestamptz NOT NULL
);

-- Erasures, by a hash of the path: the name itself is gone.
CREATE TABLE wakeful.tombstones (
    mark bytea PRIMARY KEY,
    erased_at timestamptz NOT NULL
);
