-- From version 2 to 3. A message is seen once per chat, so the journal gets
-- another key; its numbers go on where they were.
CREATE TABLE journal_3 (
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
INSERT INTO journal_3 (seq, message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at,
                       pushed_at, pushes, settled_at, outcome)
    SELECT seq, message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at,
           pushed_at, pushes, settled_at, outcome
    FROM journal ORDER BY seq;
DELETE FROM sqlite_sequence WHERE name = 'journal_3';
INSERT INTO sqlite_sequence (name, seq) SELECT 'journal_3', seq FROM sqlite_sequence WHERE name = 'journal';
DROP TABLE journal;
ALTER TABLE journal_3 RENAME TO journal;

ALTER TABLE actions ADD COLUMN begun_at INTEGER;
ALTER TABLE actions ADD COLUMN capability INTEGER;
ALTER TABLE actions ADD COLUMN way TEXT;
ALTER TABLE actions ADD COLUMN receipt TEXT;

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
CREATE INDEX chats_recent ON chats (platform, bot, last_at) WHERE last_at IS NOT NULL;

CREATE TABLE cursors (
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    stream   TEXT NOT NULL,
    position TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, stream)
) WITHOUT ROWID;

CREATE TABLE quarantine (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    what     TEXT NOT NULL,
    why      TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    at       INTEGER NOT NULL
);
CREATE INDEX quarantine_by_bot ON quarantine (platform, bot, id);

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
CREATE INDEX missed_by_bot ON missed (platform, bot, id);

CREATE TABLE pieces (
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    chat_id    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    pieces     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, chat_id, message_id)
) WITHOUT ROWID;
CREATE INDEX pieces_by_age ON pieces (at);

CREATE TABLE notices (
    kind     TEXT NOT NULL,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    chat_id  TEXT NOT NULL,
    instance INTEGER,
    at       INTEGER NOT NULL,
    PRIMARY KEY (kind, platform, bot, chat_id)
) WITHOUT ROWID;
CREATE INDEX notices_by_instance ON notices (instance) WHERE instance IS NOT NULL;

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
CREATE INDEX capabilities_by_chat ON capabilities (instance, chat_id, interaction_id);
CREATE INDEX capabilities_open ON capabilities (instance, chat_id) WHERE stage = 'open';
CREATE INDEX capabilities_by_end ON capabilities (expires_at);
CREATE INDEX capabilities_claimed ON capabilities (claimed_by) WHERE claimed_by IS NOT NULL;

-- People may let themselves into open rooms; lines keep their place and name files.
ALTER TABLE webchat_people ADD COLUMN visits_until INTEGER;
ALTER TABLE webchat_lines ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webchat_lines ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
ALTER TABLE webchat_lines ADD COLUMN undelivered TEXT;
UPDATE webchat_lines SET place = id;
