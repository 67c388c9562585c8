-- From version 4 to 5, the ledger. An action has an owner, the process that works on it.
ALTER TABLE actions ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
-- And who was about to call its provider last.
ALTER TABLE actions ADD COLUMN begun_by INTEGER NOT NULL DEFAULT 0;
-- What a process left and another took up. Apart: its row holds the whole text, and would
-- be written anew with it.
CREATE TABLE adoptions (
    action  INTEGER PRIMARY KEY,
    owner   INTEGER NOT NULL,
    crashes INTEGER NOT NULL
);
CREATE VIEW unfinished AS
SELECT id, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits, body, received_at, state,
       begun_at, begun_by, capability, way,
       coalesce(adoptions.owner, actions.owner) AS owner, coalesce(adoptions.crashes, actions.crashes) AS crashes
FROM actions LEFT JOIN adoptions ON action = id WHERE state IN ('accepted', 'sending');
