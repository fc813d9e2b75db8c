-- Surveys, which posthog-js shows on pages; each has an internal flag that tells who has not answered yet.
CREATE TABLE survey (
  id TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES project (id),
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  type TEXT NOT NULL,
  schedule TEXT NOT NULL DEFAULT 'once',
  questions TEXT NOT NULL,
  conditions TEXT NOT NULL DEFAULT '{}',
  appearance TEXT NOT NULL DEFAULT '{}',
  linked_flag_id INTEGER REFERENCES flag (id),
  targeting_flag_id INTEGER REFERENCES flag (id),
  internal_targeting_flag_id INTEGER NOT NULL REFERENCES flag (id),
  start_date INTEGER,
  end_date INTEGER,
  archived INTEGER NOT NULL DEFAULT 0,
  enable_partial_responses INTEGER NOT NULL DEFAULT 0,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX survey_project ON survey (project_id);
