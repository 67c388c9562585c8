-- From version 4 to 5, the records. What servers remember is told them by this feed.
CREATE TABLE changes (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    records TEXT NOT NULL,
    key     TEXT NOT NULL,
    at      INTEGER NOT NULL
);
-- The log of a new instance begins above every number of older releases.
CREATE TRIGGER logs_begin AFTER INSERT ON instances
WHEN EXISTS (SELECT 1 FROM notes WHERE name = 'log_base')
BEGIN UPDATE instances SET tail = (SELECT CAST(value AS INTEGER) FROM notes WHERE name = 'log_base')
      WHERE instance = NEW.instance AND tail = 0; END;
CREATE INDEX routes_by_instance ON routes (instance) WHERE instance IS NOT NULL;
CREATE INDEX routes_by_tenant ON routes (tenant);
