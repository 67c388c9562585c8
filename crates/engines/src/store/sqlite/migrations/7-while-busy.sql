-- From version 6 to 7, what becomes of messages while an agent is busy. Nobody has said so yet.
ALTER TABLE gateways ADD COLUMN while_busy TEXT;
ALTER TABLE gateways ADD COLUMN shared_groups INTEGER NOT NULL DEFAULT 0;
ALTER TABLE routes ADD COLUMN while_busy TEXT;
ALTER TABLE inbox ADD COLUMN while_busy TEXT;
