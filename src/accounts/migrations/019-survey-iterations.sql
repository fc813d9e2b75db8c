-- Surveys that are shown again every so many days, end after so many responses, and are translated.
ALTER TABLE survey ADD COLUMN responses_limit INTEGER;
ALTER TABLE survey ADD COLUMN iteration_count INTEGER;
ALTER TABLE survey ADD COLUMN iteration_frequency_days INTEGER;
ALTER TABLE survey ADD COLUMN current_iteration INTEGER;
ALTER TABLE survey ADD COLUMN current_iteration_start_date INTEGER;
ALTER TABLE survey ADD COLUMN translations TEXT NOT NULL DEFAULT '{}';
