-- How many streams a key may have open; null is the operator's setting.
ALTER TABLE api_key ADD COLUMN streams BIGINT CHECK (streams >= 1);
