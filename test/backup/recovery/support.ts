/** A data directory with events of both lanes and persons, some of them archived, and ways to break it. */

import { closeSync, cpSync, existsSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  initializedDirectory,
  ServerProcess,
  type StoredEvent,
  temporaryFolder,
  until,
} from "../../support/server.ts";

export interface Filled {
  directory: Awaited<ReturnType<typeof initializedDirectory>>;
  dataDir: string;
  answers: Answers;
}

export interface Answers {
  events: StoredEvent[];
  persons: unknown[];
}

const realtimeCount = 300;
const historicalCount = 200;

/** Loads events in a run that ends in order, so that they are archived, and others in one that is killed. */
export async function filledDirectory(args: readonly string[] = []): Promise<Filled> {
  const directory = await initializedDirectory();
  const first = await ServerProcess.start({ directory, args });
  await fill(first, 0);
  await stop(first);
  const second = await ServerProcess.start({ directory, args });
  await fill(second, 1);
  const answers = await getAnswers(second);
  const pids = await second.enginePids();
  await second.kill();
  await until(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), "the engine is gone");
  return { directory, dataDir: directory.dataDir, answers };
}

/** The same in another folder. */
export function toCopy({ directory, answers }: Filled): Filled {
  const dataDir = join(temporaryFolder(), "data");
  cpSync(directory.dataDir, dataDir, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => !path.endsWith(".sock"),
  });
  return { directory: { ...directory, dataDir }, dataDir, answers };
}

/** Sends events of both lanes, duplicates, merges and properties, and waits until they are stored. */
export async function fill(server: ServerProcess, run: number): Promise<void> {
  const before = await server.events();
  const uuid = (n: number) => `${String(run).padStart(8, "0")}-0000-4000-8000-${String(n).padStart(12, "0")}`;
  const event = (n: number) => ({
    event: `event ${n % 7}`,
    uuid: uuid(n),
    distinct_id: `user-${run}-${n % 40}`,
    properties: { n, $set: { plan: n % 2 === 0 ? "paid" : "free", run } },
  });
  const realtime = Array.from({ length: realtimeCount }, (_, n) => event(n));
  // A duplicate, a merge, an event that must not change a person, and one without a name.
  const invalid = [
    event(0),
    { event: "$create_alias", distinct_id: `user-${run}-1`, properties: { alias: `user-${run}-2` } },
    {
      event: "$identify",
      distinct_id: `user-${run}-1`,
      properties: { $process_person_profile: false, $anon_distinct_id: "a" },
    },
    { distinct_id: "nameless" },
  ];
  const historical = Array.from({ length: historicalCount }, (_, n) => ({
    ...event(n + realtimeCount),
    timestamp: new Date(1.7e12 + n * 1_000).toISOString(),
  }));
  const send = async (items: unknown[], more?: Record<string, unknown>) => {
    const { status } = await server.batch(items, more);
    if (status !== 200) throw new Error("the events were refused");
  };
  await send([...realtime, ...invalid]);
  // Live events go first, when they are read again as well; here history could overtake them on its way to the engine.
  await server.eventsWhenStored(before.length + realtimeCount + 2);
  await send(historical, { historical_migration: true });
  await server.eventsWhenStored(before.length + realtimeCount + historicalCount + 2);
}

/** What the event store answers: all events, and persons by their copies in it. */
export async function getAnswers(server: ServerProcess): Promise<Answers> {
  const events = await server.events();
  const response = await server.api("/api/projects/1/query/", {
    method: "POST",
    body: {
      query: `SELECT e.event, p.properties ->> 'plan' AS plan, count(*) AS n, count(DISTINCT p.id) AS persons,
                count(DISTINCT len(p.distinct_ids)) AS sizes
              FROM events e JOIN persons p ON p.id = e.person_id GROUP BY ALL ORDER BY ALL`,
    },
  });
  if (response.status !== 200) throw new Error(await response.text());
  return { events, persons: ((await response.json()) as { rows: unknown[] }).rows };
}

export async function stop(server: ServerProcess): Promise<void> {
  if ((await server.stop()) !== 0) throw new Error("it did not stop in order");
}

/** Starts on the directory and waits until queries are answered. */
export async function restarted({ directory }: Pick<Filled, "directory">, args: readonly string[] = []) {
  const server = await ServerProcess.start({ directory, args });
  await until(
    async () => (await server.api("/api/projects/1/events/?limit=1")).status === 200,
    "queries are answered",
    30_000,
  );
  return server;
}

/** Overwrites bytes of a file. */
export function overwrite(path: string, position: number, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, position);
  closeSync(file);
}

export function archiveFiles(dataDir: string, lane: "realtime" | "historical"): string[] {
  const folder = join(dataDir, "journal/archive", lane);
  return existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .map((name) => join(folder, name))
    : [];
}

export function quarantined(dataDir: string): string[] {
  const folder = join(dataDir, "journal/quarantine");
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

export function remove({ dataDir }: Pick<Filled, "dataDir">): void {
  rmSync(join(dataDir, ".."), { recursive: true, force: true });
}

export function messages(server: ServerProcess): string[] {
  return server.logs.map(({ msg }) => String(msg));
}
