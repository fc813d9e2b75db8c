-- Signing in to the console. Of passwords, links and cookies only hashes are kept.

CREATE TABLE user_password (
  user_id INTEGER PRIMARY KEY REFERENCES user (id),
  hash TEXT NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;

CREATE TABLE setup_link (
  hash TEXT PRIMARY KEY,
  user_id INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX setup_link_user ON setup_link (user_id);

CREATE TABLE session (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  user_id INTEGER NOT NULL REFERENCES user (id),
  key_id TEXT REFERENCES personal_key (id),
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  confirmed_at INTEGER,
  address TEXT NOT NULL DEFAULT '',
  browser TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX session_user ON session (user_id);
