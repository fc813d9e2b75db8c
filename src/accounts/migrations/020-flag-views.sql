-- Saved views of the flag list as a JSON list of {name, query}.
ALTER TABLE project ADD COLUMN flag_views TEXT NOT NULL DEFAULT '[]';
