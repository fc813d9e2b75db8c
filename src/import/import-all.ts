/** Imports a file, all files of a folder or standard input, and sums up. */

import { importFiles, rejectPathOf } from "./files.ts";
import { type ImportJob, importFile } from "./import-file.ts";
import type { InputDamaged } from "./input.ts";
import { ImportProgress } from "./progress-file.ts";
import { RecentUuids } from "./recent-uuids.ts";
import { addCounts, type ImportCounts, noCounts } from "./summary.ts";

export interface ImportOrder
  extends Pick<
    ImportJob,
    "format" | "names" | "isDryRun" | "isResumed" | "target" | "onBytes" | "onRecords" | "onReject"
  > {
  /** Absolute, or `-`. */
  source: string;
  projectId: number;
  dataDir: string;
  /** Folder of the progress of imports. */
  stateFolder: string;
}

export interface Imported {
  counts: ImportCounts;
  resumed: number;
  rejectFiles: string[];
  /** One for each file whose end could not be read. */
  damages: InputDamaged[];
  /** Call it when the result has been told: until then the import can be resumed. */
  forget: () => void;
}

/** @throws {FileUnreadable} @throws {ImportChanged} and what the target throws. */
export async function importAll(order: ImportOrder): Promise<Imported> {
  const { source, projectId, dataDir, stateFolder, isDryRun, isResumed, target } = order;
  const { paths } = importFiles(source);
  const progress = new ImportProgress(stateFolder, projectId, source);
  if (!isDryRun && !isResumed) progress.forget();
  const recent = new RecentUuids(isDryRun ? undefined : target);
  const counts = noCounts();
  const rejectFiles: string[] = [];
  const damages: InputDamaged[] = [];
  let resumed = 0;
  // Of what was sent before, the store must know everything: it is asked what is new.
  await target.waitUntilLoaded(await target.lastSeq());
  for (const path of paths) {
    const rejectPath = rejectPathOf(path, dataDir);
    const file = await importFile({ ...order, path, progress, recent, rejectPath, workFolder: stateFolder });
    addCounts(counts, file.counts);
    resumed += file.resumed;
    if (file.counts.rejected > 0 && !isDryRun) rejectFiles.push(rejectPath);
    if (file.damage !== undefined) damages.push(file.damage);
  }
  // The lane keeps its order: when its end can be read, all can.
  if (!isDryRun) await target.waitUntilLoaded(await target.lastSeq());
  const forget = () => {
    if (!isDryRun && damages.length === 0) progress.forget();
  };
  return { counts, resumed, rejectFiles, damages, forget };
}
