-- A change request may be about a cohort that a protected flag uses.
CREATE TABLE change_request_2 (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  flag_id INTEGER REFERENCES flag (id),
  cohort_id INTEGER REFERENCES cohort (id),
  changes TEXT NOT NULL,
  -- The flag or the cohort as it was when the change was requested.
  original TEXT NOT NULL,
  version INTEGER NOT NULL,
  note TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'applied', 'rejected', 'withdrawn')),
  created_by_id INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL,
  decided_by_id INTEGER REFERENCES user (id),
  decided_at INTEGER,
  CHECK ((flag_id IS NULL) <> (cohort_id IS NULL))
) STRICT;
INSERT INTO change_request_2
  SELECT id, project_id, flag_id, NULL, changes, original, version, note, state, created_by_id, created_at, decided_by_id,
    decided_at
  FROM change_request;
DROP TABLE change_request;
ALTER TABLE change_request_2 RENAME TO change_request;
CREATE INDEX change_request_project ON change_request (project_id, state);
