-- What ranking needs of a text, so that a recall does not read and take apart the texts of two hundred rows to show ten.
--
-- Rows of before have none: they are taken apart when they are read, and get theirs with their next change.
ALTER TABLE wakeful.nodes
    ADD COLUMN terms text,
    ADD COLUMN asks boolean,
    ADD COLUMN tells_time boolean,
    ADD COLUMN said bigint;
