-- When a flag's rollback conditions were written by a version that acts on them; NULL: they have no effect.
ALTER TABLE flag ADD COLUMN rollback_conditions_at INTEGER;
