-- Whether a token that is bound to a bookmaker may report scores too. One that is bound to none always may.
ALTER TABLE feed ADD COLUMN scores BIGINT NOT NULL DEFAULT 0 CHECK (scores IN (0, 1));

INSERT INTO schema_floor (version, oldest_known) VALUES (9, 7);
