-- Names and values to choose from: kept while events are taken, so that nobody has to scan events for them.

CREATE TABLE event_name (
  project_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  -- Microseconds; the last one is exact to a day.
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  PRIMARY KEY (project_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE property_name (
  project_id INTEGER NOT NULL,
  -- `event`, `person`, or `group:` and the group type's name.
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  -- `String`, `Numeric`, `Boolean`, `DateTime`; null as long as only lists and objects were seen.
  type TEXT,
  last_seen INTEGER NOT NULL,
  PRIMARY KEY (project_id, owner, name)
) STRICT, WITHOUT ROWID;

-- The first few short values of each property.
CREATE TABLE property_value (
  project_id INTEGER NOT NULL,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  -- As JSON.
  value TEXT NOT NULL,
  PRIMARY KEY (project_id, owner, name, value)
) STRICT, WITHOUT ROWID;
