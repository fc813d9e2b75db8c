/** Backups as sources for rebuilding an event store. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Lane } from "../../journal/segment.ts";
import { paths } from "../../paths.ts";
import { getDestination } from "../destination.ts";
import { BackupKeys } from "../keys.ts";
import { isOfThisHistory, readLastBackup } from "../last-backup.ts";
import { listBackups } from "../list.ts";
import type { LanePosition } from "../manifest.ts";
import { manifestFrom, unpackFrom } from "../read-file.ts";
import { assertKnownSchemas } from "../schema-versions.ts";
import { type BackupSource, fileSource } from "../source.ts";
import type { Cursors } from "./range.ts";
import type { OlderCopy } from "./recovery-source.ts";

/** The backups in the data directory, and the last one if it is elsewhere on this machine; newest first. */
export async function localCopies(dataDir: string, keys = BackupKeys.none): Promise<OlderCopy[]> {
  const { backups } = paths(dataDir);
  const listed = (
    await listBackups(getDestination(backups, { endpoint: "", region: "", credentialsFile: "" }))
  )
    .filter(({ verified }) => verified)
    .map(({ file, created_at }) => ({ file: resolve(file), created_at }));
  const last = readLastBackup(dataDir);
  if (last?.file && last.created_at && existsSync(last.file)) {
    listed.push({ file: resolve(last.file), created_at: last.created_at });
  }
  const files = listed
    .filter(({ created_at }) => isOfThisHistory(dataDir, created_at))
    .sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
    .map(({ file }) => file);
  return [...new Set(files)].map((file) => copyFrom(fileSource(file), keys));
}

/** The last entry per lane in a backup. */
export function getExtent(positions: readonly LanePosition[]): Cursors {
  const lastSeq = (lane: Lane) => positions.find((position) => position.lane === lane)?.last_seq ?? 0;
  return { realtime: lastSeq("realtime"), historical: lastSeq("historical") };
}

export function copyFrom(source: BackupSource, keys: BackupKeys): OlderCopy {
  return {
    name: source.name,
    extract: async (folder) => {
      await unpackFrom(source, keys, folder, assertKnownSchemas);
    },
    lastSeqs: async () => getExtent((await manifestFrom(source, keys)).positions),
  };
}
