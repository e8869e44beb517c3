-- name: due_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_due
JOIN scope AS s ON s.id = n.scope
WHERE n.scope = :scope AND n.due <= :at AND (n.claimed IS NULL OR n.claimed <= :at) AND {visible}
ORDER BY n.due, n.id
LIMIT :limit

-- name: event_nodes
SELECT {columns}
FROM node AS n INDEXED BY node_by_event
JOIN scope AS s ON s.id = n.scope
WHERE n.scope = :scope AND n.event = :event AND (n.claimed IS NULL OR n.claimed <= :at) AND {visible}
ORDER BY n.id
LIMIT :limit

-- name: claim_rows
UPDATE node SET claimed = :until WHERE row IN (SELECT value FROM json_each(:rows))

-- name: settle_row
UPDATE node SET properties = :properties, due = :due, event = :event, claimed = NULL WHERE row = :row

-- name: lease_of
SELECT owner, token, until FROM lease WHERE scope = :scope

-- name: next_token
UPDATE counter SET token = token + 1 RETURNING token

-- name: put_lease
INSERT INTO lease (scope, owner, token, until) VALUES (:scope, :owner, :token, :until)
ON CONFLICT (scope) DO UPDATE SET owner = excluded.owner, token = excluded.token, until = excluded.until

-- name: renew_lease
UPDATE lease SET until = :until
WHERE scope = :scope AND owner = :owner AND token = :token AND until > :at

-- name: drop_lease
DELETE FROM lease WHERE scope = :scope AND owner = :owner AND token = :token

-- name: get_state
SELECT value FROM state WHERE scope = :scope AND key = :key

-- name: put_state
INSERT INTO state (scope, key, value) VALUES (:scope, :key, :value)
ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value

-- name: drop_state
DELETE FROM state WHERE scope = :scope AND key = :key
