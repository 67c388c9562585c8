-- Several nodes: as whom the holder of a bot's lease works on the ledger, which nodes are there,
-- and what people did with link codes, counted for all of them.
ALTER TABLE leases ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
CREATE TABLE nodes (
    node       TEXT PRIMARY KEY,
    owner      INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    takes      INTEGER NOT NULL,
    facts      TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE link_tries (
    who   TEXT PRIMARY KEY,
    wrong TEXT NOT NULL,
    used  TEXT,
    at    INTEGER NOT NULL
) WITHOUT ROWID;
