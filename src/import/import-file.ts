/** Loads a file of events into a project: in order, in batches, through the historical lane. */

import { statSync } from "node:fs";
import type { JsonObject } from "../lib/json.ts";
import { isoFromMicros, nowMicros } from "../lib/time.ts";
import { AbortRules, type ImportAbortedError, sampleSize, tooManyRejects } from "./abort-rules.ts";
import { addCounts, addName, type ImportCounts } from "./counts.ts";
import type { DryRunReport } from "./dry-run.ts";
import { getTable } from "./files.ts";
import type { ImportClient, RequestWriter } from "./import-client.ts";
import type { LinkGate } from "./link-gate.ts";
import { type FieldRule, withFields } from "./map/fields.ts";
import {
  detectFormat,
  getMembers,
  getTitle,
  type ImportFormat,
  isFileType,
  type MapContext,
  mapRecord,
  type RecordFormat,
} from "./map/formats.ts";
import { isPlaceholder } from "./map/identity.ts";
import { LocalTimes } from "./map/local-times.ts";
import type { Snapshot, SourceUser } from "./map/mapped.ts";
import { snowplowRow } from "./map/snowplow.ts";
import { type TimeProblem, toTime, usualTimes } from "./map/time.ts";
import { type FinishOptions, passOver, toEvents } from "./map/to-events.ts";
import type { Zone } from "./map/zone.ts";
import {
  digest,
  type FileProgress,
  ImportFileChangedError,
  type ImportProgress,
  noProgress,
} from "./progress-file.ts";
import type { Content } from "./read/archive-contents.ts";
import { CorruptInputError } from "./read/input.ts";
import { recordSource } from "./read/read-records.ts";
import { type CopiedEvent, parsedLine, type ReadRecord } from "./read/record.ts";
import type { RecordCopier, RecordCopiers } from "./read/record-copier.ts";
import { joinSpans, type Receipt, type Span } from "./receipt.ts";
import type { RecentStrings } from "./recent-texts.ts";
import type { RecentUuids } from "./recent-uuids.ts";
import { assertEvents } from "./recognize.ts";
import { RecordBatch } from "./record-batch.ts";
import { type Reject, RejectFile } from "./reject-file.ts";
import type { SendingOrder } from "./sending-order.ts";
import { type Item, isPlain, type Known, type SettledBatch, settle } from "./settled-batch.ts";
import { checkEvent, type SnapshotStore } from "./snapshots.ts";
import type { SpilledCounts } from "./spilled-counts.ts";

const recordsPerBatch = 5_000;
const batchLengthMax = 4 * 1024 * 1024;
/** Batches in flight, from the lookup of new events until they are on disk. */
const batchesUnderWay = 4;
/** Bytes of batches in flight, of all files together. */
const bytesUnderWayMax = batchesUnderWay * batchLengthMax;

export interface ImportJob {
  content: Content;
  /** On disk, or `-`. */
  path: string;
  /** Number of the content in the import. */
  number: number;
  /** Data of lookup files about the records. */
  context: Omit<MapContext, "table">;
  /** Rows that describe persons and groups; shared by the files of one import. */
  snapshots: SnapshotStore;
  /** Persists which lookup rows were joined. */
  saveLookups: () => void;
  /** Records a source user that merges may name; undefined without a file of merges. */
  addSourceUser?: ((user: SourceUser) => void) | undefined;
  format: ImportFormat;
  fields: readonly FieldRule[];
  /** For times without a zone; absent: UTC. */
  zone?: Zone | undefined;
  /** Table cells that count as null, in addition to the built-in ones. */
  nulls?: readonly string[];
  gate: LinkGate;
  /** Of the JSON of one event, in the server's ingestion. */
  eventBytesMax: number;
  /** Whether an older version may have loaded the same records. */
  hasHistory: boolean;
  /** Counts of equal records without an ID; shared by the files of one import. */
  ordinals: SpilledCounts;
  isDryRun: boolean;
  isResumed: boolean;
  progress: ImportProgress;
  /** Path of the rejected records. */
  rejectPath: string;
  /** For working files. */
  workFolder: string;
  target: ImportClient;
  /** Shared by the files of one import. */
  recent: RecentUuids;
  receipt: Receipt;
  /** Pairs of IDs and states of groups already sent; shared by the files of one import. */
  said: RecentStrings;
  copiers: RecordCopiers;
  requests: RequestWriter;
  /** Orders the batches of the files of one import. */
  order: SendingOrder;
  /** How many more records may be rejected; shared by the files of one import. */
  rejectsLeft: { count: number };
  onBytes: (bytes: number) => void;
  /** Called with the records of this run, and with those of earlier runs that are skipped. */
  onRecords: (records: number, isEarlier: boolean) => void;
  onReject: (reject: Reject) => void;
  /** Of a dry run; shared by the files of one import. */
  report?: DryRunReport | undefined;
  /** Called before the first record with a description of the file: `Amplitude's export, JSON lines, gzip`. */
  onFormat: (description: string) => void;
}

