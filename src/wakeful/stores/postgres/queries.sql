-- Named statements of the PostgreSQL store. A block begins with "-- name:"; a fragment is put in where {its name} stands.
-- Parameters are bound by the driver, always.

-- fragment: owners
ANY (ARRAY(SELECT s.id FROM wakeful.scopes s WHERE s.path = ANY (%(paths)s)))

-- fragment: mine
(SELECT s.id FROM wakeful.scopes s WHERE s.path = %(path)s)

-- fragment: below
ANY (ARRAY(
    SELECT s.id FROM wakeful.scopes s WHERE s.path = %(path)s
    UNION ALL
    SELECT s.id FROM wakeful.scopes s WHERE s.path > %(path)s || '/' AND s.path < %(path)s || '0'))

-- fragment: columns
n.id, o.path, n.layer, n.label, n.content, n.properties, n.importance, n.status, n.source, n.asserted_at, n.updated_at,
n.accessed_at, n.valid_from, n.valid_until, n.recorded_at, n.superseded_at, n.superseded_by, n.expires_at,
n.access_count, n.activation_count, n.pinned, n.embedding_model

-- fragment: outline
n.id, o.path, n.layer, n.session, n.source ->> 'speaker', (extract(epoch FROM n.asserted_at) * 1000000)::bigint,
n.importance, n.access_count + n.activation_count, n.label, n.terms, n.asks, n.tells_time, n.said,
CASE WHEN n.source ->> 'by' = 'extractor' OR n.layer = 'semantic' THEN n.source -> 'entries' ->> 0 END,
CASE WHEN n.terms IS NULL THEN n.content END

-- fragment: from_nodes
FROM wakeful.nodes n JOIN wakeful.scopes o ON o.id = n.owner

-- fragment: visible
n.status = ANY (%(statuses)s)
AND (%(layers)s::text[] IS NULL OR n.layer = ANY (%(layers)s))
AND (%(expired)s OR n.expires_at IS NULL OR n.expires_at > %(at)s)
AND ((%(superseded)s AND n.superseded_at IS NOT NULL)
    OR ((%(as_of)s::timestamptz IS NOT NULL OR n.superseded_at IS NULL)
        AND (n.valid_from IS NULL OR n.valid_from <= COALESCE(%(as_of)s::timestamptz, %(at)s))
        AND CASE WHEN %(as_of)s::timestamptz IS NULL THEN n.valid_until IS NULL OR n.valid_until > %(at)s
            ELSE COALESCE(n.valid_until, n.superseded_at) IS NULL
                OR COALESCE(n.valid_until, n.superseded_at) > %(as_of)s::timestamptz END))

-- fragment: edge_columns
e.id, o.path, e.source_id, e.target_id, e.relation, e.weight, e.provenance, e.evidence, e.properties, e.asserted_at,
e.updated_at, e.valid_from, e.valid_until, e.recorded_at, e.superseded_at, e.expires_at

-- name: enter
SELECT set_config('wakeful.scope', %(path)s, true), set_config('wakeful.reach', %(reach)s, true)

-- name: lock
SELECT CASE WHEN l.shared THEN pg_advisory_xact_lock_shared(l.key)::text ELSE pg_advisory_xact_lock(l.key)::text END
FROM unnest(%(keys)s::bigint[], %(shared)s::boolean[]) AS l(key, shared)

-- name: add_scope
INSERT INTO wakeful.scopes (path) VALUES (%(path)s) ON CONFLICT (path) DO NOTHING

-- name: own_scope
SELECT id, next_doc FROM wakeful.scopes WHERE path = %(path)s

-- name: count_scope
UPDATE wakeful.scopes SET nodes = nodes + %(nodes)s, words = words + %(words)s, next_doc = next_doc + %(docs)s
WHERE id = %(owner)s

-- name: erased_at
SELECT max(erased_at) FROM wakeful.tombstones WHERE mark = ANY (%(marks)s)

-- name: get_nodes
SELECT {columns} {from_nodes} WHERE n.id = ANY (%(ids)s) AND n.owner = {owners}

