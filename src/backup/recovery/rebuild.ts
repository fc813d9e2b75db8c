/** Makes the event store of a stopped appliance again, because an operator asked for it. */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import type { EventDatabaseSettings } from "../../events/duckdb/database.ts";
import { setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { PersonMirror } from "../../events/duckdb/person-mirror.ts";
import { Count, exactly, orNull } from "../../lib/schema.ts";
import { takeStoresLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { openPeople } from "../../people/open.ts";
import { requireEventsInside } from "../../people/outside-events.ts";
import { laneCursors } from "../../people/reader.ts";
import { PeopleStore } from "../../people/store.ts";
import type { BackupKeys } from "../keys.ts";
import type { BackupSource } from "../source.ts";
import { copyFrom, localCopies } from "./backup-copies.ts";
import { lastInJournal } from "./range.ts";
import { type Recovered, recoverEventStore } from "./recover.ts";

const LaneName = Type.Union([Type.Literal("realtime"), Type.Literal("historical")]);

/** As `rebuild --json` prints it. */
export const Rebuilt = exactly({
  data_dir: Type.String(),
  /** The backup, or `the archive`. */
  from: Type.String(),
  /** Where the file is that was there before. */
  put_aside: orNull(Type.String()),
  events: Count,
  persons: Count,
  /** Journal entries that were applied again: events, and notes about odd ones. */
  entries_applied: Count,
  /** Journal entries that the next start loads. */
  entries_waiting: Count,
  /** What was given up with `--accept-loss`. */
  lost: Type.Array(exactly({ lane: LaneName, first_seq: Count, last_seq: Count })),
});
export type Rebuilt = Static<typeof Rebuilt>;

export interface RebuildOptions {
  dataDir: string;
  settings: Omit<EventDatabaseSettings, "temporaryFolder">;
  /** The backup to make it from; else the best one on this machine, or the archive alone. */
  from?: BackupSource;
  /** What backups are decrypted with. */
  keys: BackupKeys;
  acceptLoss: boolean;
  onStep: (message: string) => void;
  onProgress: (done: number, total: number) => void;
  onDamage: (error: Error) => void;
}

/**
 * @throws {DirectoryInUse} an appliance runs.
 * @throws {EventsWouldBeLost} @throws {ArchiveDamaged} unless losses are accepted.
 */
export async function rebuildEventStore(options: RebuildOptions): Promise<Rebuilt> {
  const { dataDir, from, keys } = options;
  const place = paths(dataDir);
  const lock = await takeStoresLock(place, dataDir);
  try {
    setNativeFolder(place.native);
    rmSync(place.work, { recursive: true, force: true });
    mkdirSync(place.work, { recursive: true, mode: 0o700 });
    const people = openPeople(place.people);
    try {
      requireEventsInside(people);
      const recovered = await recoverEventStore({
        ...{
          dataDir,
          opener: "rebuild",
          always: true,
          mustBeCopy: from !== undefined,
          acceptLoss: options.acceptLoss,
        },
        settings: { ...options.settings, temporaryFolder: join(place.work, "duckdb") },
        // No events are counted here, so no spike can begin.
        people: () =>
          new PeopleStore(people, {
            ...{ factor: 10, minimumPerMinute: 1_000_000_000, historyMinutes: 60, historyMinutesMin: 2 },
          }),
        copies: async () => (from === undefined ? await localCopies(dataDir, keys) : [copyFrom(from, keys)]),
        hooks: { ...options, onStep: (message) => options.onStep(message) },
      });
      return await finish(options, recovered);
    } finally {
      people.$client.close();
    }
  } finally {
    rmSync(place.work, { recursive: true, force: true });
    lock.release();
  }
}

async function finish({ dataDir, onStep }: RebuildOptions, recovered: Recovered): Promise<Rebuilt> {
  const { database, loader, people, base, putAside, gaps, replayed } = recovered;
  try {
    const mirror = await PersonMirror.open(database, people.db);
    onStep("copying persons");
    if (mirror.isCutOff) await mirror.refill();
    else await mirror.follow();
    while (!(await loader.checkpoint())) await Bun.sleep(50);
    const connection = await database.connect();
    const counted = await connection.runAndReadAll(
      "SELECT (SELECT count(*) FROM events WHERE project_id > 0), (SELECT count(*) FROM person WHERE project_id > 0)",
    );
    connection.closeSync();
    const [events, persons] = counted.getRows()[0]!.map(Number) as [number, number];
    const applied = laneCursors(people.db);
    const last = lastInJournal(paths(dataDir).journal);
    const waiting = (lane: "realtime" | "historical") =>
      Math.max(last[lane], applied[lane]) - loader.cursor(lane);
    return {
      data_dir: dataDir,
      from: base!,
      put_aside: putAside ?? null,
      ...{ events, persons, entries_applied: replayed },
      entries_waiting: waiting("realtime") + waiting("historical"),
      lost: gaps.map(({ lane, first, last }) => ({ lane, first_seq: first, last_seq: last })),
    };
  } finally {
    database.close();
  }
}
