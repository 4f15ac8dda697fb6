-- What keys were used for, by hour and by day. Hours are kept for days, days for a year and more; a count goes into
-- both at once, so that neither has to be made from the other.
CREATE TABLE usage_hour (
    key_id TEXT COLLATE "C" NOT NULL REFERENCES api_key (id),
    start_ms BIGINT NOT NULL,
    endpoint TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('ok', 'not_modified', 'refused', 'limited', 'failed')),
    requests BIGINT NOT NULL CHECK (requests >= 0),
    PRIMARY KEY (key_id, start_ms, endpoint, outcome)
);

CREATE INDEX usage_hour_start ON usage_hour (start_ms);

CREATE TABLE usage_day (
    key_id TEXT COLLATE "C" NOT NULL REFERENCES api_key (id),
    start_ms BIGINT NOT NULL,
    endpoint TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('ok', 'not_modified', 'refused', 'limited', 'failed')),
    requests BIGINT NOT NULL CHECK (requests >= 0),
    PRIMARY KEY (key_id, start_ms, endpoint, outcome)
);

CREATE INDEX usage_day_start ON usage_day (start_ms);

-- That a share of a window was reached, so that it is told once, whatever restarts.
CREATE TABLE quota_alert (
    meter_id TEXT COLLATE "C" NOT NULL,
    window_kind TEXT COLLATE "C" NOT NULL CHECK (window_kind IN ('day', 'month')),
    window_start_ms BIGINT NOT NULL,
    percent BIGINT NOT NULL,
    PRIMARY KEY (meter_id, window_kind, window_start_ms, percent)
);

-- What the key's client last called itself.
ALTER TABLE api_key ADD COLUMN last_agent TEXT;

-- When mail was known to reach the account's address, or an operator vouched for it. Who is here already is not asked.
ALTER TABLE account ADD COLUMN confirmed_ms BIGINT;
UPDATE account SET confirmed_ms = created_ms;

-- A new purpose: showing that mail arrives.
ALTER TABLE link DROP CONSTRAINT link_purpose_check;
ALTER TABLE link ADD CONSTRAINT link_purpose_check
    CHECK (purpose IN ('first_operator', 'invitation', 'password_reset', 'confirmation'));
