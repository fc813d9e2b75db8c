-- Members of a cohort at its last calculation of each day (UTC).
CREATE TABLE cohort_size (
  cohort_id INTEGER NOT NULL REFERENCES cohort (id),
  day TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (cohort_id, day)
);
INSERT INTO cohort_size (cohort_id, day, count)
  SELECT id, strftime('%Y-%m-%d', last_calculation / 1000, 'unixepoch'), person_count
  FROM cohort WHERE last_calculation IS NOT NULL AND person_count IS NOT NULL;