-- name: get_whole_nodes
SELECT {columns}, v.embedding {from_nodes} LEFT JOIN wakeful.vectors v ON v.place = n.place
WHERE n.id = ANY (%(ids)s) AND n.owner = {owners}

-- name: and_visible
AND {visible}

-- Each owner's rows come in order from its own index, so only as many are read as are wanted.
-- name: query_nodes
SELECT {columns} FROM wakeful.scopes o CROSS JOIN LATERAL (
    SELECT n.* FROM wakeful.nodes n WHERE n.owner = o.id AND {visible}

-- name: query_nodes.owners
) n WHERE o.path = ANY (%(paths)s)

-- name: query_nodes.updated_since
AND n.updated_at >= %(updated_since)s

-- name: query_nodes.label
AND n.label_key = hashtextextended(%(label)s, 0) AND n.label = %(label)s

-- name: query_nodes.no_label
AND n.label = ''

-- The key is of the claim's two texts, as column claim_key has it.
-- name: query_nodes.claim
AND n.claim_key = hashtextextended(%(attribute)s || ' ' || %(subject)s, 0)

-- Said in so many words, so that the index of these layers may be taken.
-- name: query_nodes.standing
AND n.layer IN ('working', 'procedural', 'prospective')

-- name: query_nodes.session
AND n.session = %(session)s

-- name: query_nodes.idle_since
AND n.used_at >= %(idle_since)s

-- name: query_nodes.idle_before
AND n.used_at < %(idle_before)s

-- name: query_nodes.accessed_since
AND n.accessed_at >= %(accessed_since)s

-- name: query_nodes.expires_before
AND n.expires_at <= %(expires_before)s

-- name: query_nodes.superseded_before
AND n.superseded_at < %(superseded_before)s

-- name: query_nodes.properties
AND NOT EXISTS (
    SELECT FROM jsonb_each(%(properties)s) w WHERE (n.properties -> w.key) IS DISTINCT FROM w.value)

-- name: query_nodes.after_up
AND n.id > %(after)s

-- name: query_nodes.after_down
AND n.id < %(after)s

-- name: query_nodes.updated_up
ORDER BY n.updated_at, n.id LIMIT %(limit)s

-- name: query_nodes.updated_down
ORDER BY n.updated_at DESC, n.id DESC LIMIT %(limit)s

-- Where another filter picks few rows, the added nothing keeps the planner from walking all in order of updating.
-- name: query_nodes.picked_up
ORDER BY n.updated_at + interval '0', n.id LIMIT %(limit)s

-- name: query_nodes.picked_down
ORDER BY n.updated_at + interval '0' DESC, n.id DESC LIMIT %(limit)s

-- name: query_nodes.asserted_up
ORDER BY n.asserted_at, n.id LIMIT %(limit)s

-- name: query_nodes.asserted_down
ORDER BY n.asserted_at DESC, n.id DESC LIMIT %(limit)s

-- name: query_nodes.recorded_up
ORDER BY n.recorded_at, n.id LIMIT %(limit)s

-- name: query_nodes.recorded_down
ORDER BY n.recorded_at DESC, n.id DESC LIMIT %(limit)s

-- name: query_nodes.importance_up
ORDER BY n.importance, n.id LIMIT %(limit)s

-- name: query_nodes.importance_down
ORDER BY n.importance DESC, n.id DESC LIMIT %(limit)s

-- The joined empty string keeps the planner from walking the ids of all owners in order.
-- name: query_nodes.id_up
ORDER BY n.id || '' LIMIT %(limit)s

-- name: query_nodes.id_down
ORDER BY n.id || '' DESC LIMIT %(limit)s

-- name: subtree_mark
SELECT o.path, n.doc {from_nodes} WHERE n.id = %(after)s AND n.owner = {below}

