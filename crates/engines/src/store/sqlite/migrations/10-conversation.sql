-- From version 9 to 10: marks on lines of the web chat and threads there, commands of gateways, threads that
-- are opened.
ALTER TABLE webchat_lines ADD COLUMN marks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE webchat_lines ADD COLUMN thread TEXT;
ALTER TABLE webchat_lines ADD COLUMN thread_name TEXT;

-- The commands that a gateway declared, as a JSON array.
CREATE TABLE manifests (
    instance INTEGER NOT NULL PRIMARY KEY,
    commands TEXT NOT NULL
) WITHOUT ROWID;
-- The commands that were registered for a bot at its provider: their names as a JSON array, and
-- what tells that list from others.
CREATE TABLE registered_commands (
    platform      TEXT NOT NULL,
    bot           TEXT NOT NULL,
    names         TEXT NOT NULL,
    form          TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    PRIMARY KEY (platform, bot)
) WITHOUT ROWID;
-- Messages that wait for a thread of their own, apart from the log until they are released into it.
CREATE TABLE openings (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    instance    INTEGER NOT NULL,
    platform    TEXT NOT NULL,
    bot         TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    session_key TEXT NOT NULL,
    body        BLOB NOT NULL,
    while_busy  TEXT,
    received_at INTEGER NOT NULL,
    held_at     INTEGER NOT NULL,
    -- How often a thread was about to be opened for it, and when last.
    tries       INTEGER NOT NULL DEFAULT 0,
    tried_at    INTEGER,
    UNIQUE (message_id, chat_id, platform, bot)
);
CREATE INDEX openings_by_chat ON openings (platform, bot, chat_id, id);
CREATE INDEX openings_by_instance ON openings (instance, id);
-- Threads that were opened by the connector, and the name each was last given.
CREATE TABLE created_threads (
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    -- As the directory knows it; what it is below.
    chat_id    TEXT NOT NULL,
    parent     TEXT NOT NULL,
    name       TEXT NOT NULL,
    instance   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, chat_id)
) WITHOUT ROWID;
CREATE INDEX created_threads_by_instance ON created_threads (instance, created_at);
