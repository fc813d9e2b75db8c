-- Copies of what `people.sqlite` knows, for queries over many persons or events at once. They follow it within seconds.

-- Who a distinct id belongs to; ids without a profile are not listed.
CREATE TABLE person_distinct_id (
  project_id INTEGER NOT NULL,
  distinct_id VARCHAR NOT NULL,
  person_uuid UUID NOT NULL
);

CREATE TABLE person (
  project_id INTEGER NOT NULL,
  uuid UUID NOT NULL,
  created_at TIMESTAMP NOT NULL,
  properties JSON NOT NULL USING COMPRESSION zstd
);

-- The last change of `people.sqlite` that the copies hold.
CREATE TABLE mirror_cursor (change_id BIGINT NOT NULL);
INSERT INTO mirror_cursor VALUES (0);
