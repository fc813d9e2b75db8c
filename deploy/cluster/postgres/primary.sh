#!/usr/bin/env bash
# Run once by the image in the empty database: creates the standby's user. From the next start on, every commit waits until
# the standby has synced it.
set -euo pipefail

psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -v secret="$REPLICATION_SECRET" <<'SQL'
CREATE ROLE replicator WITH REPLICATION LOGIN PASSWORD :'secret';
ALTER SYSTEM SET synchronous_standby_names = '*';
SQL
echo "host replication replicator all scram-sha-256" >>"$PGDATA/pg_hba.conf"
