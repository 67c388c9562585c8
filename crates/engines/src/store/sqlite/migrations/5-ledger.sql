-- From version 4 to 5, the ledger. An action has an owner, the process that works on it.
ALTER TABLE actions ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
-- And who was about to call its provider last.
ALTER TABLE actions ADD COLUMN begun_by INTEGER NOT NULL DEFAULT 0;
