-- How upstream adapters are, as the leader says, and what people want of them.
CREATE TABLE adapter (
    name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    -- JSON.
    report TEXT COLLATE "C" NOT NULL,
    updated_ms BIGINT NOT NULL,
    accepted_by TEXT COLLATE "C" NOT NULL,
    paused_ms BIGINT,
    resumed_ms BIGINT,
    read_asked_ms BIGINT
);
-- Input of adapters that was not in the expected format.
CREATE TABLE adapter_sample (
    adapter TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (adapter, number)
);

INSERT INTO schema_floor (version, oldest_known) VALUES (11, 7);
