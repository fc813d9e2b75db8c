-- Changes of flags that are not made yet: those with a time, and those that somebody else has to agree to.

CREATE TABLE scheduled_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  flag_id INTEGER NOT NULL REFERENCES flag (id),
  payload TEXT NOT NULL,
  scheduled_at INTEGER NOT NULL,
  executed_at INTEGER,
  failure_reason TEXT,
  created_by_id INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX scheduled_change_due ON scheduled_change (executed_at, scheduled_at);

CREATE TABLE change_request (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  flag_id INTEGER NOT NULL REFERENCES flag (id),
  changes TEXT NOT NULL,
  -- The flag as it was when the change was proposed.
  original TEXT NOT NULL,
  version INTEGER NOT NULL,
  note TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'applied', 'rejected', 'withdrawn')),
  created_by_id INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL,
  decided_by_id INTEGER REFERENCES user (id),
  decided_at INTEGER
) STRICT;
CREATE INDEX change_request_project ON change_request (project_id, state);

-- Whose changes somebody else has to agree to: nobody's, those of flags tagged `critical`, all.
ALTER TABLE project ADD COLUMN approvals TEXT NOT NULL DEFAULT 'off' CHECK (approvals IN ('off', 'critical', 'all'));
