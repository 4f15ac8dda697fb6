-- Every change of keys, feed tokens and maintenance raises one number in its own transaction. Whoever has read
-- everything up to that number knows who may come in. Its row is 'keys'; without it the number is 0. The row 'era' has the
-- number that it was raised to when the database was found to be set back.
CREATE TABLE key_change (
    name TEXT PRIMARY KEY NOT NULL,
    number BIGINT NOT NULL CHECK (number >= 0)
);

-- The number of a key's last change; null only within the transaction that changes it.
ALTER TABLE api_key ADD COLUMN change_number BIGINT;
UPDATE api_key SET change_number = 0;
CREATE INDEX api_key_change ON api_key (change_number);

-- Every process that lets keys in, and the number up to which it has read.
CREATE TABLE node (
    id TEXT PRIMARY KEY NOT NULL,
    confirmed BIGINT NOT NULL,
    -- For how long it lets keys in without having asked.
    trust_ms BIGINT NOT NULL,
    -- By this database's clock.
    seen_ms BIGINT NOT NULL
);

-- A migration that programs from before it can live with says so here, in its own transaction: they must know the
-- migrations up to oldest_known.
CREATE TABLE schema_floor (
    version BIGINT PRIMARY KEY NOT NULL,
    oldest_known BIGINT NOT NULL
);
