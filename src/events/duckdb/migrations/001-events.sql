-- One row per event; an event is never changed after it was loaded. Persons are joined at query time by distinct id.
CREATE TABLE events (
  project_id INTEGER NOT NULL,
  historical BOOLEAN NOT NULL,
  -- Order of arrival within the project and lane.
  seq BIGINT NOT NULL,
  uuid UUID NOT NULL,
  -- Milliseconds inside a version 7 uuid, else null: lets the search for duplicates skip what is older.
  uuid_time BIGINT,
  event VARCHAR NOT NULL,
  distinct_id VARCHAR NOT NULL,
  -- UTC, microseconds.
  timestamp TIMESTAMP NOT NULL,
  received_at TIMESTAMP NOT NULL,
  mode VARCHAR NOT NULL,
  elements_chain VARCHAR USING COMPRESSION zstd,
  properties JSON NOT NULL USING COMPRESSION zstd
);

-- How far each lane of the journal has been loaded; moves in the transaction that loads the events.
CREATE TABLE load_cursor (lane VARCHAR NOT NULL, seq BIGINT NOT NULL);
INSERT INTO load_cursor VALUES ('realtime', 0), ('historical', 0);
