/** The kill test's adapter for Flagkeep: the compiled executable, its public HTTP routes, its export. */

import { createReadStream, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { getChildren } from "../../support/processes.ts";
import { type Adapter, getDigest, type RunningServer } from "../adapter.ts";
import type { Stored } from "../checker.ts";

const executable = process.env.FLAGKEEP_TEST_EXECUTABLE ?? resolve(import.meta.dir, "../../../dist/flagkeep");
const name = "kill test";
/** So much of the log is looked at for the address. */
const logStart = 100_000;

interface Keys {
  project: string;
  personal: string;
}

async function run(...args: string[]): Promise<string> {
  const child = Bun.spawn([executable, ...args], { stdout: "pipe", stderr: "inherit" });
  const [output, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  if (code !== 0) throw new Error(`flagkeep ${args[0]} ended with ${code}`);
  return output;
}

const dataDir = (folder: string) => join(folder, "data");
const keysFile = (folder: string) => Bun.file(join(folder, "keys.json"));

const flagkeep: Adapter = {
  async prepare(folder) {
    const created = JSON.parse(await run("init", "--data-dir", dataDir(folder), "--json"));
    const keys: Keys = { project: created.project.api_key, personal: created.personal_api_key };
    await keysFile(folder).write(JSON.stringify(keys));
  },

  async start(folder): Promise<RunningServer> {
    const { project } = (await keysFile(folder).json()) as Keys;
    const child = Bun.spawn(
      [executable, "serve", "--data-dir", dataDir(folder), "--port", "0", "--log-format", "json"],
      { stdout: "pipe", stderr: "ignore" },
    );
    const url = await addressIn(child.stdout);
    const post = async (path: string, body: object) =>
      (await fetch(url + path, { method: "POST", body: JSON.stringify({ api_key: project, ...body }) }))
        .status;
    return {
      async pids() {
        return [child.pid, ...getChildren(child.pid)];
      },
      async send(events, historical) {
        const batch = events.map(({ id, sender, number, text }) => ({
          event: name,
          uuid: id,
          distinct_id: sender,
          timestamp: new Date().toISOString(),
          properties: { number, text, $set: { number } },
        }));
        return (await post("/batch/", { batch, historical_migration: historical })) === 200;
      },
      async stored() {
        await post("/capture/", { event: "last one", distinct_id: "nobody" });
        await caughtUp(dataDir(folder));
        // Line by line: all of it together can be longer than a string may be.
        const file = join(folder, "exported.ndjson");
        await run("export", "events", file, "--data-dir", dataDir(folder));
        const found: { seq: number; event: Stored }[] = [];
        for await (const line of createInterface({ input: createReadStream(file) })) {
          const { seq, event, uuid, distinct_id: sender, properties } = JSON.parse(line);
          if (event !== name) continue;
          const { number, text } = properties;
          found.push({ seq, event: { id: uuid, sender, number, digest: getDigest(text) } });
        }
        rmSync(file);
        return found.sort((one, other) => one.seq - other.seq).map(({ event }) => event);
      },
      async stop() {
        child.kill("SIGTERM");
        await child.exited;
      },
    };
  },
};

/** Everything acknowledged is in the stores. */
async function caughtUp(folder: string): Promise<void> {
  for (;;) {
    const { journal, engine } = JSON.parse(await run("status", "--data-dir", folder, "--json"));
    if (engine.up && journal.every((lane: { lag_entries: number }) => lane.lag_entries === 0)) return;
    await Bun.sleep(100);
  }
}

/** The address in the log, which is read to its end, or the server would wait for its reader. */
function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  return new Promise((resolve, reject) => {
    void (async () => {
      let text = "";
      for await (const chunk of output) {
        if (text.length < logStart) text += Buffer.from(chunk).toString();
        const found = /"url":"(http[^"]+)"/.exec(text);
        if (found !== null) resolve(found[1]!.replace(/\/$/, ""));
      }
      reject(new Error("flagkeep serve ended before it listened"));
    })();
  });
}

export default flagkeep;
