-- On which day the weeks of insights start: 0 Sunday, 1 Monday, NULL the default (Monday).
ALTER TABLE project ADD COLUMN week_start_day INTEGER CHECK (week_start_day IN (0, 1));
