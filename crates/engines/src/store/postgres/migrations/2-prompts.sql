-- From version 1 to 2: questions with buttons, and what routes say of them. Nodes of version 1 know
-- neither, and go on.
ALTER TABLE routes ADD COLUMN options TEXT COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE webchat_lines ADD COLUMN buttons TEXT COLLATE "C";
-- Questions of agents with buttons, by the action that asked each. A press goes to the instance.
CREATE TABLE prompts (
    action     BIGINT PRIMARY KEY,
    tenant     TEXT COLLATE "C" NOT NULL,
    instance   BIGINT NOT NULL,
    platform   TEXT COLLATE "C" NOT NULL,
    bot        TEXT COLLATE "C" NOT NULL,
    -- The chat that was written to: a thread has an id of its own.
    chat_id    TEXT COLLATE "C" NOT NULL,
    prompt_id  TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    -- A JSON array of the buttons, and one of those in whose turns it was asked.
    choices    TEXT COLLATE "C" NOT NULL,
    asked_of   TEXT COLLATE "C" NOT NULL,
    asked_at   BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- What was chosen, by whom and when; NULL while it is open.
    chosen     TEXT COLLATE "C",
    chosen_by  TEXT COLLATE "C",
    chosen_at  BIGINT
);
CREATE INDEX prompts_by_instance ON prompts (instance, action);
CREATE INDEX prompts_by_chat ON prompts (platform, bot, chat_id);
