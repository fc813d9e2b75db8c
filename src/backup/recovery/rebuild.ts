/** Rebuilds the event store of a stopped server on an operator's request. */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import type { EventDatabaseOptions } from "../../events/duckdb/database.ts";
import { setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { DuckdbPersonReplica } from "../../events/duckdb/person-replica.ts";
import { NonNegativeInt, nullable, strictObject } from "../../lib/schema.ts";
import { acquireStoresLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { assertLocalEvents } from "../../persons/external-events.ts";
import { assertPersonsPresent } from "../../persons/missing.ts";
import { openPersons } from "../../persons/open.ts";
import { laneCursors } from "../../persons/reader.ts";
import { PersonStore } from "../../persons/store.ts";
import type { BackupKeys } from "../keys.ts";
import type { BackupSource } from "../source.ts";
import { copyFrom, localCopies } from "./backup-copies.ts";
import { lastInJournal } from "./range.ts";
import { type Recovered, recoverEventStore } from "./recover.ts";

const LaneName = Type.Union([Type.Literal("realtime"), Type.Literal("historical")]);

/** As `rebuild --json` prints it. */
export const Rebuilt = strictObject({
  data_dir: Type.String(),
  /** The backup, or `the archive`. */
  from: Type.String(),
  /** Path of the quarantined previous file. */
  put_aside: nullable(Type.String()),
  events: NonNegativeInt,
  persons: NonNegativeInt,
  /** Replayed journal entries: events, and ingestion warnings. */
  entries_applied: NonNegativeInt,
  /** Journal entries that the next start loads. */
  entries_waiting: NonNegativeInt,
  /** Discarded with `--accept-loss`. */
  lost: Type.Array(strictObject({ lane: LaneName, first_seq: NonNegativeInt, last_seq: NonNegativeInt })),
});
export type Rebuilt = Static<typeof Rebuilt>;

export interface RebuildOptions {
  dataDir: string;
  settings: Omit<EventDatabaseOptions, "temporaryFolder">;
  /** The backup to rebuild from; default: the best one on this machine, or the archive alone. */
  from?: BackupSource;
  /** Decrypt backups. */
  keys: BackupKeys;
  acceptLoss: boolean;
  onStep: (message: string) => void;
  onProgress: (done: number, total: number) => void;
  onCorruption: (error: Error) => void;
}

/**
 * @throws {DirectoryInUseError} a server is running.
 * @throws {DataLossError} @throws {ArchiveDamaged} unless losses are accepted.
 */
export async function rebuildEventStore(options: RebuildOptions): Promise<Rebuilt> {
  const { dataDir, from, keys } = options;
  const dataPaths = paths(dataDir);
  const lock = await acquireStoresLock(dataPaths, dataDir);
  try {
    setNativeFolder(dataPaths.native);
    rmSync(dataPaths.work, { recursive: true, force: true });
    mkdirSync(dataPaths.work, { recursive: true, mode: 0o700 });
    assertPersonsPresent(dataDir);
    const people = openPersons(dataPaths.people);
    try {
      assertLocalEvents(people);
      const recovered = await recoverEventStore({
        dataDir,
        opener: "rebuild",
        always: true,
        mustBeCopy: from !== undefined,
        acceptLoss: options.acceptLoss,
        options: { ...options.settings, temporaryFolder: join(dataPaths.work, "duckdb") },
        // Events are not counted here, so no spike can start.
        people: () =>
          new PersonStore(people, {
            factor: 10,
            minimumPerMinute: 1_000_000_000,
            historyMinutes: 60,
            historyMinutesMin: 2,
          }),
        copies: async () => (from === undefined ? await localCopies(dataDir, keys) : [copyFrom(from, keys)]),
        hooks: { ...options, onStep: (message) => options.onStep(message) },
      });
      return await finish(options, recovered);
    } finally {
      people.$client.close();
    }
  } finally {
    rmSync(dataPaths.work, { recursive: true, force: true });
    lock.release();
  }
}

async function finish({ dataDir, onStep }: RebuildOptions, recovered: Recovered): Promise<Rebuilt> {
  const { database, loader, people, base, quarantined, gaps, replayed } = recovered;
  try {
    const mirror = await DuckdbPersonReplica.open(database, people.db);
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
      put_aside: quarantined ?? null,
      events,
      persons,
      entries_applied: replayed,
      entries_waiting: waiting("realtime") + waiting("historical"),
      lost: gaps.map(({ lane, first, last }) => ({ lane, first_seq: first, last_seq: last })),
    };
  } finally {
    database.close();
  }
}
