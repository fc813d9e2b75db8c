-- The name that a client derived from an insight's query, whether it is a favorite, and whether a tile shows its description.
ALTER TABLE insight ADD COLUMN derived_name TEXT;
ALTER TABLE insight ADD COLUMN favorited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tile ADD COLUMN show_description INTEGER;
