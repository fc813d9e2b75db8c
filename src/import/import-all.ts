/** Imports a file, all files of a folder or standard input, and sums up. */

import type { AppError } from "../lib/errors.ts";
import { addCounts, addName, emptyCounts, type ImportCounts } from "./counts.ts";
import { type DryRunFigures, DryRunReport } from "./dry-run.ts";
import { importFiles, rejectPathOf } from "./files.ts";
import { GroupedTarget } from "./grouped-target.ts";
import { type ImportJob, readFile } from "./import-file.ts";
import { LinkGate } from "./link-gate.ts";
import { lookupContext } from "./lookup/lookup-context.ts";
import { LookupStore } from "./lookup/lookup-store.ts";
import { readLookups } from "./lookup/read-lookups.ts";
import { ImportProgress, type ReadingOptions } from "./progress-file.ts";
import { contentsOf } from "./read/contents.ts";
import { FileUnreadable, InputDamaged } from "./read/input.ts";
import { RecordCopiers } from "./read/record-copier.ts";
import { RecentTexts } from "./recent-texts.ts";
import { RecentUuids } from "./recent-uuids.ts";
import { sendSnapshots } from "./send-snapshots.ts";
import { SendingOrder } from "./sending-order.ts";
import { SnapshotStore } from "./snapshots.ts";
import { SpilledCounts } from "./spilled-counts.ts";
import { ImportStopped } from "./stopped.ts";
import { RequestWriter } from "./target.ts";

/** Files whose last batches are on their way while the next ones are read. */
const filesUnderWay = 400;

export interface ImportOrder
  extends Pick<
    ImportJob,
    | "format"
    | "fields"
    | "nulls"
    | "zone"
    | "isDryRun"
    | "isResumed"
    | "target"
    | "onBytes"
    | "onRecords"
    | "onReject"
    | "onFormat"
  > {
  /** Absolute, or `-`. */
  source: string;
  projectId: number;
  /** Whether devices are linked with the first users on them. */
  isLinking: boolean;
  dataDir: string;
  /** When more records than this are rejected the import stops. */
  maxRejects: number;
  /** Options as they were given, which a resumed import must repeat. */
  readingOptions?: ReadingOptions;
  /** Folder of the progress of imports. */
  stateFolder: string;
}

export interface Imported {
  counts: ImportCounts;
  sharedDevices: number;
  resumed: number;
  rejectFiles: string[];
  /** Of a dry run. */
  dryRun?: DryRunFigures | undefined;
  /** Why not everything was taken: files whose end could not be read, or what stopped the import. */
  failures: AppError[];
  /** False when the end of a file was not reached. */
  isComplete: boolean;
  /** Call it when the result has been told: until then the import can be resumed. */
  forget: () => void;
}

/** Of a source that has no records at all, and need not have any. */
export const nothingImported = (): Imported => ({
  ...{ counts: emptyCounts(), sharedDevices: 0, resumed: 0, rejectFiles: [], failures: [], isComplete: true },
  forget: () => undefined,
});

