/** With CPUs to spare, the executable's engine converts its archive to columns on a thread. */

import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { isColumnar, listArchive, readArchived } from "../../src/journal/archive.ts";
import { paths } from "../../src/paths.ts";
import { ServerProcess, until } from "../support/server.ts";

const events = 6_000;

const startWithThreads = (directory?: ServerProcess["directory"]) =>
  ServerProcess.start({ args: ["--duckdb-threads", "2"], ...(directory === undefined ? {} : { directory }) });

/** Names of the threads of the processes that a server has started. */
function threadNames(server: ServerProcess): string[] {
  const { pid } = server.process;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return children.flatMap((child) =>
    readdirSync(`/proc/${child}/task`).map((id) =>
      readFileSync(`/proc/${child}/task/${id}/comm`, "utf8").trim(),
    ),
  );
}

test("the archive becomes columnar on a thread, and is read without corruption", async () => {
  await using first = await startWithThreads();
  const batch = Array.from({ length: events }, () => ({
    event: "seen",
    distinct_id: crypto.randomUUID(),
    properties: { noise: Buffer.from(crypto.getRandomValues(new Uint8Array(100))).toString("base64") },
  }));
  expect((await first.batch(batch)).status).toBe(200);
  const loaded = async () => (await first.query("SELECT count(*)::DOUBLE AS n FROM events"))[0]!.n;
  await until(async () => (await loaded()) === events, "events are loaded");
  // A stop moves what is loaded to the archive.
  first.process.kill("SIGTERM");
  await first.process.exited;
  await using second = await startWithThreads(first.directory);
  const files = () => listArchive(paths(second.dataDir).archive, "realtime");
  await until(() => threadNames(second).includes("Worker"), "the thread runs");
  await until(() => files().some(({ path }) => isColumnar(path)), "a file is columnar");
  const [file] = files();
  const { segments, corruption } = await readArchived(file!);
  expect(corruption).toBeUndefined();
  expect(segments.at(-1)!.last).toBe(events);
});
