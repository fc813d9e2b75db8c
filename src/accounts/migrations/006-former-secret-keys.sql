-- The secret key before the present one, while it still counts, and how much both were used since then.
ALTER TABLE project ADD COLUMN former_secret_token TEXT;
ALTER TABLE project ADD COLUMN former_secret_token_ends_at INTEGER;
ALTER TABLE project ADD COLUMN former_secret_token_used_at INTEGER;
ALTER TABLE project ADD COLUMN former_secret_token_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN present_secret_token_requests INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX project_former_secret_token ON project (former_secret_token);
