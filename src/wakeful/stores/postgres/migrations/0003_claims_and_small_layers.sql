-- Facts are found by what they say of whom, and the few rows of the small layers without reading the others.
--
-- Keys are hashes, as those of labels are: a comparison of numbers may run before row security has had its say.
ALTER TABLE wakeful.nodes ADD COLUMN claim_key bigint GENERATED ALWAYS AS (
    hashtextextended((properties ->> 'attribute') || ' ' || (properties ->> 'subject'), 0)) STORED;

CREATE INDEX nodes_claim ON wakeful.nodes (owner, claim_key) WHERE claim_key IS NOT NULL;
CREATE INDEX nodes_standing ON wakeful.nodes (owner, layer) WHERE layer IN ('working', 'procedural', 'prospective');
