-- From version 3 to 4: files, which rest outside the database. Nodes of
-- earlier versions know nothing of them, and go on.
-- The bytes of files, sealed; they rest in a folder or a bucket under this name. The same bytes are
-- found again within a tenant.
CREATE TABLE blobs (
    blob       TEXT COLLATE "C" PRIMARY KEY,
    tenant     TEXT COLLATE "C" NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL,
    size       BIGINT NOT NULL,
    sealed     BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX blobs_by_hash ON blobs (tenant, hash);
CREATE INDEX blobs_by_head ON blobs (substr(sealed, 1, 9));
-- Files that somebody may ask for: an instance, or whoever reads a room.
CREATE TABLE files (
    file       TEXT COLLATE "C" PRIMARY KEY,
    tenant     TEXT COLLATE "C" NOT NULL,
    holder     TEXT COLLATE "C" NOT NULL,
    blob       TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    media_type TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX files_by_holder ON files (holder);
CREATE INDEX files_by_blob ON files (blob);
CREATE INDEX files_by_end ON files (expires_at);
CREATE INDEX files_by_tenant ON files (tenant);
-- How many files a tenant has, how many blobs these are, and their bytes.
CREATE TABLE tenant_files (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    files  BIGINT NOT NULL,
    blobs  BIGINT NOT NULL,
    bytes  BIGINT NOT NULL
);