/** @throws {FileUnreadable} @throws {ImportChanged} @throws {ImportOptionsChanged} and what the target throws. */
export async function importAll(order: ImportOrder): Promise<Imported> {
  const { source, projectId, dataDir, stateFolder, isDryRun, isResumed, maxRejects } = order;
  const target = new GroupedTarget(order.target);
  const { paths } = importFiles(source);
  const progress = new ImportProgress(stateFolder, projectId, source, order.readingOptions);
  if (!isDryRun && isResumed) progress.checkOptions();
  if (!isDryRun && !isResumed) progress.forget();
  const recent = new RecentUuids(isDryRun ? undefined : target);
  const counts = emptyCounts();
  const rejectFiles: string[] = [];
  const failures: AppError[] = [];
  const rejectsLeft = { count: maxRejects };
  let resumed = 0;
  // Of what was sent before, the stores must know everything: they are asked what is new, and whose a device is.
  await target.settled();
  const importId = isDryRun ? crypto.randomUUID() : progress.importId();
  using gate = new LinkGate({
    target,
    stateFolder,
    projectId,
    importId,
    isDryRun,
    isLinking: order.isLinking,
  });
  using ordinals = new SpilledCounts();
  using snapshots = new SnapshotStore(isDryRun ? ":memory:" : progress.snapshotsPath);
  if (isResumed && !isDryRun) snapshots.resume();
  using store = new LookupStore(isDryRun ? undefined : progress.lookupsPath);
  const isRead = isResumed && store.resume();
  const { nulls = [] } = order;
  const lookups = await readLookups(
    { paths, format: order.format, nulls, workFolder: stateFolder, store },
    isRead,
  );
  addCounts(counts, lookups.counts);
  failures.push(...lookups.failures);
  const context = lookupContext(store);
  let number = 0;
  const hasHistory = await target.hasHistory();
  const said = new RecentTexts();
  const copiers = new RecordCopiers();
  const requests = new RequestWriter();
  const sendingOrder = new SendingOrder();
  const report = isDryRun ? new DryRunReport() : undefined;
  const finishing: (() => Promise<void>)[] = [];
  const finishOldest = async () => await finishing.shift()?.();
  const finishAll = async () => {
    while (finishing.length > 0) await finishOldest();
  };
  const take = async (path: string): Promise<boolean> => {
    for await (const content of contentsOf(path, { onBytes: order.onBytes, workFolder: stateFolder })) {
      if (lookups.names.has(content.name)) {
        await content.close();
        continue;
      }
      const rejectPath = rejectPathOf(path, content.name, dataDir);
      const identity = { gate, ordinals, said, hasHistory };
      const sending = { target, recent, copiers, requests, order: sendingOrder };
      const shared = {
        ...identity,
        ...sending,
        progress,
        rejectsLeft,
        snapshots,
        context,
        saveLookups: () => store.save(),
        report,
      };
      number += 1;
      const place = { content, path, number, rejectPath, workFolder: stateFolder };
      const read = await readFile({ ...order, ...shared, ...place });
      await content.close();
      finishing.push(async () => {
        const file = await read.imported;
        addCounts(counts, file.counts);
        resumed += file.resumed;
        if (file.counts.rejected > 0 && !isDryRun) rejectFiles.push(rejectPath);
        if (file.damage !== undefined) failures.push(file.damage);
        if (file.stopped !== undefined) failures.push(file.stopped);
      });
      if (finishing.length >= filesUnderWay) await finishOldest();
      if (read.isStopped) return false;
    }
    return true;
  };
  for (const path of paths) {
    try {
      if (!(await take(path))) break;
    } catch (error) {
      if (!(error instanceof InputDamaged || error instanceof FileUnreadable)) throw error;
      await finishAll();
      // Of several files one that cannot be read costs itself alone.
      const isAlone = paths.length === 1 && counts.read === 0;
      if (error instanceof FileUnreadable && isAlone) throw error;
      failures.push(error);
    }
  }
  await finishAll();
  store.save();
  const rows = store.rowCounts();
  if (rows.joined > 0) addName(counts.left_out, "joined lookup row", rows.joined);
  if (rows.alone > 0) addName(counts.left_out, "lookup row without an event", rows.alone);
  // Persons and groups as the whole import describes them, after its events (contract, import O1).
  if (failures.length === 0) {
    const { onReject: _, ...rest } = order;
    addCounts(counts, await sendSnapshots({ ...rest, progress, recent, snapshots, target, requests, gate }));
  }
  // The lane keeps its order: when its end can be read, all can.
  if (!isDryRun) await target.waitUntilLoaded(await target.lastSeq());
  const isComplete = failures.length === 0;
  if (isComplete && counts.accepted + counts.duplicate === 0) failures.push(nothingTaken(counts));
  const forget = () => {
    if (!isDryRun && isComplete) progress.forget();
  };
  const { sharedDevices } = gate;
  return {
    counts,
    sharedDevices,
    resumed,
    rejectFiles,
    failures,
    isComplete,
    forget,
    dryRun: report?.figures,
  };
}

function nothingTaken({ read }: ImportCounts): ImportStopped {
  return read === 0
    ? new ImportStopped("There is no record to load.", "Check the path.")
    : new ImportStopped(
        "No event was accepted: every record was rejected.",
        "See the reasons in the reject file; --format and --map say what the file is.",
      );
}
