#!/usr/bin/env bash
# Starts one of two PostgreSQL servers in its current role. A server with an empty folder copies the primary and follows it.
# A former primary does not start after the other one was promoted, because its last commits may be missing there.
# An empty database is created only with POSTGRES_INIT=yes, which is for the first start.
set -euo pipefail

port=${PEER_PORT:-5432}
ask() { PGPASSWORD=$REPLICATION_SECRET PGCONNECT_TIMEOUT=2 psql -XAtq -h "$PEER" -p "$port" -U replicator -d postgres -c "$1"; }
peer_is_primary() { [ "$(ask 'SELECT pg_is_in_recovery()' 2>/dev/null)" = f ]; }

if [ -s "$PGDATA/PG_VERSION" ]; then
  if [ ! -e "$PGDATA/standby.signal" ] && peer_is_primary; then
    echo "$PEER is the primary now, and this server was it before: empty this folder to make it the standby." >&2
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
  # After a promotion this server has no standby; `ALTER SYSTEM` enables synchronous commits again later.
  echo "synchronous_standby_names = ''" >>"$PGDATA/postgresql.auto.conf"
fi
exec docker-entrypoint.sh postgres
