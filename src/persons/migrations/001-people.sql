-- Times are epoch microseconds, UTC. There are no foreign keys between the tables of the hot path: the pipeline is
-- their only writer and moves every reference of a folded person itself.

CREATE TABLE person (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  -- The id that is listed first; an id that became main by an alias is not displaced by later identifies.
  main_distinct_id TEXT NOT NULL,
  is_main_alias INTEGER NOT NULL,
  -- How many distinct ids ever joined; the next one gets this number.
  joined_count INTEGER NOT NULL,
  is_identified INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  -- Changes of what can be seen of the person.
  version INTEGER NOT NULL,
  -- Lower-case email, name and username, for searching; NULL without any.
  search_text TEXT,
  -- A JSON object.
  properties TEXT NOT NULL,
  -- Event time of the last write of each property, in the order of the JSON object; packed by property-columns.ts.
  property_times BLOB NOT NULL,
  -- A JSON array of [name, time of the $unset] for properties that are absent; NULL when there are none.
  unset_times TEXT
) STRICT;
CREATE UNIQUE INDEX person_by_uuid ON person (project_id, uuid);
-- In order of id, for walking through all persons of a project and for counting them.
CREATE INDEX person_by_project ON person (project_id);
CREATE INDEX person_by_age ON person (project_id, created_at, id);
CREATE INDEX person_by_text ON person (project_id, search_text) WHERE search_text IS NOT NULL;

CREATE TABLE distinct_id (
  project_id INTEGER NOT NULL,
  distinct_id TEXT NOT NULL,
  person_id INTEGER NOT NULL,
  -- Order of joining within the person.
  joined INTEGER NOT NULL,
  PRIMARY KEY (project_id, distinct_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX distinct_id_by_person ON distinct_id (person_id, joined);

CREATE TABLE group_type (
  project_id INTEGER NOT NULL,
  -- 0 to 4.
  type_index INTEGER NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (project_id, type_index)
) STRICT, WITHOUT ROWID;

CREATE TABLE project_group (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL,
  type_index INTEGER NOT NULL,
  group_key TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  properties TEXT NOT NULL,
  property_times BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX project_group_by_key ON project_group (project_id, type_index, group_key);
CREATE INDEX project_group_by_age ON project_group (project_id, type_index, created_at, id);

CREATE TABLE cohort_member (
  cohort_id INTEGER NOT NULL,
  person_id INTEGER NOT NULL,
  PRIMARY KEY (cohort_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX cohort_member_by_person ON cohort_member (person_id, cohort_id);

CREATE TABLE hash_key_override (
  person_id INTEGER NOT NULL,
  flag_key TEXT NOT NULL,
  hash_key TEXT NOT NULL,
  PRIMARY KEY (person_id, flag_key)
) STRICT, WITHOUT ROWID;

-- What the event store has not mirrored yet. A row with a distinct id says whose it is now, and that the person may have
-- changed; a row without says that the person changed, or went away.
CREATE TABLE change (
  change_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL,
  person_uuid TEXT NOT NULL,
  distinct_id TEXT,
  is_deleted INTEGER NOT NULL
) STRICT;

-- The last sequence number of each lane that is in this file; moves in the transaction that applies the batch.
CREATE TABLE lane_cursor (lane TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO lane_cursor VALUES ('historical', 0), ('realtime', 0);

-- One row per project, type, subject and hour.
CREATE TABLE ingestion_warning (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL,
  type TEXT NOT NULL,
  -- What the warning is about, usually a distinct id; '' for all beyond the number that is told apart per hour.
  subject TEXT NOT NULL,
  -- Hours since the epoch.
  hour INTEGER NOT NULL,
  -- A JSON object: the details of the first one.
  details TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  count INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ingestion_warning_by_subject ON ingestion_warning (project_id, hour, type, subject);
CREATE INDEX ingestion_warning_by_age ON ingestion_warning (project_id, last_at, id);

CREATE TABLE usage_day (
  project_id INTEGER NOT NULL,
  -- UTC day of receipt, YYYY-MM-DD.
  day TEXT NOT NULL,
  identified INTEGER NOT NULL,
  anonymous INTEGER NOT NULL,
  historical INTEGER NOT NULL,
  duplicates INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  PRIMARY KEY (project_id, day)
) STRICT, WITHOUT ROWID;

-- What is usual for a project: realtime events per minute, a JSON array of [minute, count, inSpike].
CREATE TABLE event_rate (
  project_id INTEGER PRIMARY KEY,
  -- Minutes since the epoch.
  first_minute INTEGER NOT NULL,
  minutes TEXT NOT NULL
) STRICT;

CREATE TABLE spike (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  -- NULL while it lasts.
  ended_at INTEGER,
  last_above_at INTEGER NOT NULL,
  peak_per_minute INTEGER NOT NULL,
  usual_per_minute REAL NOT NULL,
  -- JSON arrays of [name, count], most first.
  events TEXT NOT NULL,
  distinct_ids TEXT NOT NULL
) STRICT;
CREATE INDEX spike_by_project ON spike (project_id, started_at);
