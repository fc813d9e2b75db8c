-- Times are milliseconds since 1970-01-01 UTC. Columns that hold JSON are named in schema.ts.

CREATE TABLE organization (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE,
  feature_flags_access_level INTEGER NOT NULL DEFAULT 37 CHECK (feature_flags_access_level IN (21, 37)),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE project (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  organization_id TEXT NOT NULL REFERENCES organization (id),
  name TEXT NOT NULL,
  api_token TEXT NOT NULL UNIQUE,
  secret_token TEXT NOT NULL UNIQUE,
  timezone TEXT NOT NULL DEFAULT 'UTC',
  anonymize_ips INTEGER NOT NULL DEFAULT 0,
  ingested_event INTEGER NOT NULL DEFAULT 0,
  archived_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE user (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  distinct_id TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL UNIQUE COLLATE NOCASE,
  first_name TEXT NOT NULL DEFAULT '',
  last_name TEXT NOT NULL DEFAULT '',
  is_email_verified INTEGER,
  role_at_organization TEXT,
  hedgehog_config TEXT,
  is_active INTEGER NOT NULL DEFAULT 1,
  current_project_id INTEGER REFERENCES project (id),
  current_organization_id TEXT REFERENCES organization (id),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE membership (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organization (id),
  user_id INTEGER NOT NULL REFERENCES user (id),
  level INTEGER NOT NULL CHECK (level IN (1, 8, 15)),
  joined_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (organization_id, user_id)
) STRICT;
CREATE INDEX membership_user ON membership (user_id);

CREATE TABLE personal_key (
  id TEXT PRIMARY KEY,
  user_id INTEGER NOT NULL REFERENCES user (id),
  label TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  mask TEXT NOT NULL,
  scopes TEXT NOT NULL,
  project_ids TEXT NOT NULL DEFAULT '[]',
  organization_ids TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  last_rolled_at INTEGER,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE INDEX personal_key_user ON personal_key (user_id);

CREATE TABLE role (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organization (id),
  name TEXT NOT NULL COLLATE NOCASE,
  feature_flags_access_level INTEGER NOT NULL CHECK (feature_flags_access_level IN (21, 37)),
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  UNIQUE (organization_id, name)
) STRICT;

CREATE TABLE role_membership (
  id TEXT PRIMARY KEY,
  role_id TEXT NOT NULL REFERENCES role (id) ON DELETE CASCADE,
  user_id INTEGER NOT NULL REFERENCES user (id),
  joined_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (role_id, user_id)
) STRICT;
CREATE INDEX role_membership_user ON role_membership (user_id);

CREATE TABLE dashboard (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  pinned INTEGER NOT NULL DEFAULT 0,
  deleted INTEGER NOT NULL DEFAULT 0,
  creation_mode TEXT NOT NULL DEFAULT 'default',
  restriction_level INTEGER NOT NULL DEFAULT 21,
  filters TEXT NOT NULL DEFAULT '{}',
  variables TEXT NOT NULL DEFAULT '{}',
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  last_accessed_at INTEGER
) STRICT;
CREATE INDEX dashboard_project ON dashboard (project_id, deleted, created_at DESC, id DESC);

CREATE TABLE insight (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  short_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  query TEXT NOT NULL,
  saved INTEGER NOT NULL DEFAULT 1,
  deleted INTEGER NOT NULL DEFAULT 0,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX insight_project ON insight (project_id, deleted, created_at DESC, id DESC);

CREATE TABLE tile (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  dashboard_id INTEGER NOT NULL REFERENCES dashboard (id) ON DELETE CASCADE,
  insight_id INTEGER REFERENCES insight (id) ON DELETE CASCADE,
  body TEXT,
  layouts TEXT NOT NULL DEFAULT '{}',
  color TEXT,
  position INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tile_dashboard ON tile (dashboard_id, position, id);

CREATE TABLE flag (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  key TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  filters TEXT NOT NULL,
  active INTEGER NOT NULL DEFAULT 1,
  deleted INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 1,
  ensure_experience_continuity INTEGER DEFAULT 0,
  is_remote_configuration INTEGER DEFAULT 0,
  has_encrypted_payloads INTEGER DEFAULT 0,
  has_enriched_analytics INTEGER DEFAULT 0,
  performed_rollback INTEGER,
  rollback_conditions TEXT,
  surveys TEXT NOT NULL DEFAULT '{}',
  features TEXT NOT NULL DEFAULT '{}',
  evaluation_tags TEXT NOT NULL DEFAULT '[]',
  evaluation_runtime TEXT DEFAULT 'all',
  bucketing_identifier TEXT DEFAULT 'distinct_id',
  creation_context TEXT NOT NULL DEFAULT 'feature_flags',
  usage_dashboard_id INTEGER REFERENCES dashboard (id) ON DELETE SET NULL,
  -- Derived at every write, so that lists can be filtered by the database.
  search_text TEXT NOT NULL DEFAULT '',
  variant_count INTEGER NOT NULL DEFAULT 0,
  is_fully_rolled_out INTEGER NOT NULL DEFAULT 0,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  last_modified_by_id INTEGER REFERENCES user (id),
  updated_at INTEGER NOT NULL,
  last_called_at INTEGER,
  UNIQUE (project_id, key)
) STRICT;
CREATE INDEX flag_list ON flag (project_id, deleted, created_at DESC, id DESC);

CREATE TABLE flag_dashboard (
  flag_id INTEGER NOT NULL REFERENCES flag (id) ON DELETE CASCADE,
  dashboard_id INTEGER NOT NULL REFERENCES dashboard (id) ON DELETE CASCADE,
  PRIMARY KEY (flag_id, dashboard_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE role_access (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  flag_id INTEGER NOT NULL REFERENCES flag (id) ON DELETE CASCADE,
  role_id TEXT NOT NULL REFERENCES role (id) ON DELETE CASCADE,
  added_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (flag_id, role_id)
) STRICT;

-- A tag exists as long as something carries it.
CREATE TABLE tag (
  project_id INTEGER NOT NULL REFERENCES project (id),
  item_kind TEXT NOT NULL CHECK (item_kind IN ('flag', 'dashboard', 'insight')),
  item_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (item_kind, item_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_name ON tag (project_id, name);

CREATE TABLE cohort (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  groups TEXT NOT NULL DEFAULT '[]',
  filters TEXT NOT NULL DEFAULT '{"properties":{}}',
  query TEXT,
  deleted INTEGER NOT NULL DEFAULT 0,
  is_static INTEGER NOT NULL DEFAULT 0,
  is_calculating INTEGER NOT NULL DEFAULT 0,
  errors_calculating INTEGER NOT NULL DEFAULT 0,
  person_count INTEGER,
  last_calculation INTEGER,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX cohort_list ON cohort (project_id, deleted, created_at DESC, id DESC);

CREATE TABLE activity (
  id TEXT PRIMARY KEY,
  organization_id TEXT REFERENCES organization (id),
  project_id INTEGER REFERENCES project (id),
  user_id INTEGER REFERENCES user (id),
  is_system INTEGER NOT NULL DEFAULT 0,
  activity TEXT NOT NULL,
  scope TEXT NOT NULL,
  item_id TEXT NOT NULL,
  detail TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX activity_item ON activity (project_id, scope, item_id, created_at DESC, id DESC);
CREATE INDEX activity_scope ON activity (project_id, scope, created_at DESC, id DESC);

-- Counts the changes of what other processes keep in memory: 'keys', 'projects', 'flags:<project id>'.
CREATE TABLE revision (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
