-- Web analytics: goals as a JSON list of {name, event, path}, and whether screens of apps count as page views.
ALTER TABLE project ADD COLUMN web_goals TEXT NOT NULL DEFAULT '[]';
ALTER TABLE project ADD COLUMN count_screens INTEGER NOT NULL DEFAULT 0 CHECK (count_screens IN (0, 1));
