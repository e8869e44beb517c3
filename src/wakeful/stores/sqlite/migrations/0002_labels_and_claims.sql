-- Version 2: nodes are found by their label, and facts by what they say of whom.

CREATE INDEX node_by_label ON node (scope, label) WHERE label <> '';

CREATE INDEX node_by_claim ON node (
    scope, json_extract(properties, '$.attribute'), json_extract(properties, '$.subject')
) WHERE json_extract(properties, '$.attribute') IS NOT NULL;
