-- The order of a person's distinct ids: the main one first, then by time of joining. The copies are made anew.
ALTER TABLE person ADD COLUMN main_distinct_id VARCHAR;
ALTER TABLE person_distinct_id ADD COLUMN joined BIGINT;
UPDATE mirror_cursor SET change_id = -1;
-- The time in a version 7 uuid has no sign; DuckDB reads one.
UPDATE events SET uuid_time = uuid_time + 281474976710656 WHERE uuid_time < 0;
