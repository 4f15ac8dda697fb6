-- Text that is searched or ordered by is compared byte by byte, as SQLite does, whatever the database's language.
-- revoked_ms: ended at once, at that instant. It is never compared with a clock, so a node whose clock is
-- behind cannot let the key in again. expires_ms: the end of a rotation's overlap, compared with the clock.
CREATE TABLE api_key (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('sandbox', 'production')),
    digest BYTEA NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    -- Comma-separated; null is every group.
    sport_groups TEXT,
    -- Comma-separated; empty is none.
    permissions TEXT NOT NULL,
    burst_per_minute BIGINT NOT NULL CHECK (burst_per_minute >= 1),
    requests_per_day BIGINT NOT NULL CHECK (requests_per_day >= 1),
    requests_per_month BIGINT CHECK (requests_per_month >= 1),
    -- The lineage whose usage this key spends: a rotated key keeps its predecessor's.
    meter_id TEXT COLLATE "C" NOT NULL,
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT,
    expires_ms BIGINT,
    rotated_from TEXT COLLATE "C" REFERENCES api_key (id)
);

CREATE TABLE feed (
    name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    digest BYTEA NOT NULL UNIQUE,
    bookmaker TEXT,
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT
);

CREATE TABLE setting (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
