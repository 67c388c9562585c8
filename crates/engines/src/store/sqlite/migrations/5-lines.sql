-- Lines are numbered per room, from above the numbers that its people have seen: a browser
-- goes on from where it is. The numbers so far were of all rooms together, and told each
-- how much is said in the others.
ALTER TABLE webchat_lines ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
UPDATE webchat_lines SET seq = id;
DROP INDEX webchat_lines_by_room;
CREATE INDEX webchat_lines_by_room ON webchat_lines (room, seq);
