/** Opens an event store that may be corrupt, with backups and the archive as recovery sources. */

import { join } from "node:path";
import { markCorrupt, readCorruptMark } from "../backup/recovery/quarantine.ts";
import { DataLossError, type Recovery, recoverEventStore } from "../backup/recovery/recover.ts";
import type { StoreRecovery } from "../engine/stores.ts";
import { systemDisk } from "../journal/disk.ts";
import { paths } from "../paths.ts";

export const storeRecovery: StoreRecovery = {
  markCorrupt,
  async open(start, people, hooks) {
    const { dataDir, server, memoryLimitBytes, threads } = start;
    const temporaryFolder = join(paths(dataDir).work, "duckdb");
    // Queries must not use the disk space that the journal needs.
    const { freeBytes } = await systemDisk.space(dataDir);
    const spillLimitBytes = Math.min(start.spillLimitBytes, Math.floor(freeBytes / 2));
    const recovery: Recovery = {
      dataDir,
      opener: server,
      options: { memoryLimitBytes, threads, temporaryFolder, spillLimitBytes },
      people,
      // Loaded only for a rebuild, to save memory otherwise.
      copies: async () => (await import("../backup/recovery/backup-copies.ts")).localCopies(dataDir),
      hooks,
    };
    try {
      return await recoverEventStore(recovery);
    } catch (error) {
      if (!(error instanceof DataLossError) || readCorruptMark(dataDir) === undefined) throw error;
      hooks.onIncomplete(error);
      // The corrupt store still opens: most of it can be read, and new events can be loaded.
      return await recoverEventStore({ ...recovery, ignoresMark: true });
    }
  },
};
