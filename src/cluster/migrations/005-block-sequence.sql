-- Blocks of the journal are numbered by one sequence for both lanes instead of the lanes' rows, whose locks let one block be
-- committed at a time. The number of an entry is 1,024 times that of its block and its place in it. Numbers have gaps, and blocks
-- are committed in any order: readers stop at the safe number (src/cluster/safe-number.ts).

-- In the order in which nodes lock them. Appends of running nodes of earlier versions wait.
LOCK TABLE flagkeep.front_block, flagkeep.lane, flagkeep.journal IN ACCESS EXCLUSIVE MODE;

-- Above every number that was assigned.
CREATE SEQUENCE flagkeep.block;
SELECT setval('flagkeep.block', (SELECT max(next_seq) / 1024 + 1 FROM flagkeep.lane));

-- The number of the first of some entries of one block. More than 1,024 take the numbers of several consecutive blocks.
CREATE FUNCTION flagkeep.take_numbers(entries bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  first bigint;
  next bigint;
  taken bigint := 1;
BEGIN
  -- Before the number: whoever reads the sequence then gets a later id, and knows which transactions to wait for.
  PERFORM pg_current_xact_id();
  first := nextval('flagkeep.block');
  WHILE 1024 * taken < entries LOOP
    next := nextval('flagkeep.block');
    IF next = first + taken THEN
      taken := taken + 1;
    ELSE
      first := next;
      taken := 1;
    END IF;
  END LOOP;
  RETURN 1024 * first;
END $$;

-- The last number of each node and lane: what tells a node the number of a block whose commit had no answer.
ALTER TABLE flagkeep.front_block ADD COLUMN last_seq bigint NOT NULL DEFAULT 0;
-- The same of nodes whose rows are deleted.
ALTER TABLE flagkeep.lane ADD COLUMN last_seq bigint NOT NULL DEFAULT 0;
UPDATE flagkeep.lane SET last_seq = next_seq - 1;
CREATE VIEW flagkeep.acknowledged AS
  SELECT name AS lane, greatest(l.last_seq, next_seq - 1,
    coalesce((SELECT max(b.last_seq) FROM flagkeep.front_block b WHERE b.lane = l.name), 0)) AS last_seq
  FROM flagkeep.lane l;

-- Nodes of version 0.2 and its tables, `next_seq` and `front_number`: their appends take numbers of the sequence as well.
CREATE FUNCTION flagkeep.number_by_sequence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  entries bigint := NEW.next_seq - OLD.next_seq;
BEGIN
  NEW.next_seq := flagkeep.take_numbers(entries) + entries;
  RETURN NEW;
END $$;
CREATE TRIGGER number_by_sequence BEFORE UPDATE OF next_seq ON flagkeep.lane
  FOR EACH ROW EXECUTE FUNCTION flagkeep.number_by_sequence();
