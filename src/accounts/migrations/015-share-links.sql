-- Links that show one dashboard or insight to everyone who has them. Of the token and the password only hashes are kept.
CREATE TABLE share_link (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  dashboard_id INTEGER REFERENCES dashboard (id),
  insight_id INTEGER REFERENCES insight (id),
  name TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL UNIQUE,
  password_hash TEXT,
  expires_at INTEGER,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  CHECK ((dashboard_id IS NULL) <> (insight_id IS NULL))
) STRICT;
CREATE INDEX share_link_project ON share_link (project_id);
