-- The whole schema, as the migrations leave it.
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
    claim_key bigint GENERATED ALWAYS AS (
        hashtextextended((properties ->> 'attribute') || ' ' || (properties ->> 'subject'), 0)) STORED,
    terms text,
    asks boolean,
    tells_time boolean,
    said bigint,
    UNIQUE (owner, doc)
) WITH (fillfactor = 90);

CREATE INDEX nodes_updated ON wakeful.nodes (owner, updated_at);
CREATE INDEX nodes_used ON wakeful.nodes (owner, used_at);
CREATE INDEX nodes_accessed ON wakeful.nodes (owner, accessed_at) WHERE accessed_at IS NOT NULL;
CREATE INDEX nodes_expires ON wakeful.nodes (owner, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX nodes_superseded ON wakeful.nodes (owner, superseded_at) WHERE superseded_at IS NOT NULL;
CREATE INDEX nodes_session ON wakeful.nodes (owner, session, layer, asserted_at, place) WHERE session IS NOT NULL;
CREATE INDEX nodes_label ON wakeful.nodes (owner, label_key) WHERE label_key IS NOT NULL;
CREATE INDEX nodes_claim ON wakeful.nodes (owner, claim_key) WHERE claim_key IS NOT NULL;
CREATE INDEX nodes_standing ON wakeful.nodes (owner, layer) WHERE layer IN ('working', 'procedural', 'prospective');
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

-- The second lock: each transaction says whose it is, and the database shows it nothing else.
--
-- wakeful.scope   path of the scope that the transaction acts for; unset: nothing is seen
-- wakeful.reach   "up" (the scope and its ancestors), "down" (the scope and all below it), "names" (paths alone)

CREATE FUNCTION wakeful.lineage() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT array_agg(array_to_string(parts[1:depth], '/') COLLATE "C")
    FROM string_to_array(nullif(current_setting('wakeful.scope', true), ''), '/') AS parts,
         generate_series(1, cardinality(parts)) AS depth;
END;

CREATE FUNCTION wakeful.reaches_path(path text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE current_setting('wakeful.reach', true)
    WHEN 'names' THEN true
    WHEN 'down' THEN path COLLATE "C" = current_setting('wakeful.scope', true)
        OR (path COLLATE "C" > current_setting('wakeful.scope', true) || '/'
            AND path COLLATE "C" < current_setting('wakeful.scope', true) || '0'
            AND current_setting('wakeful.scope', true) <> '')
    ELSE false
END;

ALTER TABLE wakeful.scopes ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.scopes FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.scopes FOR SELECT
    USING (path = ANY ((SELECT wakeful.lineage())::text[]) OR wakeful.reaches_path(path));
CREATE POLICY add ON wakeful.scopes FOR INSERT
    WITH CHECK (path = nullif(current_setting('wakeful.scope', true), ''));
CREATE POLICY change ON wakeful.scopes FOR UPDATE
    USING (path = nullif(current_setting('wakeful.scope', true), ''));
CREATE POLICY remove ON wakeful.scopes FOR DELETE
    USING (current_setting('wakeful.reach', true) = 'down' AND wakeful.reaches_path(path));

-- Numbers of the owners that the transaction reads, and of the one that it writes.
CREATE FUNCTION wakeful.readable() RETURNS integer[] LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE current_setting('wakeful.reach', true)
        WHEN 'up' THEN ARRAY(SELECT id FROM wakeful.scopes WHERE path = ANY (wakeful.lineage()))
        WHEN 'down' THEN ARRAY(
            SELECT id FROM wakeful.scopes
            WHERE path = nullif(current_setting('wakeful.scope', true), '')
            UNION ALL
            SELECT id FROM wakeful.scopes
            WHERE path > nullif(current_setting('wakeful.scope', true), '') || '/'
              AND path < nullif(current_setting('wakeful.scope', true), '') || '0')
        ELSE '{}'::integer[]
    END;
END;

CREATE FUNCTION wakeful.writable() RETURNS integer LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT id FROM wakeful.scopes WHERE path = nullif(current_setting('wakeful.scope', true), '');
END;

CREATE FUNCTION wakeful.marks() RETURNS bytea[] LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT array_agg(sha256(convert_to('tombstone/' || path, 'UTF8'))) FROM unnest(wakeful.lineage()) AS path;
END;

ALTER TABLE wakeful.nodes ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.nodes FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.nodes FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.nodes FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY change ON wakeful.nodes FOR UPDATE USING (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.nodes FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.words ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.words FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.words FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.words FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY change ON wakeful.words FOR UPDATE USING (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.words FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.vectors FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.vectors FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY change ON wakeful.vectors FOR UPDATE USING (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.vectors FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.edges ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.edges FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.edges FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.edges FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY change ON wakeful.edges FOR UPDATE USING (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.edges FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.history ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.history FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.history FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.history FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.history FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.states ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.states FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.states FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.states FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY change ON wakeful.states FOR UPDATE USING (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.states FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.leases FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.leases FOR SELECT USING (owner = ANY ((SELECT wakeful.readable())::integer[]));
CREATE POLICY add ON wakeful.leases FOR INSERT WITH CHECK (owner = (SELECT wakeful.writable()));
CREATE POLICY change ON wakeful.leases FOR UPDATE USING (owner = (SELECT wakeful.writable()));
CREATE POLICY remove ON wakeful.leases FOR DELETE
    USING (owner = (SELECT wakeful.writable()) OR (
        current_setting('wakeful.reach', true) = 'down' AND owner = ANY ((SELECT wakeful.readable())::integer[])));

ALTER TABLE wakeful.tombstones ENABLE ROW LEVEL SECURITY;
ALTER TABLE wakeful.tombstones FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON wakeful.tombstones FOR SELECT USING (mark = ANY ((SELECT wakeful.marks())::bytea[]));
CREATE POLICY add ON wakeful.tombstones FOR INSERT WITH CHECK (mark = ANY ((SELECT wakeful.marks())::bytea[]));
CREATE POLICY change ON wakeful.tombstones FOR UPDATE USING (mark = ANY ((SELECT wakeful.marks())::bytea[]));
