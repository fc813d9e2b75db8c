-- Which key the payloads of flags are encrypted with: another one, or a new one, would make them unreadable.
CREATE TABLE payload_key (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  fingerprint TEXT NOT NULL
);
