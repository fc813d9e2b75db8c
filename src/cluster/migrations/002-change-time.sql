-- The time of the last commit, which the next one exceeds: changes are recorded in one order, whatever the nodes' clocks say.
ALTER TABLE flagkeep.store ADD COLUMN last_at timestamptz NOT NULL DEFAULT '-infinity';
