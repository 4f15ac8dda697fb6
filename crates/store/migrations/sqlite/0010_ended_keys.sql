-- Keys that have ended are never read at a start, however many there are.
CREATE INDEX api_key_live ON api_key (created_ms) WHERE revoked_ms IS NULL;
-- A key that is let go is looked for among those that took another's place.
CREATE INDEX api_key_rotated_from ON api_key (rotated_from);

INSERT INTO schema_floor (version, oldest_known) VALUES (10, 7);
