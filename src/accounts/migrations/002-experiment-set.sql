-- Ids of the experiments of a flag, as its clients send them: a JSON array of integers.
ALTER TABLE flag ADD COLUMN experiment_set TEXT NOT NULL DEFAULT '[]';
