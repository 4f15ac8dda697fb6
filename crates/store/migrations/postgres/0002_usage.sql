-- What has been leased out of each window. The window leads the primary key: loading the current windows
-- of all meters and pruning old ones both search by it.
CREATE TABLE usage (
    window_kind TEXT COLLATE "C" NOT NULL CHECK (window_kind IN ('minute', 'day', 'month')),
    window_start_ms BIGINT NOT NULL,
    meter_id TEXT COLLATE "C" NOT NULL,
    granted BIGINT NOT NULL CHECK (granted >= 0),
    PRIMARY KEY (window_kind, window_start_ms, meter_id)
);