export interface ImportedFile {
  /** Over all runs. */
  counts: ImportCounts;
  hasRejects: boolean;
  /** Of its events, over all runs. */
  span: Span | undefined;
  /** Records done by earlier runs. */
  resumed: number;
  /** Why the end of the file could not be read. */
  damage: CorruptInputError | undefined;
  /** Why it was aborted before its end. */
  stopped: ImportAbortedError | undefined;
}

/** A file that was read: the rest of its import does not need the file. */
export interface ReadFile {
  isStopped: boolean;
  /** Resolves when its last batch has arrived; rejects with errors of the target. */
  imported: Promise<ImportedFile>;
}

/**
 * Reads a file; its last batches may still be in flight when it returns. The next file may be read meanwhile: batches
 * of different files arrive in reading order.
 *
 * @throws {UnreadableFileError} @throws {ImportFileChangedError} and errors of the target.
 */
export async function readFile(job: ImportJob): Promise<ReadFile> {
  return await new Importer(job).run();
}

/** Progress data of a sent batch. */
interface SentBatch {
  /** Of its last record. */
  line: number;
  fingerprint: string;
  counts: Partial<ImportCounts>;
  rejects: Reject[];
  incomplete: Reject[];
  span: Span | undefined;
}

const noRequests = new Uint8Array();
/** Records used for format detection. */
const samplesMax = 20;

class Importer {
  private done: FileProgress;
  private readonly rejectFile: RejectFile;
  private batch = new RecordBatch();
  /** Chain of batches that are sent one after the other; it fails permanently with the first failure. */
  private sending: Promise<void> = Promise.resolve();
  private readonly underWay = new Set<Promise<void>>();
  private stopped: ImportAbortedError | undefined;
  private format: RecordFormat = "events";
  /** Format detected from the first records. */
  private seems: ReturnType<typeof detectFormat>;
  private copier: RecordCopier | undefined;
  private readonly finishing: FinishOptions;
  /** Some UUID contains the number among equal records. */
  private hasOrdinals = false;
  private readonly doubts = new AbortRules();
  private localTimes: LocalTimes | undefined;
  private readonly context: MapContext;

  constructor(private readonly job: ImportJob) {
    this.done = job.isResumed && !job.isDryRun ? job.progress.read(job.content.name) : noProgress();
    this.rejectFile = new RejectFile(job.rejectPath);
    this.hasOrdinals = this.done.hasOrdinals === true;
    this.context = { ...job.context, table: getTable(job.content.name) };
    this.finishing = {
      nowMicros: nowMicros(),
      isNews: (news) => job.said.add(news),
      hasHistory: job.hasHistory,
      ordinalOf: (content) => {
        this.hasOrdinals = true;
        return job.ordinals.add(content);
      },
    };
  }

  async run(): Promise<ReadFile> {
    const { job } = this;
    const { read: resumed, rejected } = this.done.counts;
    job.rejectsLeft.count -= rejected;
    if (resumed > rejected) this.doubts.end();
    if (this.done.isDone) {
      if (this.hasOrdinals) await this.readAll();
      else job.onRecords(resumed, true);
      const { counts, span, rejectBytes } = this.done;
      const hasRejects = rejectBytes > 0;
      const imported = { counts, span, hasRejects, resumed, damage: undefined, stopped: undefined };
      return { isStopped: false, imported: Promise.resolve(imported) };
    }
    if (!job.isDryRun) this.rejectFile.begin(this.done.rejectBytes);
    const damage = await this.readAll();
    await this.flush();
    const imported = this.finish(resumed, damage);
    // It is awaited after some of the next files have been read.
    imported.catch(() => undefined);
    return { isStopped: this.stopped !== undefined, imported };
  }

