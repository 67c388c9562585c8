-- From version 2 to 3: marks on lines of the web chat, and threads there. Nodes of earlier versions
-- know neither, and go on.
ALTER TABLE webchat_lines ADD COLUMN marks TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE webchat_lines ADD COLUMN thread TEXT COLLATE "C";
