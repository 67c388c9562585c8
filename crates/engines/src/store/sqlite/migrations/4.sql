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
