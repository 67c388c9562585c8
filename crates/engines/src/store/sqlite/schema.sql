-- What the connector keeps. Version 11; migrations/ brings older databases here.

-- Small facts about the database itself.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE tenants (
    tenant     TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    -- The instance that receives what no route assigns; initially the first.
    default_instance INTEGER,
    -- Sealed; made when the first gateway asks for it, and then always the same.
    delivery_key BLOB
) WITHOUT ROWID;

-- Tenants that were removed and of which something is still to be deleted.
CREATE TABLE removals (
    tenant     TEXT PRIMARY KEY,
    -- JSON arrays: of its instances, and of its web-chat rooms.
    instances  TEXT NOT NULL,
    rooms      TEXT NOT NULL,
    -- The last of their lines: later ones are somebody else's.
    lines_to   INTEGER NOT NULL,
    removed_at INTEGER NOT NULL
) WITHOUT ROWID;

-- As whom an issuer of identity tokens knows a tenant.
CREATE TABLE tenant_identities (
    issuer TEXT NOT NULL,
    claim  TEXT NOT NULL,
    tenant TEXT NOT NULL,
    PRIMARY KEY (issuer, claim)
) WITHOUT ROWID;

-- OAuth clients of the built-in token endpoint; of their secrets only what
-- recognises them.
CREATE TABLE clients (
    client_id          TEXT PRIMARY KEY,
    tenant             TEXT NOT NULL,
    secret_fingerprint BLOB NOT NULL,
    created_at         INTEGER NOT NULL,
    revoked_at         INTEGER
) WITHOUT ROWID;

-- Single-use tokens that let a gateway enrol; gone once used.
CREATE TABLE enroll_tokens (
    fingerprint BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    -- The only gateway it is for; NULL for any new one.
    gateway_id  TEXT,
    -- Whether that gateway existed when the token was made, so that it replaces it.
    replaces    INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- Single-use codes that make a route where somebody types them; gone once used.
CREATE TABLE link_codes (
    fingerprint BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    instance    INTEGER,
    -- NULL: whoever types it; "any"; or a JSON array of user ids.
    allow       TEXT,
    free        INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- Who typed codes that were wrong, and which was good the last time. A row for each person, for a day.
CREATE TABLE link_tries (
    who   TEXT PRIMARY KEY,
    -- When codes were wrong, as a JSON array of times.
    wrong TEXT NOT NULL,
    -- What recognises the last good one, with its place.
    used  TEXT,
    at    INTEGER NOT NULL
) WITHOUT ROWID;

-- A delivery destination: owns one inbox. Its number is never given again.
CREATE TABLE instances (
    instance  INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT NOT NULL,
    -- Empty while it waits for its tenant's first gateway.
    name      TEXT NOT NULL,
    idle      INTEGER NOT NULL DEFAULT 0,
    ack_habit TEXT NOT NULL DEFAULT 'unknown',
    -- Who made it; only they may let another gateway serve it. NULL: the operator.
    subject   TEXT,
    -- The last number that was given in its log. This row is the lock of the log.
    tail      INTEGER NOT NULL DEFAULT 0,
    -- How often dead letters were put back in line.
    redrives  INTEGER NOT NULL DEFAULT 0,
    -- What waits, dead letters left out.
    waiting   INTEGER NOT NULL DEFAULT 0,
    bytes     INTEGER NOT NULL DEFAULT 0,
    -- How often it was claimed, and by whom last.
    epoch     INTEGER NOT NULL DEFAULT 0,
    node      TEXT NOT NULL DEFAULT '',
    UNIQUE (tenant, name)
);

-- The log of a new instance begins above every number of older releases.
CREATE TRIGGER logs_begin AFTER INSERT ON instances
WHEN EXISTS (SELECT 1 FROM notes WHERE name = 'log_base')
BEGIN UPDATE instances SET tail = (SELECT CAST(value AS INTEGER) FROM notes WHERE name = 'log_base')
      WHERE instance = NEW.instance AND tail = 0; END;

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
    -- What becomes of messages while it is busy; NULL: what suits it.
    while_busy TEXT,
    -- Whether all people of a group are one conversation with it.
    shared_groups INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, gateway_id)
);

CREATE INDEX gateways_by_instance ON gateways (instance);

-- Which bots a gateway said it answers for: a tie-break among a tenant's own.
CREATE TABLE fronts (
    instance INTEGER NOT NULL,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    PRIMARY KEY (instance, platform, bot)
) WITHOUT ROWID;

