-- From version 1 to 2.
ALTER TABLE tenants ADD COLUMN delivery_key BLOB;

CREATE TABLE instances_2 (
    instance  INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT NOT NULL,
    name      TEXT NOT NULL,
    idle      INTEGER NOT NULL DEFAULT 0,
    ack_habit TEXT NOT NULL DEFAULT 'unknown',
    subject   TEXT,
    UNIQUE (tenant, name)
);
INSERT INTO instances_2 (instance, tenant, name, idle, ack_habit)
    SELECT instance, tenant, name, idle, ack_habit FROM instances;
DROP TABLE instances;
ALTER TABLE instances_2 RENAME TO instances;

ALTER TABLE gateways ADD COLUMN subject TEXT;
ALTER TABLE gateways ADD COLUMN display_name TEXT;
ALTER TABLE gateway_secrets ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE tenant_identities (
    issuer TEXT NOT NULL,
    claim  TEXT NOT NULL,
    tenant TEXT NOT NULL,
    PRIMARY KEY (issuer, claim)
) WITHOUT ROWID;

CREATE TABLE clients (
    client_id          TEXT PRIMARY KEY,
    tenant             TEXT NOT NULL,
    secret_fingerprint BLOB NOT NULL,
    created_at         INTEGER NOT NULL,
    revoked_at         INTEGER
) WITHOUT ROWID;

CREATE TABLE enroll_tokens (
    fingerprint BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    gateway_id  TEXT,
    replaces    INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE link_codes (
    fingerprint BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    instance    INTEGER,
    allow       TEXT,
    free        INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE fronts (
    instance INTEGER NOT NULL,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    PRIMARY KEY (instance, platform, bot)
) WITHOUT ROWID;

CREATE TABLE policies (
    instance         INTEGER NOT NULL,
    platform         TEXT NOT NULL,
    require_address  INTEGER NOT NULL,
    free_scopes      TEXT NOT NULL,
    allow_other_bots INTEGER NOT NULL,
    PRIMARY KEY (instance, platform)
) WITHOUT ROWID;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    tenant  TEXT NOT NULL DEFAULT '',
    target  TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT ''
);

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;

CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.at > (unixepoch() - 400 * 86400) * 1000
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;

ALTER TABLE inbox ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

CREATE INDEX webchat_people_by_room ON webchat_people (room, created_at);

CREATE INDEX actions_ambiguous ON actions (id) WHERE state = 'ambiguous';
CREATE INDEX gateways_by_instance ON gateways (instance);
