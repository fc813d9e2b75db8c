#!/usr/bin/env bash
# Starts one of two PostgreSQL servers, as what it should be: who has an empty folder copies the other one and follows it;
# who was the primary while the other one has been promoted stays down, for its last commits may be missing there.
# An empty database is created only where POSTGRES_INIT is `yes`, which it is for the very first start.
set -euo pipefail

port=${PEER_PORT:-5432}
ask() { PGPASSWORD=$REPLICATION_SECRET PGCONNECT_TIMEOUT=2 psql -XAtq -h "$PEER" -p "$port" -U replicator -d postgres -c "$1"; }
peer_is_primary() { [ "$(ask 'SELECT pg_is_in_recovery()' 2>/dev/null)" = f ]; }

if [ -s "$PGDATA/PG_VERSION" ]; then
  if [ ! -e "$PGDATA/standby.signal" ] && peer_is_primary; then
    echo "$PEER is the primary, and this was it before: empty this folder, so that it becomes the standby." >&2
    exit 1
  fi
elif [ "${POSTGRES_INIT:-}" != yes ] || peer_is_primary; then
  until peer_is_primary; do
    echo "Waiting for $PEER to become the primary." >&2
    sleep 1
  done
  ask "SELECT pg_create_physical_replication_slot('standby')
       WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'standby')"
  PGPASSWORD=$REPLICATION_SECRET pg_basebackup -h "$PEER" -p "$port" -U replicator -D "$PGDATA" -R -S standby -X stream --checkpoint=fast ||
    { find "$PGDATA" -mindepth 1 -delete; exit 1; }
  chmod 0700 "$PGDATA"
  # Promoted, it is alone until it has a standby itself: `ALTER SYSTEM` says so then.
  echo "synchronous_standby_names = ''" >>"$PGDATA/postgresql.auto.conf"
fi
exec docker-entrypoint.sh postgres
