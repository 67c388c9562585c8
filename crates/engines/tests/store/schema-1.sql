-- What the connector keeps. Version 1.

-- Small facts about the database itself.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE tenants (
    tenant     TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    -- The instance that receives what no route assigns; initially the first.
    default_instance INTEGER
) WITHOUT ROWID;

-- A delivery destination: owns one inbox.
CREATE TABLE instances (
    instance  INTEGER PRIMARY KEY,
    tenant    TEXT NOT NULL,
    name      TEXT NOT NULL,
    idle      INTEGER NOT NULL DEFAULT 0,
    ack_habit TEXT NOT NULL DEFAULT 'unknown',
    UNIQUE (tenant, name)
);

CREATE TABLE gateways (
    tenant     TEXT NOT NULL,
    gateway_id TEXT NOT NULL,
    instance   INTEGER NOT NULL,
    wake_url   TEXT,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (tenant, gateway_id)
);

CREATE TABLE gateway_secrets (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    gateway_id  TEXT NOT NULL,
    sealed      BLOB NOT NULL,
    valid_until INTEGER,
    FOREIGN KEY (tenant, gateway_id) REFERENCES gateways ON DELETE CASCADE
);

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

-- One row per received message: its place in the log, the key under which it
-- is seen only once, and the legs it took. No text.
CREATE TABLE journal (
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
    UNIQUE (message_id, platform, bot, kind)
);

-- What waits. Clustered by instance, so that a drain reads one range.
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
    PRIMARY KEY (instance, seq)
) WITHOUT ROWID;

-- The few entries that overtake their queue, found without a scan.
CREATE INDEX inbox_ahead ON inbox (instance, seq) WHERE ahead = 1;

-- Entries that went because an inbox was over its quota: one row per chat.
CREATE TABLE gaps (
    instance INTEGER NOT NULL,
    chat_id  TEXT NOT NULL,
    lost     INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (instance, chat_id)
) WITHOUT ROWID;

-- Where a conversation was last delivered.
CREATE TABLE conversations (
    tenant      TEXT NOT NULL,
    session_key TEXT NOT NULL,
    instance    INTEGER NOT NULL,
    chat_id     TEXT NOT NULL,
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_key)
) WITHOUT ROWID;

-- The ledger of outbound actions. The body goes when the action is finished.
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
);
CREATE INDEX actions_unfinished ON actions (id) WHERE state IN ('accepted', 'sending');
CREATE INDEX actions_by_reply ON actions (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX actions_by_message ON actions (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE webchat_people (
    key_fingerprint BLOB PRIMARY KEY,
    room            TEXT NOT NULL,
    user            TEXT NOT NULL,
    created_at      INTEGER NOT NULL
) WITHOUT ROWID;

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
);
CREATE INDEX webchat_lines_by_room ON webchat_lines (room, id);
CREATE UNIQUE INDEX webchat_lines_once ON webchat_lines (room, author, client_id) WHERE client_id IS NOT NULL;
