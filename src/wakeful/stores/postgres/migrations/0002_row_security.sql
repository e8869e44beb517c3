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
