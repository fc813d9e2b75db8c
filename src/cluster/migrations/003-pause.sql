-- Until then no node loads events, for example during a backup.
ALTER TABLE flagkeep.lease ADD COLUMN paused_until timestamptz NOT NULL DEFAULT '-infinity';
