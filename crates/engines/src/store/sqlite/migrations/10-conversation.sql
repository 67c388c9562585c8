-- From version 9 to 10: marks on lines of the web chat, and threads there.
ALTER TABLE webchat_lines ADD COLUMN marks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE webchat_lines ADD COLUMN thread TEXT;
