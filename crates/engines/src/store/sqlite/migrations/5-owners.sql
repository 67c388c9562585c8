-- Processes whose actions another took up, one by one: they accept nothing more.
CREATE TABLE replaced_owners (
    owner INTEGER PRIMARY KEY
);
