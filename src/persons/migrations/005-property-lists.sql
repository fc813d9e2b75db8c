-- Names that persons' properties have, in order: most persons have the same ones, so their rows hold only the values.
-- `person.properties` is a JSON object, or the list's id and the values as JSON, a line each; where a line is empty, the
-- value is that of the property's twin (`property-names.ts`).
CREATE TABLE property_list (
  -- Follows from the names: 96 bits of their SHA-256, base64url.
  id TEXT PRIMARY KEY,
  -- A JSON array.
  names TEXT NOT NULL
) STRICT, WITHOUT ROWID;
