-- The name that a client derived from an insight's query, and whether a tile shows the insight's description.
ALTER TABLE insight ADD COLUMN derived_name TEXT;
ALTER TABLE tile ADD COLUMN show_description INTEGER;
