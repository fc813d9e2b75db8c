-- Notes of users on charts.
CREATE TABLE annotation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  content TEXT NOT NULL,
  date_marker INTEGER NOT NULL,
  scope TEXT NOT NULL DEFAULT 'project' CHECK (scope IN ('project', 'dashboard', 'dashboard_item')),
  dashboard_id INTEGER REFERENCES dashboard (id),
  insight_id INTEGER REFERENCES insight (id),
  deleted INTEGER NOT NULL DEFAULT 0,
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX annotation_project ON annotation (project_id, date_marker);
