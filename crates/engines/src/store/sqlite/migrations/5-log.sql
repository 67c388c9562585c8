-- The row of an instance is its lock: numbers are given under it, counted up by one.
ALTER TABLE instances ADD COLUMN tail INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN redrives INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN node TEXT NOT NULL DEFAULT '';

-- The numbers so far were of all instances together. New ones begin above every
-- one of them: a late acknowledgement of an old number must settle nothing else.
INSERT INTO notes (name, value)
    SELECT 'log_base', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0);
UPDATE instances SET
    tail = (SELECT CAST(value AS INTEGER) FROM notes WHERE name = 'log_base'),
    waiting = (SELECT count(*) FROM inbox e WHERE e.instance = instances.instance AND e.dead_at IS NULL),
    bytes = (SELECT coalesce(sum(length(e.body)), 0) FROM inbox e
             WHERE e.instance = instances.instance AND e.dead_at IS NULL);

ALTER TABLE journal RENAME COLUMN seq TO id;
ALTER TABLE journal ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
UPDATE journal SET seq = id;
CREATE INDEX journal_lost ON journal (instance, seq) WHERE outcome = 'lost: the inbox was over its quota';

ALTER TABLE inbox ADD COLUMN journal INTEGER NOT NULL DEFAULT 0;
UPDATE inbox SET journal = seq;