-- A scope's documents are numbered in the order of first writing, so each page begins where its index says.
-- name: subtree
SELECT {columns}, v.embedding FROM wakeful.scopes o CROSS JOIN LATERAL (
    SELECT n.* FROM wakeful.nodes n
    WHERE n.owner = o.id AND n.doc > CASE WHEN o.path = %(after_path)s THEN %(after_doc)s ELSE -1 END

-- name: subtree.updated_since
AND n.updated_at >= %(updated_since)s

-- name: subtree.stale_for
AND (n.embedding_model IS DISTINCT FROM %(stale_for)s
    OR NOT EXISTS (SELECT FROM wakeful.vectors t WHERE t.place = n.place))

-- name: subtree.scopes
    ORDER BY n.doc LIMIT %(limit)s
) n LEFT JOIN wakeful.vectors v ON v.place = n.place
WHERE o.path >= GREATEST(%(path)s::text COLLATE "C", %(after_path)s::text COLLATE "C") AND o.path < %(path)s || '0'
AND (o.path = %(path)s OR o.path > %(path)s || '/')
ORDER BY o.path, n.doc LIMIT %(limit)s

-- name: subtree_edges
SELECT {edge_columns} FROM wakeful.edges e JOIN wakeful.scopes o ON o.id = e.owner WHERE e.owner = {below}
ORDER BY o.path, e.id

-- name: get_edges
WITH wanted AS MATERIALIZED (SELECT n.place FROM wakeful.nodes n WHERE n.id = ANY (%(ids)s) AND n.owner = {owners})
SELECT DISTINCT {edge_columns}
FROM wanted w
CROSS JOIN LATERAL (
    SELECT both_ways.* FROM (
        SELECT t.* FROM wakeful.edges t
        WHERE t.source_place = w.place AND %(direction)s <> 'in' AND t.owner = {owners}
        UNION
        SELECT t.* FROM wakeful.edges t
        WHERE t.target_place = w.place AND %(direction)s <> 'out' AND t.owner = {owners}
    ) both_ways
    WHERE (%(relation)s::text IS NULL OR both_ways.relation = %(relation)s)
    AND (%(at)s::timestamptz IS NULL OR (both_ways.superseded_at IS NULL
        AND (both_ways.expires_at IS NULL OR both_ways.expires_at > %(at)s)
        AND (both_ways.valid_from IS NULL OR both_ways.valid_from <= %(at)s)
        AND (both_ways.valid_until IS NULL OR both_ways.valid_until > %(at)s)))
    ORDER BY both_ways.weight DESC, both_ways.id LIMIT %(limit)s
) e
JOIN wakeful.scopes o ON o.id = e.owner
ORDER BY e.weight DESC, e.id

-- name: adjacent
SELECT a.id, b.distance, {outline}
FROM wakeful.nodes a
CROSS JOIN LATERAL (
    (SELECT n.place, -row_number() OVER (ORDER BY n.asserted_at DESC, n.place DESC) AS distance
    FROM wakeful.nodes n
    WHERE n.owner = a.owner AND n.session = a.session AND n.layer = a.layer
    AND (n.asserted_at, n.place) < (a.asserted_at, a.place) AND {visible}
    ORDER BY n.asserted_at DESC, n.place DESC LIMIT %(distance)s)
    UNION ALL
    (SELECT n.place, row_number() OVER (ORDER BY n.asserted_at, n.place) AS distance
    FROM wakeful.nodes n
    WHERE n.owner = a.owner AND n.session = a.session AND n.layer = a.layer
    AND (n.asserted_at, n.place) > (a.asserted_at, a.place) AND {visible}
    ORDER BY n.asserted_at, n.place LIMIT %(distance)s)
) b
JOIN wakeful.nodes n ON n.place = b.place
JOIN wakeful.scopes o ON o.id = n.owner
WHERE a.id = ANY (%(ids)s) AND a.session IS NOT NULL AND a.owner = {owners}
ORDER BY array_position(%(ids)s::text[], a.id::text), b.distance

-- name: sizes
SELECT id, nodes, words, next_doc
-- name: vector_sizes
, (SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = 'wakeful.vectors'::regclass),
    (SELECT id FROM wakeful.models WHERE name = %(model)s),
    to_regclass('wakeful.vectors_near_' || (SELECT id FROM wakeful.models WHERE name = %(model)s)) IS NOT NULL
-- name: from_scopes
FROM wakeful.scopes WHERE path = ANY (%(paths)s) AND nodes > 0

