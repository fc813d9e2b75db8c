/**
 * `make bench-workers`: how HTTP workers scale. Each worker gets a fifth of a CPU in a control group of its own, so that
 * a small machine shows the ratio that a large one has.
 *
 * Figures, not tests. Needs root, for control groups. `ROUNDS=3 SECONDS=5 make bench-workers`.
 */

import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServerProcess } from "../support/server.ts";
import { type ClientPlan, type ClientResult, startClient } from "./client.ts";
import { createFlags, createPersons } from "./flags-data.ts";
import { cpuSeconds } from "./processes.ts";

const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);
const share = 0.2;
const periodMicros = 100_000;
const groupsRoot = existsSync("/sys/fs/cgroup/cgroup.controllers") ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
const isVersion2 = groupsRoot === "/sys/fs/cgroup";

/** Limits a process to a share of one CPU. @returns the group, which is removed when it is empty. */
function limit(pid: number): string {
  const group = join(groupsRoot, `flagkeep-bench-${pid}`);
  mkdirSync(group);
  const quota = share * periodMicros;
  if (isVersion2) writeFileSync(join(group, "cpu.max"), `${quota} ${periodMicros}`);
  else {
    writeFileSync(join(group, "cpu.cfs_period_us"), String(periodMicros));
    writeFileSync(join(group, "cpu.cfs_quota_us"), String(quota));
  }
  writeFileSync(join(group, "cgroup.procs"), String(pid));
  return group;
}

const forwardedRequests = 4_000;
const forwardedClients = 8;

type Kind = "single" | "batch" | "flags";
const plans: Record<Kind, Pick<ClientPlan, "kind" | "connections" | "requests" | "size">> = {
  flags: { kind: "flags", connections: 64, requests: 12_000 * (seconds + 1), size: 2_000 },
  batch: { kind: "batch", connections: 32, requests: 400 * (seconds + 1), size: 100 },
  single: { kind: "single", connections: 64, requests: 8_000 * (seconds + 1) },
};

interface Figures {
  perSecond: number;
  /** CPU time of the server process per event or request, microseconds. */
  serverMicros: number;
}

async function measure(kind: Kind, workers: number): Promise<Figures> {
  const server = await ServerProcess.start({ args: ["--workers", String(workers)] });
  const { url, token, process: child } = server;
  if (kind === "flags") {
    await createPersons(server);
    await createFlags(server);
  }
  const limited = workers === 1 ? [child.pid] : await server.workerPids();
  const groups = limited.map(limit);
  try {
    const client = await startClient({ ...plans[kind], url, token, seconds, seed: 1 });
    const before = cpuSeconds(child.pid);
    const result: ClientResult = await client.run();
    const imported = cpuSeconds(child.pid) - before;
    const done = (result.requests - result.failures) * (kind === "batch" ? plans.batch.size! : 1);
    return { perSecond: done / result.seconds, serverMicros: (imported / done) * 1e6 };
  } finally {
    await server[Symbol.asyncDispose]();
    await Bun.sleep(300);
    for (const group of groups) rmdirSync(group);
  }
}

/** CPU time of a request that a worker forwards, microseconds; without workers, the server process has all of it. */
async function measureForwarded(workers: number): Promise<{ serverMicros: number; workerMicros: number }> {
  await using server = await ServerProcess.start({ args: ["--workers", String(workers)] });
  const pids = workers === 1 ? [] : await server.workerPids();
  const workerSeconds = () => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const send = async (requests: number) => {
    const sendRequests = async () => {
      for (let sent = 0; sent < requests / forwardedClients; sent++)
        await (await server.api("/api/users/@me/")).arrayBuffer();
    };
    await Promise.all(Array.from({ length: forwardedClients }, sendRequests));
  };
  // Compilation and the first check of the key are not measured.
  await send(forwardedRequests);
  const before = { server: cpuSeconds(server.process.pid), workers: workerSeconds() };
  await send(forwardedRequests);
  const micros = (seconds: number) => (seconds / forwardedRequests) * 1e6;
  return {
    serverMicros: micros(cpuSeconds(server.process.pid) - before.server),
    workerMicros: micros(workerSeconds() - before.workers),
  };
}

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

for (const kind of ["flags", "batch", "single"] as const) {
  const ratios: number[] = [];
  const micros: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const one = await measure(kind, 1);
    const four = await measure(kind, 4);
    ratios.push(four.perSecond / one.perSecond);
    micros.push(four.serverMicros);
    console.log(
      `${kind}: 1 × ${Math.round(one.perSecond)}/s, 4 × ${Math.round(four.perSecond)}/s, ` +
        `ratio ${(four.perSecond / one.perSecond).toFixed(2)}, ` +
        `server process ${four.serverMicros.toFixed(1)} µs (without workers ${one.serverMicros.toFixed(1)})`,
    );
  }
  console.log(
    `${kind}: median ratio ${median(ratios).toFixed(2)}, server process ${median(micros).toFixed(1)} µs`,
  );
}

const alone = await measureForwarded(1);
const forwarded = await measureForwarded(4);
console.log(
  `forwarded: worker ${forwarded.workerMicros.toFixed(0)} µs, server process ${forwarded.serverMicros.toFixed(0)} µs ` +
    `(without workers ${alone.serverMicros.toFixed(0)})`,
);
