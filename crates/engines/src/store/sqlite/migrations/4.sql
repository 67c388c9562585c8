-- From version 3 to 4. The ledger knows what it needs without reading bodies:
-- who asked, where it goes, what it changes, and how often a crash cut it off.
ALTER TABLE actions ADD COLUMN gateway_id TEXT;
ALTER TABLE actions ADD COLUMN thread_id TEXT;
ALTER TABLE actions ADD COLUMN edits TEXT;
ALTER TABLE actions ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;

-- To find what may be forgotten of a tenant that has used up its disk.
CREATE INDEX actions_by_tenant ON actions (tenant, id);

-- Ten thousand gateways are read at every start.
CREATE INDEX gateway_secrets_of ON gateway_secrets (tenant, gateway_id);

-- How long a gap is shown is counted from when it came about.
ALTER TABLE gaps ADD COLUMN lost_at INTEGER NOT NULL DEFAULT 0;
UPDATE gaps SET lost_at = last_at;

-- The audit log is kept by number as well as by age, each sort for itself, and
-- no clock that is ahead makes it go.
DROP TRIGGER audit_stays;
DROP TRIGGER audit_is_kept;
ALTER TABLE audit ADD COLUMN sort TEXT NOT NULL DEFAULT 'other';
UPDATE audit SET sort = CASE
    WHEN outcome LIKE 'refused%' OR action = 'audit.swallowed' THEN 'refusal'
    WHEN actor IN ('operator', 'server') THEN 'operator'
    ELSE 'other' END;
CREATE INDEX audit_by_sort ON audit (sort, id);
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.id > (SELECT max(id) FROM audit) - 100000
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;

-- Tenants that were removed and of which something is still to be deleted.
CREATE TABLE removals (
    tenant     TEXT PRIMARY KEY,
    -- JSON arrays: of its instances, and of its web-chat rooms.
    instances  TEXT NOT NULL,
    rooms      TEXT NOT NULL,
    -- The last of their lines: later ones are somebody else's.
    lines_to   INTEGER NOT NULL,
    removed_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Who has to give way when an inbox is full, found without a scan.
CREATE INDEX inbox_by_chat ON inbox (instance, chat_id, seq);

-- Chats that lost an entry to a quota and were not told yet.
CREATE TABLE untold_gaps (
    instance   INTEGER NOT NULL,
    chat_id    TEXT NOT NULL,
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    message_id TEXT NOT NULL,
    thread_id  TEXT,
    PRIMARY KEY (instance, chat_id)
) WITHOUT ROWID;