-- One row for an owner and a term: a term that stands in most texts has hundreds of its own.
-- name: words
SELECT owner, term, array_agg(chunk ORDER BY chunk), array_agg(octet_length(entries) ORDER BY chunk),
    string_agg(entries, ''::bytea ORDER BY chunk)
FROM wakeful.words WHERE owner = {owners} AND term = ANY (%(terms)s) GROUP BY owner, term ORDER BY owner, term

-- name: hits_by_doc
SELECT {columns}, c.score
-- name: outlines_by_doc
SELECT {outline}, c.score
-- name: from_docs
FROM unnest(%(owners)s::integer[], %(docs)s::bigint[], %(scores)s::float8[])
    AS c(owner, doc, score)
JOIN wakeful.nodes n ON n.owner = c.owner AND n.doc = c.doc
JOIN wakeful.scopes o ON o.id = n.owner
WHERE n.owner = {owners} AND {visible}
ORDER BY c.score DESC, n.id LIMIT %(limit)s

-- name: hits_near
SELECT {columns}, -c.away
-- name: outlines_near
SELECT {outline}, -c.away
-- name: nearest
FROM (
    SELECT v.place, v.embedding <#> %(vector)b AS away FROM wakeful.vectors v
    WHERE v.owner = {owners} AND v.model = %(model)s
    ORDER BY v.embedding <#> %(vector)b, v.place LIMIT %(many)s
) c
JOIN wakeful.nodes n ON n.place = c.place
JOIN wakeful.scopes o ON o.id = n.owner
WHERE {visible}
ORDER BY c.away, n.id LIMIT %(limit)s

-- Whole numbers that the index must know when it is planned stand in for halfvec(0), -1 and LIMIT -1.
-- name: nearest_indexed
FROM (
    SELECT v.place, (v.embedding::halfvec(0)) <#> %(vector)b AS away FROM wakeful.vectors v
    WHERE v.owner = {owners} AND v.model = -1
    ORDER BY (v.embedding::halfvec(0)) <#> %(vector)b LIMIT -1
) c
JOIN wakeful.nodes n ON n.place = c.place
JOIN wakeful.scopes o ON o.id = n.owner
WHERE {visible}
ORDER BY c.away, n.id LIMIT %(limit)s

-- name: history
SELECT h.node, h.action, h.reason, h.at FROM wakeful.history h JOIN wakeful.nodes n ON n.place = h.place
WHERE n.id = %(id)s AND n.owner = {owners} ORDER BY h.number

-- name: owned
SELECT {columns}, v.embedding, n.place, n.doc FROM wakeful.nodes n JOIN wakeful.scopes o ON o.id = n.owner
LEFT JOIN wakeful.vectors v ON v.place = n.place
WHERE n.id = ANY (%(ids)s) AND n.owner = {mine}

-- name: add_nodes
INSERT INTO wakeful.nodes (owner, doc, id, layer, label, content, properties, importance, status, session, source,
    asserted_at, updated_at, accessed_at, valid_from, valid_until, recorded_at, superseded_at, superseded_by, expires_at,
    access_count, activation_count, pinned, embedding_model, due_at, event, terms, asks, tells_time, said)
SELECT %(owner)s, r.doc, r.id, r.layer, r.label, r.content, r.properties, r.importance, r.status, r.session, r.source,
    r.asserted_at, r.updated_at, r.accessed_at, r.valid_from, r.valid_until, r.recorded_at, r.superseded_at,
    r.superseded_by, r.expires_at, r.access_count, r.activation_count, r.pinned, r.embedding_model, r.due_at, r.event,
    r.terms, r.asks, r.tells_time, r.said
FROM jsonb_to_recordset(%(rows)s) AS r(doc bigint, id text, layer text, label text, content text, properties jsonb,
    importance float8, status text, session text, source jsonb, asserted_at timestamptz, updated_at timestamptz,
    accessed_at timestamptz, valid_from timestamptz, valid_until timestamptz, recorded_at timestamptz,
    superseded_at timestamptz, superseded_by text, expires_at timestamptz, access_count bigint,
    activation_count bigint, pinned boolean, embedding_model text, due_at timestamptz, event text, terms text,
    asks boolean, tells_time boolean, said bigint)
