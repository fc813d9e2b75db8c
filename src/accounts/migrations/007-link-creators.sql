-- A one-time link works while the one who created it may still create it. Who created the links of before is unknown: they end.
ALTER TABLE setup_link ADD COLUMN created_by_id INTEGER REFERENCES user (id);
ALTER TABLE setup_link ADD COLUMN created_with_key_id TEXT REFERENCES personal_key (id);
DELETE FROM setup_link;
