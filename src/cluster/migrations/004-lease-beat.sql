-- The holder increments `beat`. Another node takes over once it has seen the same epoch and beat for long enough by its own
-- clock: the clock of a server may be wrong after a failover. A released lease has no holder. `beat_at` is only displayed.
ALTER TABLE flagkeep.lease ADD COLUMN beat bigint NOT NULL DEFAULT 0, ADD COLUMN beat_at timestamptz NOT NULL DEFAULT '-infinity';
-- Nodes of earlier versions go by `until`: the one that loads loses the lease, and none of them acquires it again.
UPDATE flagkeep.lease SET epoch = epoch + 1, holder = NULL, until = 'infinity';
