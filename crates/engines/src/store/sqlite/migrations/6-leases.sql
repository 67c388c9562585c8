-- Who does what only one node may do at a time. The token grows with every holder.
CREATE TABLE leases (
    name     TEXT PRIMARY KEY,
    node     TEXT NOT NULL,
    token    INTEGER NOT NULL,
    -- When it ends; NULL for one without an end.
    until    INTEGER,
    -- Whether it was given back.
    released INTEGER NOT NULL
) WITHOUT ROWID;
