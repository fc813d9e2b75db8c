-- Everything that several fronts share. Times are PostgreSQL's own clock.

-- One row for each store whose rows are here: `metadata` and `people`.
CREATE TABLE flagkeep.store (
  name text PRIMARY KEY,
  -- The schema version of its rows.
  schema_version integer NOT NULL,
  -- Counts the commits; whoever commits holds this row's lock, so that there is one order.
  revision bigint NOT NULL,
  -- Up to which commit the rows below are brought up to date; later ones are in the commits.
  folded bigint NOT NULL DEFAULT 0,
  -- Of persons: up to which commit their changes are copied to the event store.
  mirrored bigint NOT NULL DEFAULT 0,
  -- Behind which revision every change can still be told: copies that are older are made anew.
  told_from bigint NOT NULL DEFAULT 0
);

-- The commits. Its name tells a copy that it has seen this history and no other.
CREATE TABLE flagkeep.commit (
  store text NOT NULL,
  revision bigint NOT NULL,
  id uuid NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Its rows as lines of table, key and the JSON of the columns (nothing: gone), between tabs; zstd. NULL: folded.
  body bytea,
  PRIMARY KEY (store, revision)
);
ALTER TABLE flagkeep.commit ALTER COLUMN body SET STORAGE EXTERNAL;

-- The rows of both stores, each as the JSON object of its columns; binary columns in hexadecimal digits.
CREATE TABLE flagkeep.row (
  store text NOT NULL,
  tbl text NOT NULL,
  -- Keys may be longer than an index takes.
  key_hash bytea NOT NULL,
  -- The primary key: a JSON array.
  key text NOT NULL,
  -- NULL: the row is gone, which is told for a while.
  body text,
  -- Of the commit that wrote it last.
  revision bigint NOT NULL,
  PRIMARY KEY (store, tbl, key_hash)
) WITH (fillfactor = 80);
CREATE INDEX row_by_revision ON flagkeep.row (store, revision, tbl, key_hash);

-- The journal: what was acknowledged and is not loaded yet. A block is what one front made durable together.
CREATE TABLE flagkeep.journal (
  lane text NOT NULL,
  first_seq bigint NOT NULL,
  entries integer NOT NULL,
  -- Bytes of the entries before they were compressed.
  size integer NOT NULL,
  -- The entries as JSON texts without their leading `{"seq":N,`, each ended by a line feed; zstd.
  body bytea NOT NULL,
  PRIMARY KEY (lane, first_seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE flagkeep.journal ALTER COLUMN body SET STORAGE EXTERNAL;

-- The row that numbers a lane: whoever appends holds its lock until the commit, so that numbers have no gaps and are in the
-- order of the commits.
CREATE TABLE flagkeep.lane (name text PRIMARY KEY, next_seq bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO flagkeep.lane VALUES ('realtime', 1), ('historical', 1);

-- The last block of each front and lane: what tells a front whether a block is there whose commit had no answer.
CREATE TABLE flagkeep.front_block (
  front uuid NOT NULL,
  lane text NOT NULL,
  block bigint NOT NULL,
  PRIMARY KEY (front, lane)
) WITH (fillfactor = 10);
-- The number of its first entry.
CREATE TABLE flagkeep.front_number (
  front uuid NOT NULL,
  lane text NOT NULL,
  first_seq bigint NOT NULL,
  PRIMARY KEY (front, lane)
) WITH (fillfactor = 10);

-- The fronts that live.
CREATE TABLE flagkeep.front (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  version text NOT NULL,
  seen_at timestamptz NOT NULL
);

-- Who loads events. The epoch goes up whenever that changes, and every commit of the loader names it.
CREATE TABLE flagkeep.lease (
  one integer PRIMARY KEY CHECK (one = 1),
  epoch bigint NOT NULL,
  front uuid,
  holder uuid,
  until timestamptz NOT NULL
);
INSERT INTO flagkeep.lease VALUES (1, 0, NULL, NULL, '-infinity');

-- What all fronts must know and is in no store, such as the key of encrypted payloads.
CREATE TABLE flagkeep.secret (name text PRIMARY KEY, value text NOT NULL);