-- What a gateway asked to be spared, per platform.
CREATE TABLE policies (
    instance         INTEGER NOT NULL,
    platform         TEXT NOT NULL,
    require_address  INTEGER NOT NULL,
    -- A JSON array of chat, channel or guild ids.
    free_scopes      TEXT NOT NULL,
    allow_other_bots INTEGER NOT NULL,
    PRIMARY KEY (instance, platform)
) WITHOUT ROWID;

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

CREATE TABLE gateway_secrets (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    gateway_id  TEXT NOT NULL,
    sealed      BLOB NOT NULL,
    valid_until INTEGER,
    created_at  INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (tenant, gateway_id) REFERENCES gateways ON DELETE CASCADE
);
-- Ten thousand gateways are read at every start.
CREATE INDEX gateway_secrets_of ON gateway_secrets (tenant, gateway_id);

CREATE TABLE routes (
    place    TEXT NOT NULL,
    bot      TEXT NOT NULL DEFAULT '',
    tenant   TEXT NOT NULL,
    instance INTEGER,
    -- NULL: anybody; else a JSON array of user ids.
    allow    TEXT,
    free     INTEGER NOT NULL DEFAULT 0,
    -- What becomes of messages while the agent is busy; NULL: what its gateway says.
    while_busy TEXT,
    -- What else it says, as a JSON object.
    options TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (place, bot)
) WITHOUT ROWID;
CREATE INDEX routes_by_instance ON routes (instance) WHERE instance IS NOT NULL;
CREATE INDEX routes_by_tenant ON routes (tenant);

-- What changed of what servers remember: they read on from where they were.
CREATE TABLE changes (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    records TEXT NOT NULL,
    -- What names the record, as a JSON array.
    key     TEXT NOT NULL,
    at      INTEGER NOT NULL
);

-- One row per received message: its place in the log of its instance, the key
-- under which it is seen only once, and the legs it took. No text.
CREATE TABLE journal (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
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
    -- Its number in the log of its instance.
    seq         INTEGER NOT NULL DEFAULT 0,
    -- When it had to wait for the end of a turn, and when the turn it began was asked to end.
    held_at     INTEGER,
    interrupted_at INTEGER,
    -- A provider's ids may count within each chat.
    UNIQUE (message_id, chat_id, platform, bot, kind)
);

-- The few that may turn out not to be lost.
CREATE INDEX journal_lost ON journal (instance, seq) WHERE outcome = 'lost: the inbox was over its quota';

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
    -- How often its author changed what it says while it waited.
    revision    INTEGER NOT NULL DEFAULT 0,
    -- Its row of the journal.
    journal     INTEGER NOT NULL DEFAULT 0,
    -- What its route said becomes of it while the agent is busy.
    while_busy  TEXT,
    PRIMARY KEY (instance, seq)
) WITHOUT ROWID;

-- The few entries that overtake their queue, found without a scan.
CREATE INDEX inbox_ahead ON inbox (instance, seq) WHERE ahead = 1;

-- Who has to give way when an inbox is full, found without a scan.
CREATE INDEX inbox_by_chat ON inbox (instance, chat_id, seq);

-- Turns that gateways work on, as far as they outlive a socket: one for each conversation.
CREATE TABLE turns (
    instance    INTEGER NOT NULL,
    chat_id     TEXT NOT NULL,
    -- '' if everybody in the chat shares one conversation.
    session_key TEXT NOT NULL,
    platform    TEXT NOT NULL,
    bot         TEXT NOT NULL,
    thread_id   TEXT,
    -- The entry that began it, and its message and author.
    seq         INTEGER NOT NULL,
    message_id  TEXT NOT NULL,
    author      TEXT,
    -- Whether it waits for an answer to what it asked.
    asks        INTEGER NOT NULL,
    opened_at   INTEGER NOT NULL,
    PRIMARY KEY (instance, chat_id, session_key)
) WITHOUT ROWID;

-- Questions of agents with buttons, by the action that asked each. A press goes to the instance.
CREATE TABLE prompts (
    action     INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    instance   INTEGER NOT NULL,
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    -- The chat that was written to: a thread has an id of its own.
    chat_id    TEXT NOT NULL,
    prompt_id  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    -- A JSON array of the buttons, and one of those in whose turns it was asked.
    choices    TEXT NOT NULL,
    asked_of   TEXT NOT NULL,
    asked_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- What was chosen, by whom and when; NULL while it is open.
    chosen     TEXT,
    chosen_by  TEXT,
    chosen_at  INTEGER
);
CREATE INDEX prompts_by_instance ON prompts (instance, action);
CREATE INDEX prompts_by_chat ON prompts (platform, bot, chat_id);

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

