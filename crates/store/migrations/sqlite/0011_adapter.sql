-- How upstream adapters are, as the leader says, and what people want of them.
CREATE TABLE adapter (
    name TEXT PRIMARY KEY NOT NULL,
    -- JSON.
    report TEXT NOT NULL,
    updated_ms BIGINT NOT NULL,
    accepted_by TEXT NOT NULL,
    paused_ms BIGINT,
    resumed_ms BIGINT,
    read_asked_ms BIGINT
);
-- Input of adapters that was not in the expected format.
CREATE TABLE adapter_sample (
    adapter TEXT NOT NULL,
    number BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    unit TEXT NOT NULL,
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (adapter, number)
);

INSERT INTO schema_floor (version, oldest_known) VALUES (11, 7);
