-- The last change that this node was waited for in vain, until its right to let keys in had run out, after minutes in which it was
-- not seen. While it has confirmed less than that it lets nobody in, and nobody waits for it. Null: a program from before.
ALTER TABLE node ADD COLUMN run_out BIGINT;

INSERT INTO schema_floor (version, oldest_known) VALUES (8, 7);
