/** Imports a file, all files of a folder or standard input, with a summary. */

import type { AppError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { ImportAbortedError } from "./abort-rules.ts";
import { finishImport } from "./after-files.ts";
import { addCounts, addName, emptyCounts, type ImportCounts, SpilledCounts } from "./counts.ts";
import { type DryRunFigures, DryRunReport } from "./dry-run.ts";
import { getRejectPath, importFiles } from "./files.ts";
import { GroupedTarget } from "./grouped-target.ts";
import { RequestWriter } from "./import-client.ts";
import { readFile } from "./import-file.ts";
import type { ImportJob } from "./import-job.ts";
import { SendingOrder } from "./import-job.ts";
import { LinkGate } from "./link-gate.ts";
import { LookupStore } from "./lookup-store.ts";
import type { MapContext } from "./map/formats.ts";
import { getId, toExactNumber } from "./map/lenient-json.ts";
import type { SourceUser } from "./map/mapped.ts";
import { type UmamiLookup, umamiDatum } from "./map/umami.ts";
import { ImportProgress, type ReadingOptions } from "./progress-file.ts";
import { getContents } from "./read/archive-contents.ts";
import { CorruptFileError, CorruptInputError, UnreadableFileError } from "./read/input.ts";
import { objectFrom } from "./read/json-text.ts";
import { getInputName, isPiped, PipedInput } from "./read/piped-input.ts";
import { RecordCopiers } from "./read/record-copier.ts";
import { readLookups } from "./read-lookups.ts";
import { Receipt, type ReceiptFigures } from "./receipt.ts";
import { RecentStrings, RecentUuids } from "./recent.ts";
import { SnapshotStore } from "./snapshots.ts";
import { joinedReason } from "./source-merges.ts";

/** Members of a session that do not apply to its events. */
const sessionOwn = new Set(["session_id", "website_id", "created_at"]);

function lookupContext(store: LookupStore): Omit<MapContext, "table"> {
  return {
    umami: (eventId, sessionId) => umamiLookup(store, eventId, sessionId),
    heapUser: (userId) => mergedRow(store.take("users", userId)),
  };
}

function umamiLookup(
  store: LookupStore,
  eventId: string | undefined,
  sessionId: string | undefined,
): UmamiLookup {
  const data = getData(store.take("event_data", eventId));
  for (const row of store.take("revenue", eventId))
    for (const name of ["revenue", "currency"] as const)
      if (!Object.hasOwn(data, name) && getId(row[name]) !== undefined)
        data[name] = name === "revenue" ? toExactNumber(getId(row[name])!) : row[name]!;
  const person = getData(store.take("session_data", sessionId));
  const session = mergedRow(store.take("session", sessionId));
  return {
    properties: data,
    ...(Object.keys(person).length > 0 ? { person } : {}),
    ...(session === undefined
      ? {}
      : { session: objectFrom(Object.entries(session).filter(([name]) => !sessionOwn.has(name))) }),
  };
}

function getData(rows: readonly JsonObject[]): JsonObject {
  return objectFrom(rows.map(umamiDatum).filter((datum) => datum !== undefined));
}

/** With several rows of one ID the last values count. */
function mergedRow(rows: readonly JsonObject[]): JsonObject | undefined {
  if (rows.length <= 1) return rows[0];
  return objectFrom(
    rows.flatMap((row) => Object.entries(row)).filter(([, value]) => value !== null && value !== ""),
  );
}

/** Files whose last batches are in flight while the next ones are read. */
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
  /** Whether devices are linked with their first users. */
  isLinking: boolean;
  dataDir: string;
  /** The import is aborted when more records than this are rejected. */
  maxRejects: number;
  /** Options of this run, which a resumed import must repeat. */
  readingOptions?: ReadingOptions;
  /** Folder of the progress of imports. */
  stateFolder: string;
}

export interface Imported {
  counts: ImportCounts;
  receipt: ReceiptFigures;
  sharedDevices: number;
  resumed: number;
  rejectFiles: string[];
  /** Only of a dry run. */
  dryRun?: DryRunFigures | undefined;
  /** Why the import is incomplete: files that could not be read to their end, or the reason of an abort. */
  failures: AppError[];
  /** False when the end of a file was not reached. */
  isComplete: boolean;
  /** Call it after the result is reported: until then the import can be resumed. */
  forget: () => void;
}

/** Result for a source that has no records, which is valid. */
export const nothingImported = (): Imported => ({
  receipt: { first_time: null, last_time: null, people: 0 },
  counts: emptyCounts(),
  sharedDevices: 0,
  resumed: 0,
  rejectFiles: [],
  failures: [],
  isComplete: true,
  forget: () => undefined,
});

/**
 * @throws {UnreadableFileError} @throws {ImportFileChangedError} @throws {ImportOptionsChangedError} and errors of the
 * target.
 */