  private async finish(resumed: number, damage: CorruptInputError | undefined): Promise<ImportedFile> {
    const { job } = this;
    await this.sending;
    const isDone = damage === undefined && this.stopped === undefined;
    const { warning } = this.localTimes ?? {};
    if (isDone && warning !== undefined) addName(this.done.counts.warnings, ...warning);
    // A file without records needs no progress.
    if (!job.isDryRun && this.done.line > 0) this.write({ ...this.done, isDone });
    if (damage !== undefined) this.noteDamage(damage);
    const { counts, span } = this.done;
    const hasRejects = this.rejectFile.length > 0;
    return { counts, span, hasRejects, resumed, damage, stopped: this.stopped };
  }

  private write(progress: FileProgress): void {
    const isSmall = progress.line < sampleSize;
    // `--resume` must know which lookup rows the loaded records were joined with.
    this.job.saveLookups();
    this.job.progress.write(this.job.content.name, progress, { isSmall });
  }

  /** @returns why it could not be read to its end. */
  private async readAll(): Promise<CorruptInputError | undefined> {
    const { job } = this;
    const skipTo = this.done.line;
    const repeatTo = this.done.sending?.line ?? 0;
    let found = skipTo === 0;
    try {
      for await (const records of this.recognised()) {
        const earlier = skipTo === 0 ? 0 : records.filter(({ line }) => line <= skipTo).length;
        if (earlier > 0) job.onRecords(earlier, true);
        if (earlier < records.length) job.onRecords(records.length - earlier, false);
        for (const read of records) {
          this.localTimes?.add(read.record);
          if (read.line <= skipTo) {
            if (read.line === skipTo) found = fingerprint(read) === this.done.fingerprint;
            if (this.hasOrdinals) this.passOver(read);
            continue;
          }
          // Only its equal records were needed.
          if (this.done.isDone) break;
          if (!found) throw changed(job.content.name);
          this.take(read);
          const isFull = this.batch.size >= this.batchMax();
          // A batch that was being sent is rebuilt exactly.
          if (read.line < repeatTo) continue;
          if (read.line === repeatTo || isFull || this.batch.bytes >= batchLengthMax) await this.flush();
          if (this.stopped !== undefined) return undefined;
        }
      }
    } catch (error) {
      if (error instanceof CorruptInputError) return error;
      throw error;
    }
    if (!found) throw changed(job.content.name);
    return undefined;
  }

  /** The first batch is small, so that a wrong format is noticed early. */
  private batchMax(): number {
    return this.doubts.areOver ? recordsPerBatch : sampleSize;
  }

  private passOver({ record }: ReadRecord): void {
    if (record === undefined) return;
    passOver(this.map(record).events, this.finishing);
  }

  private map(record: JsonObject) {
    return mapRecord(this.format, withFields(record, this.job.fields), this.context);
  }

  private take(read: ReadRecord): void {
    const { batch } = this;
    const { line, record, problem, text: raw, copied } = read;
    batch.take(read);
    if (copied !== undefined) {
      const { about } = copied;
      if (isPlaceholder(about.distinctId)) batch.addPlaceholder(line);
      batch.add({ uuid: copied.uuid, text: copied, isMade: false, about, line });
      batch.omit(line, copied);
      return;
    }
    if (record === undefined) {
      batch.rejects.push({ line, reason: problem ?? "not_an_object", record: raw ?? null });
      return;
    }
    const mapped = this.map(record);
    batch.omit(line, mapped);
    if (mapped.snapshot !== undefined) {
      this.acceptSnapshot(line, record, mapped.snapshot);
      return;
    }
    if (mapped.events.some(({ hasPlaceholder }) => hasPlaceholder)) batch.addPlaceholder(line);
    if (this.job.addSourceUser !== undefined)
      for (const { sourceUser } of mapped.events) if (sourceUser) batch.addSourceUser(line, sourceUser);
    const events = toEvents(mapped.events, line, record, this.finishing);
    if (events.length === 0 && mapped.leftOut === undefined)
      batch.rejects.push({ line, reason: "no_event_in_record", record });
    for (const event of events) batch.add({ ...event, line, record });
  }

