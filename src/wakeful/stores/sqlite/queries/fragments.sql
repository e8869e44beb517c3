-- Pieces that other queries name in braces. They hold no data: every value is a bound parameter.

-- name: columns
n.row, n.id, s.path, n.layer, n.status, n.label, n.content, n.properties, n.importance,
n.session, n.turn, n.ref, n.speaker, n.entries, n.by, n.trust,
n.asserted, n.updated, n.recorded, n.accessed, n.valid_from, n.valid_until, n.superseded, n.superseded_by, n.expires,
n.access_count, n.activation_count, n.pinned, n.embedding_model

-- name: visible
-- Mirrors Visibility.admits.
n.status IN (SELECT value FROM json_each(:statuses))
AND (:layers IS NULL OR n.layer IN (SELECT value FROM json_each(:layers)))
AND (:expired OR n.expires IS NULL OR n.expires > :at)
AND (
    (:with_superseded AND n.superseded IS NOT NULL)
    OR (
        :as_of IS NULL
        AND n.superseded IS NULL
        AND (n.valid_from IS NULL OR n.valid_from <= :at)
        AND (n.valid_until IS NULL OR :at < n.valid_until)
    )
    OR (
        :as_of IS NOT NULL
        AND (n.valid_from IS NULL OR n.valid_from <= :as_of)
        AND (coalesce(n.valid_until, n.superseded) IS NULL OR :as_of < coalesce(n.valid_until, n.superseded))
    )
)

-- name: filtered
(:label IS NULL OR n.label = :label)
AND (:session IS NULL OR n.session = :session)
AND (:properties IS NULL OR has_properties(n.properties, :properties))
AND (:updated_since IS NULL OR n.updated >= :updated_since)
AND (:idle_since IS NULL OR max(n.updated, coalesce(n.accessed, n.updated)) >= :idle_since)
AND (:idle_before IS NULL OR max(n.updated, coalesce(n.accessed, n.updated)) < :idle_before)
AND (:accessed_since IS NULL OR n.accessed >= :accessed_since)
AND (:expires_before IS NULL OR n.expires <= :expires_before)
AND (:superseded_before IS NULL OR n.superseded < :superseded_before)
AND (:after IS NULL OR CASE WHEN :descending THEN n.id < :after ELSE n.id > :after END)

-- name: ordered
CASE
    WHEN NOT :descending THEN NULL
    WHEN :order = 'updated' THEN n.updated
    WHEN :order = 'asserted' THEN n.asserted
    WHEN :order = 'recorded' THEN n.recorded
    WHEN :order = 'importance' THEN n.importance
END DESC,
CASE WHEN :descending THEN n.id END DESC,
CASE
    WHEN :order = 'updated' THEN n.updated
    WHEN :order = 'asserted' THEN n.asserted
    WHEN :order = 'recorded' THEN n.recorded
    WHEN :order = 'importance' THEN n.importance
END,
n.id

-- name: fresh_edge
-- Mirrors MemoryEdge.in_force_at.
(
    :at IS NULL
    OR (
        e.superseded IS NULL
        AND (e.expires IS NULL OR :at < e.expires)
        AND (e.valid_from IS NULL OR e.valid_from <= :at)
        AND (e.valid_until IS NULL OR :at < e.valid_until)
    )
)

-- name: edge_columns
e.id, s.path, a.id, b.id, e.relation, e.weight, e.provenance, e.evidence, e.properties,
e.asserted, e.updated, e.recorded, e.valid_from, e.valid_until, e.superseded, e.expires
