-- From version 9 to 10: marks on lines of the web chat, and threads there; commands of gateways.
ALTER TABLE webchat_lines ADD COLUMN marks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE webchat_lines ADD COLUMN thread TEXT;

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
