-- From version 2 to 3: marks on lines of the web chat, and threads there; commands of gateways. Nodes of earlier
-- versions know none of it, and go on.
ALTER TABLE webchat_lines ADD COLUMN marks TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE webchat_lines ADD COLUMN thread TEXT COLLATE "C";

-- The commands that a gateway declared, as a JSON array.
CREATE TABLE manifests (
    instance BIGINT PRIMARY KEY,
    commands TEXT COLLATE "C" NOT NULL
);
-- The commands that were registered for a bot at its provider: their names as a JSON array, and
-- what tells that list from others.
CREATE TABLE registered_commands (
    platform      TEXT COLLATE "C" NOT NULL,
    bot           TEXT COLLATE "C" NOT NULL,
    names         TEXT COLLATE "C" NOT NULL,
    form          TEXT COLLATE "C" NOT NULL,
    registered_at BIGINT NOT NULL,
    PRIMARY KEY (platform, bot)
);
