/**
 * Kills a server under load, again and again on the same data, and counts what it had acknowledged and does not have, or
 * has twice.
 *
 * `bun test/kill-test/run.ts [--adapter flagkeep] [--rounds 20] [--seed 1] [--out FOLDER]`: prints the verdict, leaves the log
 * and what was stored in the folder, and ends with 1 when a promise was broken. README.md beside it tells more.
 */

import { appendFileSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { randomFrom } from "../support/seeded-random.ts";
import { type Adapter, getDigest, type RunningServer, type SentEvent } from "./adapter.ts";
import { described, isClean, judgeFiles, type Sent } from "./checker.ts";

const { values } = parseArgs({
  options: {
    adapter: { type: "string", default: "flagkeep" },
    rounds: { type: "string", default: "20" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    out: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);
const random = randomFrom(seed);
const folder = values.out ?? mkdtempSync(join(tmpdir(), "kill-test-"));
mkdirSync(folder, { recursive: true });
const logFile = join(folder, "sent.ndjson");
const storedFile = join(folder, "stored.ndjson");
const isName = /^[a-z0-9-]+$/.test(values.adapter);
const adapterPath = isName
  ? join(import.meta.dir, "adapters", `${values.adapter}.ts`)
  : resolve(values.adapter);
const adapter = ((await import(adapterPath)) as { default: Adapter }).default;

const senders = 6;
const batchMax = 40;
const textMax = 900;
/** A round lasts so long, at random, before everything is killed. */
const roundMsMin = 100;
const roundMsMax = 1_500;

/** Sends one request after the other until the server exits, and records the outcome of each. */
class Sender {
  private number = 0;

  constructor(
    private readonly name: string,
    private readonly historical: boolean,
  ) {}

  async sendUntilDown(server: RunningServer): Promise<void> {
    for (let isUp = true; isUp; ) {
      const events = Array.from({ length: 1 + Math.floor(random() * batchMax) }, () => this.next());
      let outcome: Sent["outcome"] = "unknown";
      try {
        if (await server.send(events, this.historical)) outcome = "acknowledged";
      } catch {
        isUp = false;
      }
      const sent: Sent = {
        sender: this.name,
        historical: this.historical,
        outcome,
        events: events.map(({ id, number, text }) => ({ id, number, digest: getDigest(text) })),
      };
      appendFileSync(logFile, `${JSON.stringify(sent)}\n`);
    }
  }

  private next(): SentEvent {
    this.number += 1;
    const text = "é".repeat(Math.floor(random() * textMax)) + this.number;
    return { id: Bun.randomUUIDv7(), sender: this.name, number: this.number, text };
  }
}

console.log(`${values.adapter}: ${rounds} rounds, seed ${seed}, in ${folder}`);
await adapter.prepare?.(folder);
const all = Array.from({ length: senders }, (_, index) => new Sender(`sender-${index}`, index % 3 === 2));
for (let round = 1; round <= rounds; round++) {
  const server = await adapter.start(folder);
  const sending = all.map((sender) => sender.sendUntilDown(server));
  await Bun.sleep(roundMsMin + random() * (roundMsMax - roundMsMin));
  const pids = await server.pids();
  // One of its processes alone, now and then, before all of them.
  if (pids.length > 1 && random() < 0.3) {
    kill(pids[1 + Math.floor(random() * (pids.length - 1))]!);
    await Bun.sleep(random() * 400);
  }
  for (const pid of await server.pids()) kill(pid);
  await Promise.all(sending);
}
const server = await adapter.start(folder);
const stored = await server.stored().finally(() => server.stop());
writeFileSync(storedFile, stored.map((event) => `${JSON.stringify(event)}\n`).join(""));

const report = judgeFiles(logFile, storedFile);
console.log(described(report));
process.exit(isClean(report) ? 0 : 1);

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself meanwhile.
  }
}
