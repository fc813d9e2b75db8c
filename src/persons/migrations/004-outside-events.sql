-- For events that are kept outside of the data directory. Which store they are in, by a name that it was given here.
CREATE TABLE outside_store (
  id TEXT PRIMARY KEY,
  -- Whether the store was told its name: from then on it must know it.
  is_claimed INTEGER NOT NULL
) STRICT;

-- How far each lane of the journal is loaded there; and the batch under way, whose borders stay until it is.
CREATE TABLE outside_load (
  lane TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  -- The last number of the batch under way; it begins behind `seq`.
  begun_seq INTEGER
) STRICT;

-- The last change whose persons are copied there.
CREATE TABLE outside_mirror (change_id INTEGER NOT NULL) STRICT;
