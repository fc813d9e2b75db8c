/** How the engine opens an event store that may be damaged: with backups and the archive. */

import { join } from "node:path";
import { markDamaged, readDamagedMark } from "../backup/recovery/put-aside.ts";
import { EventsWouldBeLost, type Recovery, recoverEventStore } from "../backup/recovery/recover.ts";
import type { StoreRecovery } from "../engine/stores.ts";
import { paths } from "../paths.ts";

export const storeRecovery: StoreRecovery = {
  markDamaged,
  async open({ dataDir, front, memoryLimitBytes, threads }, people, hooks) {
    const temporaryFolder = join(paths(dataDir).work, "duckdb");
    const recovery: Recovery = {
      ...{ dataDir, opener: front },
      settings: { memoryLimitBytes, threads, temporaryFolder },
      people,
      // Loaded where the store has to be made again: elsewhere what reads backups would be in memory for nothing.
      copies: async () => (await import("../backup/recovery/backup-copies.ts")).localCopies(dataDir),
      hooks,
    };
    try {
      return await recoverEventStore(recovery);
    } catch (error) {
      if (!(error instanceof EventsWouldBeLost) || readDamagedMark(dataDir) === undefined) throw error;
      hooks.onIncomplete(error);
      // It can still be opened: most of it can be read, and new events can be loaded.
      return await recoverEventStore({ ...recovery, ignoresMark: true });
    }
  },
};
