-- Webhooks of projects. The URL and the secret are encrypted with the payload key; `shown_url` has its secret parts masked.
CREATE TABLE webhook (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES project (id),
  name TEXT NOT NULL DEFAULT '',
  url TEXT NOT NULL,
  shown_url TEXT NOT NULL,
  format TEXT NOT NULL CHECK (format IN ('json', 'slack', 'discord', 'custom')),
  template TEXT,
  events TEXT NOT NULL,
  secret TEXT NOT NULL,
  active INTEGER NOT NULL DEFAULT 1,
  -- Events that were not queued because too many deliveries were pending.
  skipped INTEGER NOT NULL DEFAULT 0,
  -- Monday of the last week for which a weekly summary was queued.
  summary_week TEXT NOT NULL DEFAULT '',
  created_by_id INTEGER REFERENCES user (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhook_project ON webhook (project_id);

-- The outbox: a delivery is queued in the transaction of the change that it reports, and stays listed afterwards.
CREATE TABLE webhook_delivery (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL,
  webhook_id INTEGER NOT NULL REFERENCES webhook (id),
  event TEXT NOT NULL,
  -- Display name of what the event is about, such as the key of a flag.
  item TEXT NOT NULL DEFAULT '',
  -- What the body is created from: ids of records, or data that is stored nowhere else.
  subject TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  next_attempt_at INTEGER,
  last_attempt_at INTEGER,
  duration_ms INTEGER,
  status INTEGER,
  error TEXT
) STRICT;
CREATE INDEX webhook_delivery_listed ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, next_attempt_at) WHERE state = 'pending';

-- What the server has already reported of things outside of this store, by name.
CREATE TABLE webhook_reported (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
