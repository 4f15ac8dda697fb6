-- Who should write a world's log, until an instant of this database's clock.
CREATE TABLE lead (
    name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    -- One more with every change of hands.
    term BIGINT NOT NULL CHECK (term >= 1),
    ends_ms BIGINT NOT NULL
);