-- Entries that went because an inbox was over its quota: one row per chat.
CREATE TABLE gaps (
    instance INTEGER NOT NULL,
    chat_id  TEXT NOT NULL,
    lost     INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    -- When the last of them went: for how long it is shown does not depend on how old they were.
    lost_at  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, chat_id)
) WITHOUT ROWID;

-- Chats that lost an entry to a quota and were not told yet.
CREATE TABLE untold_gaps (
    instance   INTEGER NOT NULL,
    chat_id    TEXT NOT NULL,
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    message_id TEXT NOT NULL,
    thread_id  TEXT,
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
    body        BLOB,
    -- When its provider was first about to be called, where it does not dedupe for ever.
    begun_at    INTEGER,
    -- The capability it uses, and how.
    capability  INTEGER,
    way         TEXT,
    -- What the provider says became of its message.
    receipt     TEXT,
    -- The gateway that asked; NULL for what the connector says itself.
    gateway_id  TEXT,
    -- The thread it goes to.
    thread_id   TEXT,
    -- The message it changes.
    edits       TEXT,
    -- Processes that ended while they called.
    crashes     INTEGER NOT NULL DEFAULT 0,
    -- The process that works on it; others change nothing.
    owner       INTEGER NOT NULL DEFAULT 0,
    -- Who was about to call its provider last.
    begun_by    INTEGER NOT NULL DEFAULT 0
);
-- To find what may be forgotten of a tenant that has used up its disk.
CREATE INDEX actions_by_tenant ON actions (tenant, id);
CREATE INDEX actions_unfinished ON actions (id) WHERE state IN ('accepted', 'sending');
CREATE INDEX actions_ambiguous ON actions (id) WHERE state = 'ambiguous';
CREATE INDEX actions_by_reply ON actions (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX actions_by_message ON actions (message_id) WHERE message_id IS NOT NULL;

-- What a process left and another took up. Apart: the row of an action holds its whole
-- text, and would be written anew with it.
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

-- Processes whose actions another took up, one by one: they accept nothing more.
CREATE TABLE replaced_owners (
    owner INTEGER PRIMARY KEY
);

-- The directory: what bots know of chats.
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
    -- A JSON array of the bot's own roles in a scope.
    roles    TEXT NOT NULL DEFAULT '[]',
    -- The id it has now.
    moved_to TEXT,
    -- The instance that was addressed there.
    engaged  INTEGER,
    last_message TEXT,
    last_at  INTEGER,
    -- In which language people are spoken to there.
    language TEXT,
    PRIMARY KEY (platform, bot, chat_id)
) WITHOUT ROWID;
CREATE INDEX chats_recent ON chats (platform, bot, last_at) WHERE last_at IS NOT NULL;

-- How far a bot has read each of its streams.
CREATE TABLE cursors (
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    stream   TEXT NOT NULL,
    position TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, stream)
) WITHOUT ROWID;

