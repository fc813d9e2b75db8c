-- Distinct ids of deleted persons stayed in the copies. These are made anew.
UPDATE mirror_cursor SET change_id = -1;
