-- Objects behind a flag: experiments, their holdouts and shared metrics, and early access features.
CREATE TABLE experiment_holdout (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  filters TEXT NOT NULL,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE experiment_saved_metric (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  query TEXT NOT NULL,
  tags TEXT NOT NULL DEFAULT '[]',
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE experiment (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  flag_id INTEGER NOT NULL REFERENCES flag (id),
  -- Whether the experiment created its flag: then the scope of experiments is enough to change it.
  owns_flag INTEGER NOT NULL DEFAULT 0,
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  type TEXT NOT NULL DEFAULT 'product' CHECK (type IN ('product', 'web')),
  tags TEXT NOT NULL DEFAULT '[]',
  parameters TEXT NOT NULL DEFAULT '{}',
  start_date INTEGER,
  end_date INTEGER,
  archived INTEGER NOT NULL DEFAULT 0,
  deleted INTEGER NOT NULL DEFAULT 0,
  metrics TEXT NOT NULL DEFAULT '[]',
  metrics_secondary TEXT NOT NULL DEFAULT '[]',
  saved_metrics TEXT NOT NULL DEFAULT '[]',
  exposure_criteria TEXT NOT NULL DEFAULT '{}',
  stats_config TEXT NOT NULL DEFAULT '{}',
  only_count_matured_users INTEGER NOT NULL DEFAULT 0,
  minimum_exposures INTEGER NOT NULL DEFAULT 100,
  running_time_calculation TEXT NOT NULL DEFAULT '{}',
  holdout_id INTEGER REFERENCES experiment_holdout (id),
  conclusion TEXT,
  conclusion_comment TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX experiment_project ON experiment (project_id, deleted);
CREATE INDEX experiment_flag ON experiment (flag_id);
CREATE TABLE early_access_feature (
  id TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES project (id),
  flag_id INTEGER NOT NULL REFERENCES flag (id),
  owns_flag INTEGER NOT NULL DEFAULT 0,
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  stage TEXT NOT NULL,
  documentation_url TEXT NOT NULL DEFAULT '',
  payload TEXT NOT NULL DEFAULT '{}',
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX early_access_feature_project ON early_access_feature (project_id);
-- What a flag is used by: shown in its fields, and a reason not to delete it.
CREATE TABLE flag_link (
  kind TEXT NOT NULL CHECK (kind IN ('experiment', 'feature', 'survey')),
  object_id TEXT NOT NULL,
  flag_id INTEGER NOT NULL REFERENCES flag (id),
  name TEXT NOT NULL,
  shown TEXT NOT NULL DEFAULT '{}',
  -- The flag cannot be deleted.
  holds INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, object_id, flag_id)
) STRICT;
CREATE INDEX flag_link_flag ON flag_link (flag_id);
