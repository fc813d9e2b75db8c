/**
 * `make bench-backups`: how long captures and flag requests wait while backups are created, one after the other without a pause.
 *
 * Both clients ask at a steady rate and are measured apart from and beside the backups, in turn, on one machine: the backup, the
 * clients and the server share its processors and its disk.
 */

import { rmSync } from "node:fs";
import { flagkeep, ServerProcess, temporaryFolder } from "../support/server.ts";
import { startClient } from "./client.ts";
import { fill } from "./fill.ts";

const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS ?? 15);
const events = Number(process.env.EVENTS ?? 1_000_000);
const rates = { single: 300, flags: 500 } as const;

await using server = await ServerProcess.start();
const { url, token, dataDir } = server;
const backups = temporaryFolder();
await fill(server, events);
// The disk is still busy with what came in.
await waits(0);
for (let round = 1; round <= rounds; round++) {
  const apart = await waits(2 * round);
  const beside = waits(2 * round + 1);
  const created = await backUpUntil(beside);
  console.log(`round ${round}, beside ${created} backups`);
  for (const [place, name] of (["captures", "flags"] as const).entries()) {
    const without = apart[place]!;
    const within = (await beside)[place]!;
    console.log(
      `  ${name.padEnd(8)} p99 ${without.p99.toFixed(1)} ms apart, ${within.p99.toFixed(1)} beside ` +
        `(${(within.p99 / without.p99).toFixed(2)} times); longest ${without.max.toFixed(0)} and ${within.max.toFixed(0)} ms`,
    );
  }
}
rmSync(backups, { recursive: true, force: true });

/** How long captures and flag requests take. */
async function waits(seed: number) {
  const clients = await Promise.all(
    (["single", "flags"] as const).map((kind) =>
      startClient({
        url,
        token,
        kind,
        seed,
        seconds,
        connections: 16,
        size: 1_000,
        rate: rates[kind],
        requests: rates[kind] * (seconds + 1),
      }),
    ),
  );
  return await Promise.all(clients.map((client) => client.run()));
}

/** @returns how many backups were created meanwhile. */
async function backUpUntil(done: Promise<unknown>): Promise<number> {
  let isOver = false;
  void done.finally(() => {
    isOver = true;
  });
  for (let created = 0; ; created++) {
    if (isOver) return created;
    const { code, stderr } = await flagkeep(["backup", "create", backups, "--data-dir", dataDir]);
    if (code !== 0) throw new Error(stderr);
    await flagkeep(["backup", "prune", backups, "--keep-last", "1", "--data-dir", dataDir]);
  }
}
