-- In which language people are spoken to in a chat. Nobody knows of those so far.
ALTER TABLE chats ADD COLUMN language TEXT;
