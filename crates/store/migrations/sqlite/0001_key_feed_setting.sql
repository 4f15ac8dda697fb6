-- revoked_ms: ended at once, at that instant. It is never compared with a clock, so a node whose clock is
-- behind cannot let the key in again. expires_ms: the end of a rotation's overlap, compared with the clock.
CREATE TABLE api_key (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('sandbox', 'production')),
    digest BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    -- Comma-separated; null is every group.
    sport_groups TEXT,
    -- Comma-separated; empty is none.
    permissions TEXT NOT NULL,
    burst_per_minute BIGINT NOT NULL CHECK (burst_per_minute >= 1),
    requests_per_day BIGINT NOT NULL CHECK (requests_per_day >= 1),
    requests_per_month BIGINT CHECK (requests_per_month >= 1),
    -- The lineage whose usage this key spends: a rotated key keeps its predecessor's.
    meter_id TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT,
    expires_ms BIGINT,
    rotated_from TEXT REFERENCES api_key (id)
);

CREATE TABLE feed (
    name TEXT PRIMARY KEY NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    bookmaker TEXT,
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT
);

CREATE TABLE setting (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