ORDER BY r.doc
RETURNING id, place

-- name: change_nodes
UPDATE wakeful.nodes n SET layer = r.layer, label = r.label, content = r.content, properties = r.properties,
    importance = r.importance, status = r.status, session = r.session, source = r.source, asserted_at = r.asserted_at,
    updated_at = r.updated_at, accessed_at = r.accessed_at, valid_from = r.valid_from, valid_until = r.valid_until,
    superseded_at = r.superseded_at, superseded_by = r.superseded_by, expires_at = r.expires_at,
    access_count = r.access_count, activation_count = r.activation_count, pinned = r.pinned,
    embedding_model = r.embedding_model, due_at = r.due_at, event = r.event, terms = r.terms, asks = r.asks,
    tells_time = r.tells_time, said = r.said,
    claimed_until = CASE WHEN r.unclaim THEN NULL ELSE n.claimed_until END
FROM jsonb_to_recordset(%(rows)s) AS r(place bigint, layer text, label text, content text, properties jsonb,
    importance float8, status text, session text, source jsonb, asserted_at timestamptz, updated_at timestamptz,
    accessed_at timestamptz, valid_from timestamptz, valid_until timestamptz, superseded_at timestamptz,
    superseded_by text, expires_at timestamptz, access_count bigint, activation_count bigint, pinned boolean,
    embedding_model text, due_at timestamptz, event text, terms text, asks boolean, tells_time boolean, said bigint,
    unclaim boolean)
WHERE n.place = r.place AND n.owner = %(owner)s

-- name: add_words
INSERT INTO wakeful.words AS w (owner, term, chunk, entries)
SELECT %(owner)s, term, chunk, entries FROM unnest(%(terms)s::bigint[], %(chunks)s::integer[], %(entries)s::bytea[])
    AS r(term, chunk, entries)
ORDER BY term, chunk
ON CONFLICT (owner, term, chunk) DO UPDATE SET entries = w.entries || excluded.entries

-- name: some_words
SELECT w.term, w.chunk, w.entries FROM wakeful.words w
JOIN unnest(%(terms)s::bigint[], %(chunks)s::integer[]) AS r(term, chunk) ON w.term = r.term AND w.chunk = r.chunk
WHERE w.owner = %(owner)s

-- name: change_words
UPDATE wakeful.words w SET entries = r.entries
FROM unnest(%(terms)s::bigint[], %(chunks)s::integer[], %(entries)s::bytea[]) AS r(term, chunk, entries)
WHERE w.owner = %(owner)s AND w.term = r.term AND w.chunk = r.chunk

-- name: drop_words
DELETE FROM wakeful.words w USING unnest(%(terms)s::bigint[], %(chunks)s::integer[]) AS r(term, chunk)
WHERE w.owner = %(owner)s AND w.term = r.term AND w.chunk = r.chunk

-- name: put_vectors
INSERT INTO wakeful.vectors AS v (place, owner, model, embedding)
SELECT r.place, %(owner)s, %(model)s, r.embedding
FROM unnest(%(places)s::bigint[], %(vectors)b) AS r(place, embedding) ORDER BY r.place
ON CONFLICT (place) DO UPDATE SET model = excluded.model, embedding = excluded.embedding

-- name: drop_vectors
DELETE FROM wakeful.vectors WHERE place = ANY (%(places)s) AND owner = %(owner)s

-- name: add_model
INSERT INTO wakeful.models (name) VALUES (%(model)s) ON CONFLICT (name) DO NOTHING

-- name: model_id
SELECT id FROM wakeful.models WHERE name = %(model)s

-- name: get_setting
SELECT value FROM wakeful.settings WHERE key = %(key)s

