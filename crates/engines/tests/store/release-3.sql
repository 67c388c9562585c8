-- A database as the release with schema version 3 left it, with something in every table: the one that
-- release 2 left, brought here, and what bots, notices and the vault have kept since.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE actions (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    instance    INTEGER NOT NULL,
    platform    TEXT NOT NULL,
    bot         TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    op          TEXT NOT NULL,
    reply_to    TEXT,
    message_id  TEXT,
    state       TEXT NOT NULL,
    error       TEXT,
    received_at INTEGER NOT NULL,
    finished_at INTEGER,
    body        BLOB
, begun_at INTEGER, capability INTEGER, way TEXT, receipt TEXT);
INSERT INTO "actions" VALUES(1,'acme',1,'webchat','webchat','web-lab','send','wp4','wa1','sent',NULL,1794747337006,1794747337007,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "actions" VALUES(2,'acme',1,'webchat','webchat','web-lab','send','wp4',NULL,'sending',NULL,1794747337008,NULL,X'7B226F70223A2273656E64227D',NULL,NULL,NULL,NULL);
INSERT INTO "actions" VALUES(3,'acme',1,'webchat','webchat','web-lab','edit',NULL,NULL,'accepted',NULL,1794747337009,NULL,X'7B226F70223A2265646974227D',NULL,NULL,NULL,NULL);
INSERT INTO "actions" VALUES(4,'acme',1,'discord','1','111','send',NULL,NULL,'sending',NULL,1794747337009,NULL,X'7B226F70223A2273656E64227D',1794747337010,1,'original',NULL);
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
INSERT INTO "audit" VALUES(1,1794747337000,'operator','tenant.create','acme','acme','done','');
CREATE TABLE capabilities (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    kind           TEXT NOT NULL,
    tenant         TEXT NOT NULL,
    instance       INTEGER NOT NULL,
    platform       TEXT NOT NULL,
    bot            TEXT NOT NULL,
    chat_id        TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    interaction_id TEXT NOT NULL,
    deferral       TEXT NOT NULL,
    stage          TEXT NOT NULL,
    claimed_by     INTEGER,
    noticed_at     INTEGER,
    sealed         BLOB NOT NULL,
    expires_at     INTEGER NOT NULL
);
INSERT INTO "capabilities" VALUES(1,'discord.interaction_token','acme',1,'discord','1','111','42','3001','message','open',NULL,NULL,X'01',1794748237000);
CREATE TABLE chats (
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    chat_id  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    parent   TEXT,
    scope    TEXT,
    name     TEXT,
    topic    TEXT,
    person   TEXT,
    roles    TEXT NOT NULL DEFAULT '[]',
    moved_to TEXT,
    engaged  INTEGER,
    last_message TEXT,
    last_at  INTEGER,
    PRIMARY KEY (platform, bot, chat_id)
) WITHOUT ROWID;
INSERT INTO "chats" VALUES('discord','1','111','channel',NULL,'900','general',NULL,NULL,'[]',NULL,1,'1001',1794747337000);
CREATE TABLE clients (
    client_id          TEXT PRIMARY KEY,
    tenant             TEXT NOT NULL,
    secret_fingerprint BLOB NOT NULL,
    created_at         INTEGER NOT NULL,
    revoked_at         INTEGER
) WITHOUT ROWID;
INSERT INTO "clients" VALUES('client-1','acme',X'0101010101010101010101010101010101010101010101010101010101010101',1794747337000,NULL);
CREATE TABLE conversations (
    tenant      TEXT NOT NULL,
    session_key TEXT NOT NULL,
    instance    INTEGER NOT NULL,
    chat_id     TEXT NOT NULL,
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_key)
) WITHOUT ROWID;
INSERT INTO "conversations" VALUES('acme','agent:main:relay:group:web-lab:ann',1,'web-lab',1794747337000);
CREATE TABLE cursors (
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    stream   TEXT NOT NULL,
    position TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, stream)
) WITHOUT ROWID;
INSERT INTO "cursors" VALUES('telegram','7','updates','42',1794747337000);
CREATE TABLE enroll_tokens (
    fingerprint BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    -- The only gateway it is for; NULL for any new one.
    gateway_id  TEXT,
    -- Whether that gateway existed when the token was made, so that it replaces it.
    replaces    INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "enroll_tokens" VALUES(X'0202020202020202020202020202020202020202020202020202020202020202','acme','gw-new',0,1794833737000);
CREATE TABLE fronts (
    instance INTEGER NOT NULL,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    PRIMARY KEY (instance, platform, bot)
) WITHOUT ROWID;
INSERT INTO "fronts" VALUES(1,'webchat','webchat');
CREATE TABLE gaps (
    instance INTEGER NOT NULL,
    chat_id  TEXT NOT NULL,
    lost     INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (instance, chat_id)
) WITHOUT ROWID;
INSERT INTO "gaps" VALUES(1,'web-lab',2,1794747337000,1794747337001);
CREATE TABLE gateway_secrets (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    gateway_id  TEXT NOT NULL,
    sealed      BLOB NOT NULL,
    valid_until INTEGER,
    created_at  INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (tenant, gateway_id) REFERENCES gateways ON DELETE CASCADE
);
INSERT INTO "gateway_secrets" VALUES(1,'acme','gw-old',X'040404040404040404040404040404040404040404040404040404040404040404040404040404040404040404040404040404040404040404040404',NULL,1794747337000);
INSERT INTO "gateway_secrets" VALUES(2,'acme','gw-twin',X'050505050505050505050505050505050505050505050505050505050505050505050505050505050505050505050505050505050505050505050505',1794747337009,1794747337000);
CREATE TABLE gateways (
    tenant     TEXT NOT NULL,
    gateway_id TEXT NOT NULL,
    instance   INTEGER NOT NULL,
    wake_url   TEXT,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    -- Who enrolled it; NULL: the operator.
    subject    TEXT,
    display_name TEXT,
    PRIMARY KEY (tenant, gateway_id)
);
INSERT INTO "gateways" VALUES('acme','gw-old',1,'https://wake.example/a',1794747337000,NULL,NULL,'Old one');
INSERT INTO "gateways" VALUES('acme','gw-twin',2,NULL,1794747337000,1794747337005,'ann@issuer',NULL);
CREATE TABLE inbox (
    instance    INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    platform    TEXT NOT NULL,
    bot         TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    session_key TEXT NOT NULL,
    ahead       INTEGER NOT NULL DEFAULT 0,
    strikes     INTEGER NOT NULL DEFAULT 0,
    dead_at     INTEGER,
    received_at INTEGER NOT NULL,
    body        BLOB NOT NULL,
    -- How often its author changed what it says while it waited.
    revision    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, seq)
) WITHOUT ROWID;
INSERT INTO "inbox" VALUES(1,1,'message','webchat','webchat','web-lab','wp1','agent:main:relay:group:web-lab:ann',0,0,NULL,1794747337001,X'7B2274657874223A226265666F72652074686520757067726164652031222C226D6573736167655F74797065223A2274657874222C22736F75726365223A7B22706C6174666F726D223A2277656263686174222C22636861745F6964223A227765622D6C6162222C22636861745F74797065223A2267726F7570222C22757365725F6964223A22616E6E222C227468726561645F6964223A6E756C6C7D2C226D6573736167655F6964223A22777031227D',1);
INSERT INTO "inbox" VALUES(1,2,'message','webchat','webchat','web-lab','wp2','agent:main:relay:group:web-lab:ann',0,0,1794747337008,1794747337002,X'7B2274657874223A226265666F72652074686520757067726164652032222C226D6573736167655F74797065223A2274657874222C22736F75726365223A7B22706C6174666F726D223A2277656263686174222C22636861745F6964223A227765622D6C6162222C22636861745F74797065223A2267726F7570222C22757365725F6964223A22616E6E222C227468726561645F6964223A6E756C6C7D2C226D6573736167655F6964223A22777032227D',0);
INSERT INTO "inbox" VALUES(1,3,'message','webchat','webchat','web-lab','wp3','agent:main:relay:group:web-lab:ann',1,0,NULL,1794747337003,X'7B2274657874223A226265666F72652074686520757067726164652033222C226D6573736167655F74797065223A2274657874222C22736F75726365223A7B22706C6174666F726D223A2277656263686174222C22636861745F6964223A227765622D6C6162222C22636861745F74797065223A2267726F7570222C22757365725F6964223A22616E6E222C227468726561645F6964223A6E756C6C7D2C226D6573736167655F6964223A22777033227D',0);
CREATE TABLE instances (
    instance  INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT NOT NULL,
    name      TEXT NOT NULL,
    idle      INTEGER NOT NULL DEFAULT 0,
    ack_habit TEXT NOT NULL DEFAULT 'unknown',
    -- Who made it; only they may let another gateway serve it. NULL: the operator.
    subject   TEXT,
    UNIQUE (tenant, name)
);
INSERT INTO "instances" VALUES(1,'acme','gw-old',1,'acks',NULL);
INSERT INTO "instances" VALUES(2,'acme','gw-twin',0,'unknown','ann@issuer');
CREATE TABLE "journal" (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id  TEXT NOT NULL,
    kind        TEXT NOT NULL,
    platform    TEXT NOT NULL,
    bot         TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    instance    INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    appended_at INTEGER NOT NULL,
    pushed_at   INTEGER,
    pushes      INTEGER NOT NULL DEFAULT 0,
    settled_at  INTEGER,
    outcome     TEXT,
    UNIQUE (message_id, chat_id, platform, bot, kind)
);
INSERT INTO "journal" VALUES(1,'wp1','message','webchat','webchat','web-lab','acme',1,1794747337001,1794747337001,NULL,0,NULL,NULL);
INSERT INTO "journal" VALUES(2,'wp2','message','webchat','webchat','web-lab','acme',1,1794747337002,1794747337002,NULL,0,NULL,NULL);
INSERT INTO "journal" VALUES(3,'wp3','message','webchat','webchat','web-lab','acme',1,1794747337003,1794747337003,NULL,0,NULL,NULL);
INSERT INTO "journal" VALUES(4,'wp4','message','webchat','webchat','web-lab','acme',1,1794747337004,1794747337005,1794747337006,2,1794747337007,'acknowledged');
INSERT INTO "journal" VALUES(5,'wp4','stop','webchat','webchat','web-lab','acme',1,1794747337004,1794747337005,1794747337006,1,1794747337007,'acknowledged');
CREATE TABLE link_codes (
    fingerprint BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    instance    INTEGER,
    -- NULL: whoever types it; "any"; or a JSON array of user ids.
    allow       TEXT,
    free        INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "link_codes" VALUES(X'0303030303030303030303030303030303030303030303030303030303030303','acme',1,'any',0,1794833737000);
CREATE TABLE missed (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    chat_id  TEXT,
    seen     TEXT,
    since    INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    why      TEXT NOT NULL
);
INSERT INTO "missed" VALUES(1,'discord','1','111','1000',1794747337000,1794747337005,'away');
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO "notes" VALUES('furnished',X'01');
INSERT INTO "notes" VALUES('key_check',X'42CA3EEE00000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "notes" VALUES('webchat_id',3);
CREATE TABLE notices (
    kind     TEXT NOT NULL,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    chat_id  TEXT NOT NULL,
    instance INTEGER,
    at       INTEGER NOT NULL,
    PRIMARY KEY (kind, platform, bot, chat_id)
) WITHOUT ROWID;
INSERT INTO "notices" VALUES('away','discord','1','111',1,1794747337000);
CREATE TABLE pieces (
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    chat_id    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    pieces     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, chat_id, message_id)
) WITHOUT ROWID;
INSERT INTO "pieces" VALUES('discord','1','111','2001','["2002"]',1794747337000);
CREATE TABLE policies (
    instance         INTEGER NOT NULL,
    platform         TEXT NOT NULL,
    require_address  INTEGER NOT NULL,
    -- A JSON array of chat, channel or guild ids.
    free_scopes      TEXT NOT NULL,
    allow_other_bots INTEGER NOT NULL,
    PRIMARY KEY (instance, platform)
) WITHOUT ROWID;
INSERT INTO "policies" VALUES(1,'webchat',1,'["web-lab"]',0);
CREATE TABLE quarantine (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    what     TEXT NOT NULL,
    why      TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    at       INTEGER NOT NULL
);
INSERT INTO "quarantine" VALUES(1,'telegram','7','update 41','no message',X'01',1794747337000);
CREATE TABLE routes (
    place    TEXT NOT NULL,
    bot      TEXT NOT NULL DEFAULT '',
    tenant   TEXT NOT NULL,
    instance INTEGER,
    -- NULL: anybody; else a JSON array of user ids.
    allow    TEXT,
    free     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (place, bot)
) WITHOUT ROWID;
INSERT INTO "routes" VALUES('telegram:-100','7654321','acme',1,NULL,0);
INSERT INTO "routes" VALUES('webchat:*','','default',NULL,NULL,1);
INSERT INTO "routes" VALUES('webchat:lab','','acme',1,'["ann","bob"]',0);
CREATE TABLE tenant_identities (
    issuer TEXT NOT NULL,
    claim  TEXT NOT NULL,
    tenant TEXT NOT NULL,
    PRIMARY KEY (issuer, claim)
) WITHOUT ROWID;
INSERT INTO "tenant_identities" VALUES('https://issuer.example','org-1','acme');
CREATE TABLE tenants (
    tenant     TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    -- The instance that receives what no route assigns; initially the first.
    default_instance INTEGER,
    -- Sealed; made when the first gateway asks for it, and then always the same.
    delivery_key BLOB
) WITHOUT ROWID;
INSERT INTO "tenants" VALUES('acme',1794747337000,1,X'07070707070707070707070707070707070707070707070707070707070707070707070707070707');
INSERT INTO "tenants" VALUES('default',1794747337000,NULL,NULL);
CREATE TABLE webchat_lines (
    id         INTEGER PRIMARY KEY,
    room       TEXT NOT NULL,
    message_id TEXT NOT NULL UNIQUE,
    author     TEXT NOT NULL,
    from_agent INTEGER NOT NULL,
    text       TEXT NOT NULL,
    reply_to   TEXT,
    client_id  TEXT,
    at         INTEGER NOT NULL,
    edited     INTEGER NOT NULL DEFAULT 0
, place INTEGER NOT NULL DEFAULT 0, files TEXT NOT NULL DEFAULT '[]', undelivered TEXT);
INSERT INTO "webchat_lines" VALUES(1,'lab','wp1','ann',0,'before the upgrade 1',NULL,'c1',1794747337001,1,1,'[]',NULL);
INSERT INTO "webchat_lines" VALUES(2,'lab','wa1','agent',1,'hello','wp4',NULL,1794747337007,0,2,'[]',NULL);
CREATE TABLE webchat_people (
    key_fingerprint BLOB PRIMARY KEY,
    room            TEXT NOT NULL,
    user            TEXT NOT NULL,
    created_at      INTEGER NOT NULL
, visits_until INTEGER) WITHOUT ROWID;
INSERT INTO "webchat_people" VALUES(X'0606060606060606060606060606060606060606060606060606060606060606','lab','ann',1794747337000,NULL);
CREATE INDEX gateways_by_instance ON gateways (instance);
CREATE INDEX inbox_ahead ON inbox (instance, seq) WHERE ahead = 1;
CREATE INDEX actions_unfinished ON actions (id) WHERE state IN ('accepted', 'sending');
CREATE INDEX actions_ambiguous ON actions (id) WHERE state = 'ambiguous';
CREATE INDEX actions_by_reply ON actions (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX actions_by_message ON actions (message_id) WHERE message_id IS NOT NULL;
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.at > (unixepoch() - 400 * 86400) * 1000
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE INDEX webchat_people_by_room ON webchat_people (room, created_at);
CREATE INDEX webchat_lines_by_room ON webchat_lines (room, id);
CREATE UNIQUE INDEX webchat_lines_once ON webchat_lines (room, author, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX chats_recent ON chats (platform, bot, last_at) WHERE last_at IS NOT NULL;
CREATE INDEX quarantine_by_bot ON quarantine (platform, bot, id);
CREATE INDEX missed_by_bot ON missed (platform, bot, id);
CREATE INDEX pieces_by_age ON pieces (at);
CREATE INDEX notices_by_instance ON notices (instance) WHERE instance IS NOT NULL;
CREATE INDEX capabilities_by_chat ON capabilities (instance, chat_id, interaction_id);
CREATE INDEX capabilities_open ON capabilities (instance, chat_id) WHERE stage = 'open';
CREATE INDEX capabilities_by_end ON capabilities (expires_at);
CREATE INDEX capabilities_claimed ON capabilities (claimed_by) WHERE claimed_by IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('instances',9);
INSERT INTO "sqlite_sequence" VALUES('actions',4);
INSERT INTO "sqlite_sequence" VALUES('audit',1);
INSERT INTO "sqlite_sequence" VALUES('journal',12);
INSERT INTO "sqlite_sequence" VALUES('quarantine',1);
INSERT INTO "sqlite_sequence" VALUES('missed',1);
INSERT INTO "sqlite_sequence" VALUES('capabilities',1);
COMMIT;
PRAGMA user_version = 3;
