-- Hash-key overrides of distinct IDs that have no person yet; the person that gets the ID within five minutes gets them.
CREATE TABLE pending_override (
  -- In order of the first request: the oldest are evicted where there are too many.
  id INTEGER PRIMARY KEY,
  project_id INTEGER NOT NULL,
  distinct_id TEXT NOT NULL,
  hash_key TEXT NOT NULL,
  -- A JSON array of strings.
  flag_keys TEXT NOT NULL,
  -- Of the last request, in epoch microseconds.
  requested_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX pending_override_by_id ON pending_override (project_id, distinct_id);
