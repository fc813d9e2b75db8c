-- A share link may show Overview: the members of its web analytics queries as JSON.
CREATE TABLE share_link_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  dashboard_id INTEGER REFERENCES dashboard (id),
  insight_id INTEGER REFERENCES insight (id),
  overview TEXT,
  name TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL UNIQUE,
  password_hash TEXT,
  expires_at INTEGER,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  CHECK ((dashboard_id IS NOT NULL) + (insight_id IS NOT NULL) + (overview IS NOT NULL) = 1)
) STRICT;
INSERT INTO share_link_new
  (id, project_id, dashboard_id, insight_id, name, hash, password_hash, expires_at, created_by_id, created_at)
  SELECT id, project_id, dashboard_id, insight_id, name, hash, password_hash, expires_at, created_by_id, created_at
  FROM share_link;
DROP TABLE share_link;
ALTER TABLE share_link_new RENAME TO share_link;
CREATE INDEX share_link_project ON share_link (project_id);
