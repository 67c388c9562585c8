-- From version 8 to 9: questions with buttons, and what routes say of them.
ALTER TABLE routes ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
ALTER TABLE webchat_lines ADD COLUMN buttons TEXT;
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