-- name: declare_setting
INSERT INTO wakeful.settings (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO NOTHING

-- name: put_setting
INSERT INTO wakeful.settings (key, value) VALUES (%(key)s, %(value)s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: drop_setting
DELETE FROM wakeful.settings WHERE key = %(key)s

-- name: visible_places
SELECT n.id, n.place FROM wakeful.nodes n WHERE n.id = ANY (%(ids)s) AND n.owner = {owners}

-- name: same_edges
SELECT {edge_columns} FROM wakeful.edges e JOIN wakeful.scopes o ON o.id = e.owner
JOIN unnest(%(sources)s::bigint[], %(targets)s::bigint[], %(relations)s::text[]) AS r(source, target, relation)
    ON e.source_place = r.source AND e.target_place = r.target AND e.relation = r.relation
WHERE e.owner = {mine}

-- name: put_edges
INSERT INTO wakeful.edges AS e (id, owner, source_place, target_place, source_id, target_id, relation, weight,
    provenance, evidence, properties, asserted_at, updated_at, valid_from, valid_until, recorded_at, superseded_at,
    expires_at)
SELECT r.id, %(owner)s, r.source_place, r.target_place, r.source_id, r.target_id, r.relation, r.weight, r.provenance,
    r.evidence, r.properties, r.asserted_at, r.updated_at, r.valid_from, r.valid_until, r.recorded_at,
    r.superseded_at, r.expires_at
FROM jsonb_to_recordset(%(rows)s) AS r(id text, source_place bigint, target_place bigint, source_id text,
    target_id text, relation text, weight float8, provenance text, evidence jsonb, properties jsonb,
    asserted_at timestamptz, updated_at timestamptz, valid_from timestamptz, valid_until timestamptz,
    recorded_at timestamptz, superseded_at timestamptz, expires_at timestamptz)
ORDER BY r.id
ON CONFLICT (source_place, target_place, owner, relation) DO UPDATE SET weight = excluded.weight,
    provenance = excluded.provenance, evidence = excluded.evidence, properties = excluded.properties,
    asserted_at = excluded.asserted_at, updated_at = excluded.updated_at, valid_from = excluded.valid_from,
    valid_until = excluded.valid_until, superseded_at = excluded.superseded_at, expires_at = excluded.expires_at

-- name: touch_access
UPDATE wakeful.nodes n SET access_count = n.access_count + 1, accessed_at = GREATEST(n.accessed_at, %(at)s)
WHERE n.id = ANY (%(ids)s) AND n.owner = {mine}

-- name: touch_activation
UPDATE wakeful.nodes n SET activation_count = n.activation_count + 1, accessed_at = GREATEST(n.accessed_at, %(at)s)
WHERE n.id = ANY (%(ids)s) AND n.owner = {mine}

-- name: delete_nodes
DELETE FROM wakeful.nodes n WHERE n.place = ANY (%(places)s) AND n.owner = {mine}

-- name: delete_edges
DELETE FROM wakeful.edges e WHERE e.id = ANY (%(ids)s) AND e.owner = {mine}

-- name: log
INSERT INTO wakeful.history (place, owner, node, action, reason, at)
SELECT r.place, %(owner)s, r.node, r.action, r.reason, r.at
FROM jsonb_to_recordset(%(rows)s) AS r(number integer, place bigint, node jsonb, action text, reason text, at timestamptz)
ORDER BY r.number

-- name: due
SELECT {columns}, n.place {from_nodes}
WHERE n.owner = {mine} AND n.due_at <= %(at)s AND (n.claimed_until IS NULL OR n.claimed_until <= %(at)s) AND {visible}
ORDER BY n.due_at, n.id LIMIT %(limit)s
FOR UPDATE OF n SKIP LOCKED

-- name: due_event
SELECT {columns}, n.place {from_nodes}
WHERE n.owner = {mine} AND n.event = %(event)s
AND (n.claimed_until IS NULL OR n.claimed_until <= %(at)s) AND {visible}
ORDER BY n.id LIMIT %(limit)s
FOR UPDATE OF n SKIP LOCKED

-- name: claim
UPDATE wakeful.nodes n SET claimed_until = %(until)s WHERE n.place = ANY (%(places)s) AND n.owner = {mine}

-- name: count_below
SELECT
    (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = {below}),
    (SELECT count(*) FROM wakeful.edges e WHERE e.owner = {below}),
    (SELECT count(*) FROM wakeful.history h WHERE h.owner = {below}),
    (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = {below} AND (n.due_at IS NOT NULL OR n.event IS NOT NULL)),
    (SELECT count(*) FROM wakeful.vectors v WHERE v.owner = {below}),
    (SELECT count(*) FROM wakeful.states t WHERE t.owner = {below}),
    (SELECT count(*) FROM wakeful.leases l WHERE l.owner = {below}),
    (SELECT count(*) FROM wakeful.scopes s WHERE s.id = {below} AND s.nodes > 0)

-- name: erase_words
DELETE FROM wakeful.words WHERE owner = {below}

-- name: erase_edges
DELETE FROM wakeful.edges WHERE owner = {below}

-- name: erase_states
DELETE FROM wakeful.states WHERE owner = {below}

-- name: erase_leases
DELETE FROM wakeful.leases WHERE owner = {below}

-- name: erase_nodes
DELETE FROM wakeful.nodes WHERE owner = {below}

-- name: erase_scopes
DELETE FROM wakeful.scopes WHERE id = {below}

-- name: left_below
SELECT
    (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = {below})
    + (SELECT count(*) FROM wakeful.words w WHERE w.owner = {below})
    + (SELECT count(*) FROM wakeful.vectors v WHERE v.owner = {below})
    + (SELECT count(*) FROM wakeful.edges e WHERE e.owner = {below})
    + (SELECT count(*) FROM wakeful.history h WHERE h.owner = {below})
    + (SELECT count(*) FROM wakeful.states t WHERE t.owner = {below})

-- name: tombstone
INSERT INTO wakeful.tombstones AS t (mark, erased_at) VALUES (%(mark)s, %(at)s)
ON CONFLICT (mark) DO UPDATE SET erased_at = GREATEST(t.erased_at, excluded.erased_at)

-- name: stats
SELECT
    (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = {mine}),
    (SELECT count(*) FROM wakeful.edges e WHERE e.owner = {mine}),
    (SELECT count(*) FROM wakeful.history h WHERE h.owner = {mine}),
    (SELECT count(*) FROM wakeful.vectors v WHERE v.owner = {mine}),
    (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = {mine} AND n.superseded_at IS NOT NULL),
    (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = {owners})

-- name: stats_groups
SELECT n.layer, n.status, count(*) FROM wakeful.nodes n WHERE n.owner = {mine} GROUP BY n.layer, n.status

-- name: acquire_lease
INSERT INTO wakeful.leases AS l (owner, holder, token, until)
VALUES (%(owner)s, %(holder)s, nextval('wakeful.tokens'), %(until)s)
ON CONFLICT (owner) DO UPDATE SET holder = excluded.holder, token = nextval('wakeful.tokens'), until = excluded.until
WHERE l.holder = excluded.holder OR l.until <= %(at)s
RETURNING l.token

-- name: renew_lease
UPDATE wakeful.leases SET until = %(until)s
WHERE owner = {mine} AND holder = %(holder)s AND token = %(token)s AND until > %(at)s

-- name: release_lease
DELETE FROM wakeful.leases WHERE owner = {mine} AND holder = %(holder)s AND token = %(token)s

-- name: fence
SELECT token FROM wakeful.leases WHERE owner = {mine} FOR SHARE

-- name: get_state
SELECT value::text FROM wakeful.states WHERE owner = {mine} AND key = %(key)s

-- name: put_state
INSERT INTO wakeful.states (owner, key, value) VALUES (%(owner)s, %(key)s, %(value)s::json)
ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value

-- name: drop_state
DELETE FROM wakeful.states WHERE owner = {mine} AND key = %(key)s

-- name: scopes_below
SELECT s.path FROM wakeful.scopes s WHERE s.id = {below} AND s.nodes > 0
AND (%(after)s::text IS NULL OR s.path > %(after)s) ORDER BY s.path LIMIT %(limit)s

-- name: all_scopes
SELECT s.path FROM wakeful.scopes s WHERE s.nodes > 0
AND (%(after)s::text IS NULL OR s.path > %(after)s) ORDER BY s.path LIMIT %(limit)s
