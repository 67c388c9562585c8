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
