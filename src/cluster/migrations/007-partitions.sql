-- Loading by several nodes: each of 64 partitions (project_id % 64) is loaded by one engine at a time.

-- Which engines load: `single` (the holder of the lease) or `partitions` (all).
ALTER TABLE flagkeep.layout ADD COLUMN loading text NOT NULL DEFAULT 'single' CHECK (loading IN ('single', 'partitions'));

-- Engines that load partitions. Each increments its `beat`; another engine deletes the row when it has seen the same beat for long
-- enough by its own clock. `beat_at` is only displayed.
CREATE TABLE flagkeep.loader (
  id uuid PRIMARY KEY,
  node uuid NOT NULL,
  beat bigint NOT NULL DEFAULT 0,
  beat_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10);

CREATE TABLE flagkeep.partition (
  id smallint PRIMARY KEY,
  -- Incremented whenever the holder changes.
  epoch bigint NOT NULL DEFAULT 0,
  -- The engine that loads it.
  holder uuid,
  -- The engine that it is to be handed over to.
  wanted uuid,
  -- Limits how often it moves.
  moved_at timestamptz NOT NULL DEFAULT '-infinity',
  -- Per lane, the last number that persons and events contain. A batch is open while they differ.
  applied_realtime bigint NOT NULL DEFAULT 0,
  loaded_realtime bigint NOT NULL DEFAULT 0,
  applied_historical bigint NOT NULL DEFAULT 0,
  loaded_historical bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO flagkeep.partition (id) SELECT generate_series(0, 63);
