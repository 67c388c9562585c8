-- From version 10 to 11: files, which rest outside the database.
-- The bytes of files, sealed; they rest in a folder or a bucket under this name. The same bytes are
-- found again within a tenant.
CREATE TABLE blobs (
    blob       TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    hash       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    sealed     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX blobs_by_hash ON blobs (tenant, hash);
CREATE INDEX blobs_by_head ON blobs (substr(sealed, 1, 9));
-- Files that somebody may ask for: an instance, or whoever reads a room.
CREATE TABLE files (
    file       TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    holder     TEXT NOT NULL,
    blob       TEXT NOT NULL,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX files_by_holder ON files (holder);
CREATE INDEX files_by_blob ON files (blob);
CREATE INDEX files_by_end ON files (expires_at);
CREATE INDEX files_by_tenant ON files (tenant);
-- How many files a tenant has, how many blobs these are, and their bytes.
CREATE TABLE tenant_files (
    tenant TEXT PRIMARY KEY,
    files  INTEGER NOT NULL,
    blobs  INTEGER NOT NULL,
    bytes  INTEGER NOT NULL
) WITHOUT ROWID;