  /** It is checked like an event, and stored until all files are read. */
  private acceptSnapshot(line: number, record: JsonObject, snapshot: Snapshot): void {
    const isTimed = snapshot.time !== undefined && snapshot.time !== null && snapshot.time !== "";
    const micros = isTimed ? toTime(snapshot.time, undefined, this.finishing.zone) : this.fileMicros();
    const timestamp = typeof micros === "number" ? isoFromMicros(micros) : "";
    const timeProblem: TimeProblem | undefined = typeof micros === "number" ? undefined : micros;
    const text = JSON.stringify(checkEvent(snapshot, timestamp));
    const event = { uuid: "", text, timeProblem, isMade: false };
    if (snapshot.kind === "person" && snapshot.distinctIds.some(isPlaceholder))
      this.batch.addPlaceholder(line);
    this.batch.add({ ...event, line, record, snapshot: { snapshot, timestamp } });
  }

  /** The time of snapshots without one. */
  private fileMicros(): number {
    const found = this.job.path === "-" ? undefined : statSync(this.job.path, { throwIfNoEntry: false });
    return found === undefined ? this.finishing.nowMicros : Math.floor(found.mtimeMs * 1_000);
  }

  /** The records, after format detection. @throws {UnreadableFileError} they can never be events. */
  private async *recognised(): AsyncGenerator<readonly ReadRecord[]> {
    const { content, format, fields, onFormat } = this.job;
    const forced = format === "csv" || format === "parquet" ? format : undefined;
    const { shape, records, copyWith } = recordSource(content, forced, { ...this.job, snowplowRow });
    const samples: ReadRecord[] = [];
    let found: ReturnType<typeof detectFormat>;
    try {
      while (samples.length < samplesMax && found === undefined) {
        const { value, done } = await records.next();
        if (done) break;
        samples.push(...value);
        const { record } = samples.at(-1)!;
        if (record !== undefined) found = detectFormat(withFields(record, fields));
      }
      this.seems = found;
      if (isFileType(format) || format === "auto") {
        if (format === "auto") assertEvents(this.job, found, samples);
        this.format = format === "auto" && found !== undefined && found !== "totals" ? found : "events";
      } else this.format = format;
      const { zone } = this.job;
      if (zone === undefined && this.format === "mixpanel")
        this.localTimes = new LocalTimes(this.finishing.nowMicros);
      if (zone !== undefined)
        this.finishing.zone = { toInstant: zone, hasLocalNumbers: this.format === "mixpanel" };
      onFormat([getTitle(this.format), shape, ...content.packing, content.archive ?? []].flat().join(", "));
      const members = fields.length === 0 && zone === undefined ? getMembers(this.format) : undefined;
      this.copier =
        members && this.job.copiers.of(this.format, members, usualTimes(this.finishing.nowMicros));
      if (this.copier !== undefined) copyWith(this.copier);
      yield samples;
      yield* records;
    } finally {
      await records.return(undefined);
    }
  }

  /**
   * Sends the collected batch while the next ones are read: the lookup of its new events starts immediately, and it is
   * sent after all previous batches have arrived.
   */
  private async flush(): Promise<void> {
    const { job, batch } = this;
    this.batch = new RecordBatch();
    // What a server has stored can be loaded into one with a lower limit.
    batch.check(this.format === "flagkeep" ? Number.POSITIVE_INFINITY : job.eventBytesMax);
    const tooMany = batch.rejects[job.rejectsLeft.count];
    if (tooMany !== undefined) {
      batch.endBefore(tooMany.line);
      this.stopped = tooManyRejects(job.content.name, job.rejectPath, tooMany);
    }
    const { last, rejects } = batch;
    if (last === undefined) return;
    if (batch.isUseful) this.doubts.end();
    else this.stopped ??= this.doubts.add(rejects, job.content.name, this.guess());
    job.rejectsLeft.count -= rejects.length;

    job.snapshots.add(batch.snapshots(job.number));
    for (const user of batch.sourceUsers) job.addSourceUser?.(user);
    const good = batch.events;
    const settling = this.settle(last.line, good);
    if (job.report !== undefined) this.report(job.report, batch, (await settling).items);
    const span = job.receipt.addEvents(good);
    const counts = batch.counts();
    const { incomplete } = batch;
    const sent = { line: last.line, fingerprint: fingerprint(last), counts, rejects, incomplete, span };
    const copied = good.findLast(({ text }) => typeof text !== "string")?.text as CopiedEvent | undefined;
    const write = (items: readonly Item[]) =>
      job.isDryRun ? noRequests : job.requests.write(items.map(({ text }) => text));
    let requests: Uint8Array | undefined;
    if (isPlain(good)) requests = write(good);
    // Copied events are released in order.
    else if (copied !== undefined) requests = write((await settling).items);
    if (copied !== undefined) this.copier?.release(copied);
    // Its counts are recorded before it is sent, and those of the previous batch must be recorded by then.
    const ready = Promise.all([settling, this.sending]).then(([settled]) => settled);
    this.sending = job.order.add(batch.bytes, ready, async ({ known, items }) => {
      const written = requests ?? write(items);
      await this.send(sent, known, written);
      job.requests.release(written);
    });
    this.noteUnderWay(this.sending);
    if (job.recent.isFull) {
      await job.order.idle();
      await job.recent.tidy();
    }
    while (this.underWay.size >= batchesUnderWay) await Promise.race(this.underWay);
    await job.order.room(bytesUnderWayMax);
  }

