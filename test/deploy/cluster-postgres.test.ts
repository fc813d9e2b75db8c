/** The script of the cluster's PostgreSQL, run by two servers: one follows, is promoted, and the other one comes back. */

import { expect } from "bun:test";
import { chmodSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { freePort } from "../support/ports.ts";
import { asServerUser, isReady, ownFolder, postgresPrograms, testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder, until } from "../support/server.ts";

const folder = join(import.meta.dir, "../../deploy/cluster");

testWithPostgres("the script of the cluster's PostgreSQL")(
  "PostgreSQL: the second follows, is promoted, and the first comes back only as its standby",
  async () => {
    // What the image has at that place, as far as it matters here.
    const entrypoint = `#!/usr/bin/env bash
      set -euo pipefail
      if [ ! -s "$PGDATA/PG_VERSION" ]; then
        initdb -D "$PGDATA" -U "$POSTGRES_USER" -A trust -N >/dev/null
        pg_ctl -D "$PGDATA" -o "-c listen_addresses= -c unix_socket_directories=$PGDATA -p $PORT" -w start >/dev/null
        export PGHOST=$PGDATA PGPORT=$PORT
        createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
        bash ${join(folder, "postgres/primary.sh")}
        pg_ctl -D "$PGDATA" -m fast -w stop >/dev/null
      fi
      exec postgres -D "$PGDATA" -p "$PORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories=`;
    const tools = temporaryFolder();
    chmodSync(tools, 0o755);
    await Bun.write(join(tools, "docker-entrypoint.sh"), entrypoint);
    chmodSync(join(tools, "docker-entrypoint.sh"), 0o755);
    const nodes = [0, 1].map(() => ({ port: freePort(), folder: ownFolder() }));
    const running: Subprocess[] = [];
    /** Starts one of them, as compose does. */
    const start = (index: number, more: Record<string, string> = {}) => {
      const own = nodes[index]!;
      const peer = nodes[1 - index]!;
      const child = Bun.spawn(asServerUser(["bash", join(folder, "postgres/node.sh")], "QUIT"), {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
        cwd: dirname(own.folder),
        env: {
          PATH: `${tools}:${postgresPrograms}:${process.env.PATH}`,
          PGDATA: own.folder,
          PORT: String(own.port),
          POSTGRES_USER: "flagkeep",
          POSTGRES_DB: "flagkeep",
          REPLICATION_SECRET: "it's",
          PEER: "127.0.0.1",
          PEER_PORT: String(peer.port),
          LC_ALL: "C",
          ...more,
        },
      });
      running.push(child);
      return child;
    };
    const ready = (index: number, child: Subprocess) =>
      until(() => {
        if (child.exitCode !== null) throw new Error(`PostgreSQL ${index + 1} ended with ${child.exitCode}.`);
        return isReady(nodes[index]!.folder, child.pid);
      }, "it has started");
    const ask = async (index: number, statement: string) => {
      const sql = new Bun.SQL(`postgres://flagkeep@127.0.0.1:${nodes[index]!.port}/flagkeep`, { max: 1 });
      try {
        return ([...(await sql.unsafe(statement))] as Record<string, unknown>[]).map(
          (row) => Object.values(row)[0],
        );
      } finally {
        await sql.close();
      }
    };
    const following = (index: number) =>
      until(
        async () => (await ask(index, "SELECT sync_state FROM pg_stat_replication"))[0] === "sync",
        "the standby is synchronous",
      );
    try {
      // The second one comes first, and waits.
      let second = start(1);
      let first = start(0, { POSTGRES_INIT: "yes" });
      await ready(0, first);
      await ready(1, second);
      await following(0);
      await ask(0, "CREATE TABLE kept AS SELECT 1 AS number");
      first.kill("SIGKILL");
      await first.exited;
      expect(await ask(1, "SELECT pg_promote()")).toEqual([true]);
      await ask(1, "INSERT INTO kept VALUES (2)");

      first = start(0, { POSTGRES_INIT: "yes" });
      expect(await first.exited).toBe(1);
      rmSync(nodes[0]!.folder, { recursive: true });
      nodes[0]!.folder = ownFolder();
      first = start(0, { POSTGRES_INIT: "yes" });
      await ready(0, first);
      expect(await ask(0, "SELECT pg_is_in_recovery()")).toEqual([true]);
      await ask(1, "ALTER SYSTEM SET synchronous_standby_names = '*'");
      await ask(1, "SELECT pg_reload_conf()");
      await following(1);
      await ask(1, "INSERT INTO kept VALUES (3)");
      expect(await ask(0, "SELECT count(*)::int FROM kept")).toEqual([3]);
      // A restart of the primary is no reason to become something else.
      second.kill("SIGINT");
      await second.exited;
      second = start(1);
      await ready(1, second);
      expect(await ask(1, "SELECT pg_is_in_recovery()")).toEqual([false]);
    } finally {
      for (const child of running) child.kill("SIGQUIT");
      await Promise.all(running.map((child) => child.exited));
      for (const each of nodes) rmSync(dirname(each.folder), { recursive: true, force: true });
      rmSync(tools, { recursive: true, force: true });
    }
  },
  90_000,
);
