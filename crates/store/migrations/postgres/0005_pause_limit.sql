-- A paused feed's pushes are refused until an operator resumes it; its token stays good.
ALTER TABLE feed ADD COLUMN paused_ms BIGINT;

-- What an operator allows an account; null is what every account has. The last three are the limits that each of its
-- production keys has; no monthly limit is null too.
ALTER TABLE account ADD COLUMN keys_max BIGINT CHECK (keys_max >= 0);
ALTER TABLE account ADD COLUMN burst_per_minute BIGINT CHECK (burst_per_minute >= 1);
ALTER TABLE account ADD COLUMN requests_per_day BIGINT CHECK (requests_per_day >= 1);
ALTER TABLE account ADD COLUMN requests_per_month BIGINT CHECK (requests_per_month >= 1);

-- The log is looked through by what was done and to what.
CREATE INDEX audit_action ON audit (action, seq);
