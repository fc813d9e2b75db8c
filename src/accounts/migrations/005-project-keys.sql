-- The public key before the present one, while it still counts, and how much both were used since then.
ALTER TABLE project ADD COLUMN former_api_token TEXT;
ALTER TABLE project ADD COLUMN former_api_token_ends_at INTEGER;
ALTER TABLE project ADD COLUMN former_api_token_used_at INTEGER;
ALTER TABLE project ADD COLUMN former_api_token_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN present_api_token_requests INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX project_former_api_token ON project (former_api_token);

-- How many days events are kept: 0 for ever, NULL as the setting of the server says.
ALTER TABLE project ADD COLUMN events_retention_days INTEGER;
