-- The order of a person's distinct ids: the main one first, then by time of joining. The copies are made anew.
ALTER TABLE person ADD COLUMN main_distinct_id VARCHAR;
ALTER TABLE person_distinct_id ADD COLUMN joined BIGINT;
UPDATE mirror_cursor SET change_id = -1;
