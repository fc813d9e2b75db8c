-- Distinct ids with personless events: where a merge makes a person, its uuid depends on which id has such a history.
-- There are as many as anonymous visitors, so only a hash is kept: xxHash64 of the id, as a signed number.
CREATE TABLE personless_id (
  project_id INTEGER NOT NULL,
  id_hash INTEGER NOT NULL,
  PRIMARY KEY (project_id, id_hash)
) STRICT, WITHOUT ROWID;