-- Who does what only one node may do at a time. The token grows with every holder.
CREATE TABLE leases (
    name     TEXT PRIMARY KEY,
    node     TEXT NOT NULL,
    token    INTEGER NOT NULL,
    -- When it ends; NULL for one without an end. Of one that was given back, when it was.
    until    INTEGER,
    -- Whether it was given back.
    released INTEGER NOT NULL,
    -- As whom the ledger knows whoever works on what waits for this bot; 0 for nobody.
    owner    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Which nodes are there.
CREATE TABLE nodes (
    node       TEXT PRIMARY KEY,
    -- As whom the ledger knows it.
    owner      INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    -- Until when it is believed to be there without another sign of it.
    until      INTEGER NOT NULL,
    -- Whether it takes leases: one that leaves does not.
    takes      INTEGER NOT NULL,
    -- What it tells of itself, as JSON text.
    facts      TEXT NOT NULL
) WITHOUT ROWID;

-- What providers sent that could not be read.
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

-- Stretches of chats that could not be read.
CREATE TABLE missed (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    -- NULL if nobody knows which ones.
    chat_id  TEXT,
    -- The last message seen before.
    seen     TEXT,
    since    INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    why      TEXT NOT NULL
);
CREATE INDEX missed_by_bot ON missed (platform, bot, id);

-- Which further messages a sent message is continued in.
CREATE TABLE pieces (
    platform   TEXT NOT NULL,
    bot        TEXT NOT NULL,
    chat_id    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    -- A JSON array of message ids.
    pieces     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (platform, bot, chat_id, message_id)
) WITHOUT ROWID;
CREATE INDEX pieces_by_age ON pieces (at);

-- What chats were told by the connector itself.
CREATE TABLE notices (
    kind     TEXT NOT NULL,
    platform TEXT NOT NULL,
    bot      TEXT NOT NULL,
    chat_id  TEXT NOT NULL,
    -- Whose outage it was about.
    instance INTEGER,
    at       INTEGER NOT NULL,
    PRIMARY KEY (kind, platform, bot, chat_id)
) WITHOUT ROWID;
CREATE INDEX notices_by_instance ON notices (instance) WHERE instance IS NOT NULL;

-- Who changed what, and who was refused. Rows come and stay.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    tenant  TEXT NOT NULL DEFAULT '',
    target  TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT '',
    -- Lines of one sort are counted together: operator, other, refusal.
    sort    TEXT NOT NULL DEFAULT 'other'
);
CREATE INDEX audit_by_sort ON audit (sort, id);
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
-- The newest hundred thousand stay, whatever any clock says.
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.id > (SELECT max(id) FROM audit) - 100000
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;

CREATE TABLE webchat_people (
    key_fingerprint BLOB PRIMARY KEY,
    room            TEXT NOT NULL,
    user            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    -- Of those who let themselves in.
    visits_until    INTEGER
) WITHOUT ROWID;
CREATE INDEX webchat_people_by_room ON webchat_people (room, created_at);

CREATE TABLE webchat_lines (
    -- Of all rooms together: never shown.
    id         INTEGER PRIMARY KEY,
    -- Of its room: grows with every line and every edit.
    seq        INTEGER NOT NULL DEFAULT 0,
    room       TEXT NOT NULL,
    message_id TEXT NOT NULL UNIQUE,
    author     TEXT NOT NULL,
    from_agent INTEGER NOT NULL,
    text       TEXT NOT NULL,
    reply_to   TEXT,
    client_id  TEXT,
    at         INTEGER NOT NULL,
    edited     INTEGER NOT NULL DEFAULT 0,
    -- The first number: where it is shown.
    place      INTEGER NOT NULL DEFAULT 0,
    -- What should have come with it, as JSON.
    files      TEXT NOT NULL DEFAULT '[]',
    -- Why no agent got it.
    undelivered TEXT,
    -- The buttons below it while nobody has pressed one, as JSON.
    buttons    TEXT,
    -- What its readers see as reactions to it, as a JSON array.
    marks      TEXT NOT NULL DEFAULT '[]',
    -- The thread of the room it was said in: the id of the line that opened it.
    thread     TEXT,
    -- What the thread is called that it opened.
    thread_name TEXT
);
CREATE INDEX webchat_lines_by_room ON webchat_lines (room, seq);
CREATE UNIQUE INDEX webchat_lines_once ON webchat_lines (room, author, client_id) WHERE client_id IS NOT NULL;

-- The vault: credentials that act as a bot for a while, sealed.
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
    -- The action that answers.
    claimed_by     INTEGER,
    -- When the person was told that no answer came.
    noticed_at     INTEGER,
    sealed         BLOB NOT NULL,
    expires_at     INTEGER NOT NULL
);
CREATE INDEX capabilities_by_chat ON capabilities (instance, chat_id, interaction_id);
CREATE INDEX capabilities_open ON capabilities (instance, chat_id) WHERE stage = 'open';
CREATE INDEX capabilities_by_end ON capabilities (expires_at);
CREATE INDEX capabilities_claimed ON capabilities (claimed_by) WHERE claimed_by IS NOT NULL;

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

-- Whether the key before the current one is still needed is read from how values begin
-- (crates/core/src/seal/envelope.rs): the mark, the version and the name of the key.
CREATE INDEX tenants_by_head ON tenants (substr(delivery_key, 1, 9));
CREATE INDEX gateway_secrets_by_head ON gateway_secrets (substr(sealed, 1, 9));
CREATE INDEX quarantine_by_head ON quarantine (substr(sealed, 1, 9));
CREATE INDEX capabilities_by_head ON capabilities (substr(sealed, 1, 9));
CREATE INDEX blobs_by_head ON blobs (substr(sealed, 1, 9));
