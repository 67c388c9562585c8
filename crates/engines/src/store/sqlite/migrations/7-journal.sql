-- From version 6 to 7, what the journal tells of turns. Nothing is known of earlier ones.
ALTER TABLE journal ADD COLUMN held_at INTEGER;
ALTER TABLE journal ADD COLUMN interrupted_at INTEGER;