export async function importAll(order: ImportOrder): Promise<Imported> {
  const { source, projectId, dataDir, stateFolder, isDryRun, isResumed, maxRejects } = order;
  const target = new GroupedTarget(order.target);
  const { paths } = importFiles(source);
  using progress = new ImportProgress(stateFolder, projectId, source, order.readingOptions);
  if (!isDryRun && isResumed) progress.checkOptions();
  if (!isDryRun && !isResumed) progress.forget();
  const recent = new RecentUuids(isDryRun ? undefined : target);
  const counts = emptyCounts();
  const rejectFiles: string[] = [];
  const failures: AppError[] = [];
  const rejectsLeft = { count: maxRejects };
  let resumed = 0;
  // The stores must have everything sent before: they are queried for new events and device owners.
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
  using receipt = new Receipt();
  using snapshots = new SnapshotStore(isDryRun ? ":memory:" : progress.snapshotsPath);
  if (isResumed && !isDryRun) snapshots.resume();
  using store = new LookupStore(isDryRun ? undefined : progress.lookupsPath);
  const isRead = isResumed && store.resume();
  const { nulls = [] } = order;
  const reading = { onBytes: order.onBytes, workFolder: stateFolder };
  using piped = isPiped(paths[0]!) ? new PipedInput(paths[0]!, stateFolder, order.onBytes) : undefined;
  const lookups = await readLookups(
    {
      piped,
      paths,
      format: order.format,
      fields: order.fields,
      nulls,
      workFolder: stateFolder,
      store,
      addUsers: (users) => gate.addUsers(users),
    },
    isRead,
  );
  piped?.startLastPass();
  addCounts(counts, lookups.counts);
  failures.push(...lookups.failures);
  const context = lookupContext(store);
  let number = 0;
  const addSourceUser = (user: SourceUser) => {
    if (said.add(`source user:${JSON.stringify(user)}`)) store.addSourceUser("amplitude_merges", user);
  };
  const hasHistory = await target.hasHistory();
  const { eventBytesMax } = await target.limits();
  const said = new RecentStrings();
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
    for await (const content of getContents(path, { ...reading, piped })) {
      const corrupt = lookups.corrupt.get(content.name);
      if (corrupt !== undefined) failures.push(new CorruptFileError(corrupt));
      if (corrupt !== undefined || lookups.names.has(content.name)) {
        await content.close();
        continue;
      }
      const rejectPath = getRejectPath(path, content.inside, dataDir);
      const identity = { gate, ordinals, said, hasHistory, eventBytesMax };
      const sending = { target, recent, receipt, copiers, requests, order: sendingOrder };
      const shared = {
        ...identity,
        ...sending,
        progress,
        rejectsLeft,
        snapshots,
        context,
        saveLookups: () => store.save(),
        addSourceUser: store.has("amplitude_merges") ? addSourceUser : undefined,
        report,
      };
      number += 1;
      const input = { content, path, number, rejectPath, workFolder: stateFolder };
      let read: Awaited<ReturnType<typeof readFile>>;
      try {
        read = await readFile({ ...order, ...shared, ...input });
      } catch (error) {
        // The other files of an archive may be readable.
        if (content.archive === undefined || !(error instanceof UnreadableFileError)) throw error;
        failures.push(error);
        continue;
      } finally {
        await content.close();
      }
      finishing.push(async () => {
        const file = await read.imported;
        addCounts(counts, file.counts);
        receipt.addSpan(file.span);
        resumed += file.resumed;
        if (file.hasRejects && !isDryRun) rejectFiles.push(rejectPath);
        if (file.corruption !== undefined) {
          const { accepted, duplicate } = file.counts;
          file.corruption.report(`${isDryRun ? "checked" : "imported"} (${accepted + duplicate} events)`);
          failures.push(file.corruption);
        }
        if (file.stopped !== undefined) failures.push(file.stopped);
      });
      if (finishing.length >= filesUnderWay) await finishOldest();
      if (read.isStopped) return false;
    }
    return true;
  };
  for (const path of paths) {
    try {
      const corrupt = lookups.corrupt.get(getInputName(path));
      if (corrupt !== undefined) throw new CorruptFileError(corrupt);
      if (!(await take(path))) break;
    } catch (error) {
      if (!(error instanceof CorruptInputError || error instanceof UnreadableFileError)) throw error;
      await finishAll();
      // With several files, an unreadable one does not fail the others.
      const isAlone = paths.length === 1 && counts.read === 0;
      if (error instanceof UnreadableFileError && isAlone) {
        // Nothing can be resumed.
        if (!isDryRun && !isResumed) progress.forget();
        throw error;
      }
      // The corruption of an archive is reported with the file in it.
      if (!failures.some(({ message }) => error.message === message)) failures.push(error);
    }
  }
  await finishAll();
  store.save();
  if (failures.length === 0) {
    const { onReject: _, ...rest } = order;
    const shared = { progress, recent, receipt, snapshots, store, target, requests, gate };
    addCounts(counts, await finishImport({ ...rest, ...shared }));
  }
  const rows = store.rowCounts();
  if (rows.joined > 0) addName(counts.left_out, joinedReason, rows.joined);
  if (rows.alone > 0) addName(counts.left_out, "lookup row without an event", rows.alone);
  // Lanes are loaded in order: when the end is loaded, everything is.
  if (!isDryRun) await target.waitUntilLoaded(await target.lastSeq());
  const isComplete = failures.length === 0;
  if (isComplete && counts.accepted + counts.duplicate === 0) failures.push(nothingImportedError(counts));
  const forget = () => {
    if (!isDryRun && isComplete) progress.forget();
  };
  const { sharedDevices } = gate;
  return {
    counts,
    receipt: receipt.figures,
    sharedDevices,
    resumed,
    rejectFiles,
    failures,
    isComplete,
    forget,
    dryRun: report?.figures,
  };
}

function nothingImportedError({ read }: ImportCounts): ImportAbortedError {
  return read === 0
    ? new ImportAbortedError("The input contains no records.", "Check the path.")
    : new ImportAbortedError(
        "No event was accepted: every record was rejected.",
        "See the reasons in the reject file; set --format or --map if the file was misread.",
      );
}
