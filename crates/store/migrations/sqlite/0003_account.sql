-- People: developers and operators. An account without a password has never been entered by its one-time link.
CREATE TABLE account (
    id TEXT PRIMARY KEY NOT NULL,
    -- In lower case: one address, one account.
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('developer', 'operator')),
    -- A PHC string, which carries its own parameters.
    password TEXT,
    created_ms BIGINT NOT NULL,
    suspended_ms BIGINT,
    -- When an operator opened the live world to this account.
    production_ms BIGINT,
    -- The shared secret is needed in clear to compute codes; it is in force once a first code was entered.
    totp_secret BLOB,
    totp_confirmed_ms BIGINT,
    -- The newest time step whose code was accepted: a code is good once.
    totp_step BIGINT
);

-- digest: SHA-256 of the cookie's token. stage: after the password only, or after all factors.
CREATE TABLE session (
    digest BLOB PRIMARY KEY NOT NULL,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES account (id),
    stage TEXT NOT NULL CHECK (stage IN ('password', 'full')),
    created_ms BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL
);

CREATE INDEX session_account ON session (account_id);

-- One-time links. account_id: whose password is set anew; null for a sign-in that makes the account.
CREATE TABLE link (
    digest BLOB PRIMARY KEY NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('first_operator', 'invitation', 'password_reset')),
    account_id TEXT REFERENCES account (id),
    -- The only address an invitation is for; null is any.
    email TEXT,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    used_ms BIGINT
);

CREATE TABLE recovery_code (
    account_id TEXT NOT NULL REFERENCES account (id),
    digest BLOB NOT NULL,
    PRIMARY KEY (account_id, digest)
);

CREATE TABLE access_request (
    id TEXT PRIMARY KEY NOT NULL,
    account_id TEXT NOT NULL REFERENCES account (id),
    purpose TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'refused')),
    decided_ms BIGINT,
    decided_by TEXT REFERENCES account (id),
    note TEXT
);

-- One open question for each account at a time.
CREATE UNIQUE INDEX access_request_pending ON access_request (account_id) WHERE state = 'pending';

-- Append-only: the triggers refuse what the program never does.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    at_ms BIGINT NOT NULL,
    -- Null for somebody without an account: the command line, the first start, a stranger.
    account_id TEXT,
    -- As whom they were known then: an address, or a word such as "command line".
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    address TEXT NOT NULL
);

CREATE INDEX audit_account ON audit (account_id, seq);

CREATE TRIGGER audit_is_not_rewritten BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_is_not_shortened BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

-- Null: made on the command line, nobody's in particular.
ALTER TABLE api_key ADD COLUMN account_id TEXT REFERENCES account (id);
ALTER TABLE api_key ADD COLUMN last_used_ms BIGINT;
-- Out of force while its account is suspended, and back in force after.
ALTER TABLE api_key ADD COLUMN suspended_ms BIGINT;

CREATE INDEX api_key_account ON api_key (account_id);
