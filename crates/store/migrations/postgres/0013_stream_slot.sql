-- The nodes that hold streams, and until when, by this database's clock.
CREATE TABLE stream_node (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    until_ms BIGINT NOT NULL
);
-- How many streams of a key a node has open, or is about to open.
CREATE TABLE stream_slot (
    key_id TEXT COLLATE "C" NOT NULL,
    node_id TEXT COLLATE "C" NOT NULL,
    held BIGINT NOT NULL CHECK (held >= 1),
    PRIMARY KEY (key_id, node_id)
);
CREATE INDEX stream_slot_node ON stream_slot (node_id);

INSERT INTO schema_floor (version, oldest_known) VALUES (13, 12);
