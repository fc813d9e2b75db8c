/**
 * A server that answers before it writes, as many do for speed: the kill test has to find what it loses.
 *
 * Its process keeps events in memory and writes them once a minute, or when it is asked for them: no round lasts as long,
 * so that every kill finds something to lose, and none a line half written.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Adapter, getDigest } from "../adapter.ts";

const careless: Adapter = {
  async start(folder) {
    const file = join(folder, "events.ndjson");
    const child = Bun.spawn([process.execPath, import.meta.path, file], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const reader = child.stdout.getReader();
    const url = Buffer.from((await reader.read()).value!)
      .toString()
      .trim();
    return {
      pids: async () => [child.pid],
      send: async (events) =>
        (await fetch(url, { method: "POST", body: JSON.stringify(events) })).status === 200,
      async stored() {
        await fetch(url);
        const text = existsSync(file) ? readFileSync(file, "utf8") : "";
        return text
          .split("\n")
          .filter(Boolean)
          .map((line) => JSON.parse(line))
          .map(({ id, sender, number, text }) => ({ id, sender, number, digest: getDigest(text) }));
      },
      async stop() {
        child.kill();
        await child.exited;
      },
    };
  },
};

export default careless;

if (import.meta.main) {
  const { appendFile } = await import("node:fs/promises");
  const file = process.argv[2]!;
  let waiting: unknown[] = [];
  const write = async () => {
    const events = waiting;
    waiting = [];
    await appendFile(file, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  };
  setInterval(write, 60_000);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method === "GET") await write();
      else waiting.push(...((await request.json()) as unknown[]));
      return new Response();
    },
  });
  console.log(server.url.href);
  // Ends with whoever has started it.
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || process.exit(), 500);
}