  /** Adds a batch to the report of a dry run. @param sent without the links that the gate rejects. */
  private report(report: DryRunReport, batch: RecordBatch, sent: readonly Item[]): void {
    for (const { reason } of batch.rejects) report.reject(reason);
    const all = new Set(sent);
    for (const item of batch.all) {
      if (item.snapshot === undefined && !all.has(item)) continue;
      const { line, text } = item;
      const written = typeof text === "string" ? text : text.texts.toString("utf8", text.start, text.end);
      report.add(this.format, `${this.job.number}:${line}`, written);
    }
  }

  private noteUnderWay(sending: Promise<void>): void {
    this.underWay.add(sending);
    // A failure is reported where the result is awaited.
    sending.then(() => this.underWay.delete(sending)).catch(() => undefined);
  }

  /** Sends a batch after all previous ones, and adds it to the progress. */
  private async send(
    { line, fingerprint, counts: more, rejects, incomplete, span }: SentBatch,
    known: Known,
    requests: Uint8Array,
  ): Promise<void> {
    const { job } = this;
    if (!job.isDryRun) {
      this.write({ ...this.done, sending: { ...known, line } });
      // Nothing to send if all events are stored already.
      if (known.accepted > 0 || known.made > 0) await job.target.send(requests);
    }
    for (const reject of rejects) job.onReject(reject);
    const listed = [...rejects, ...incomplete].sort((one, other) => one.line - other.line);
    if (!job.isDryRun) this.rejectFile.append(listed);
    const { counts } = this.done;
    addCounts(counts, { ...more, ...known });
    this.done = {
      ...{ isDone: false, line, fingerprint, counts },
      rejectBytes: this.rejectFile.length,
      hasOrdinals: this.hasOrdinals,
      span: joinSpans(this.done.span, span),
    };
  }

  /** The detected format, if it differs from the one in use. */
  private guess(): RecordFormat | undefined {
    const { seems } = this;
    return seems === "totals" || seems === this.format ? undefined : seems;
  }

  /** For a batch that an earlier run was sending, the recorded counts apply. */
  private async settle(line: number, good: readonly Item[]): Promise<SettledBatch> {
    const { sending } = this.done;
    const settled = await settle(good, this.job);
    if (sending?.line !== line) return settled;
    const { accepted, duplicate, made } = sending;
    return { ...settled, known: { accepted, duplicate, made } };
  }

  /** Not part of the progress, so that a repaired file can be resumed. */
  private noteDamage(damage: CorruptInputError): void {
    const reject = { line: this.done.line + 1, reason: damage.code, record: damage.message };
    this.job.report?.reject(reject.reason);
    this.job.onReject(reject);
    if (!this.job.isDryRun) this.rejectFile.append([reject]);
    const { counts } = this.done;
    this.done.counts = { ...counts, read: counts.read + 1, rejected: counts.rejected + 1 };
  }
}

function fingerprint(read: ReadRecord): string {
  const { record, problem, text } = read.copied === undefined ? read : parsedLine(read.copied.record, 0);
  return digest(record === undefined ? `${problem}:${text}` : JSON.stringify(record));
}

function changed(path: string): ImportFileChangedError {
  return new ImportFileChangedError(`${path} is not what the interrupted import has read.`);
}
