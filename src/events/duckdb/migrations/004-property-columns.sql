-- Properties that have a column of their own in `events`; the JSON stays the truth. See `property-columns.ts`.
CREATE TABLE property_column (
  name VARCHAR NOT NULL,
  -- Rows from this row number on have the value, new ones from their loading; 0: all have it.
  filled_from BIGINT NOT NULL
);
