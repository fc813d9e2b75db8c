/** Loads a file of events into a project: in order, in batches, through the historical lane. */

import { statSync } from "node:fs";
import type { JsonObject } from "../lib/json.ts";
import { isoFromMicros, nowMicros } from "../lib/time.ts";
import { addCounts, addName, type ImportCounts } from "./counts.ts";
import type { DryRunReport } from "./dry-run.ts";
import { tableOf } from "./files.ts";
import type { LinkGate } from "./link-gate.ts";
import { type FieldRule, withFields } from "./map/fields.ts";
import { type FinishOptions, finish, passOver } from "./map/finish.ts";
import {
  detectFormat,
  type ImportFormat,
  isShape,
  type MapContext,
  mapRecord,
  membersOf,
  type RecordFormat,
  titleOf,
} from "./map/formats.ts";
import { LocalTimes } from "./map/local-times.ts";
import type { Snapshot } from "./map/mapped.ts";
import { snowplowRow } from "./map/snowplow.ts";
import { type TimeProblem, timeOf, usualTimes } from "./map/time.ts";
import type { Zone } from "./map/zone.ts";
import {
  digest,
  type FileProgress,
  ImportChanged,
  type ImportProgress,
  noProgress,
} from "./progress-file.ts";
import type { Content } from "./read/contents.ts";
import { FileUnreadable, InputDamaged } from "./read/input.ts";
import { recordSource } from "./read/read-records.ts";
import { type CopiedEvent, parsedLine, type ReadRecord } from "./read/record.ts";
import type { RecordCopier, RecordCopiers } from "./read/record-copier.ts";
import type { RecentTexts } from "./recent-texts.ts";
import type { RecentUuids } from "./recent-uuids.ts";
import { RecordBatch } from "./record-batch.ts";
import { type Reject, RejectFile } from "./reject-file.ts";
import type { SendingOrder } from "./sending-order.ts";
import { type Item, isPlain, type Known, type SettledBatch, settle } from "./settled-batch.ts";
import { checkEvent, type SnapshotStore } from "./snapshots.ts";
import type { SpilledCounts } from "./spilled-counts.ts";
import { Doubts, type ImportStopped, recordsOfDoubt, tooManyRejects } from "./stopped.ts";
import type { ImportTarget, RequestWriter } from "./target.ts";

const recordsPerBatch = 5_000;
const batchLengthMax = 4 * 1024 * 1024;
/** Batches that are on their way, from the question what of them is new until they are on the disk. */
const batchesUnderWay = 4;
/** Bytes of batches that are on their way, of all files together. */
const bytesUnderWayMax = batchesUnderWay * batchLengthMax;

export interface ImportJob {
  content: Content;
  /** On disk, or `-`. */
  path: string;
  /** Number of the content in the import. */
  number: number;
  /** What lookup files say about the records. */
  context: Omit<MapContext, "table">;
  /** Rows that describe persons and groups; shared by the files of one import. */
  snapshots: SnapshotStore;
  /** Makes what lookup rows were joined outlast this process. */
  saveLookups: () => void;
  format: ImportFormat;
  fields: readonly FieldRule[];
  /** Of times without a zone; left out: UTC. */
  zone?: Zone | undefined;
  /** Cells of tables that are no value, besides those that never are. */
  nulls?: readonly string[];
  gate: LinkGate;
  /** Whether an older version may have loaded the same records. */
  hasHistory: boolean;
  /** How often equal records without an id were met; shared by the files of one import. */
  ordinals: SpilledCounts;
  isDryRun: boolean;
  isResumed: boolean;
  progress: ImportProgress;
  /** Where rejected records go. */
  rejectPath: string;
  /** For working files. */
  workFolder: string;
  target: ImportTarget;
  /** Shared by the files of one import. */
  recent: RecentUuids;
  /** Pairs of ids and states of groups that were sent; shared by the files of one import. */
  said: RecentTexts;
  copiers: RecordCopiers;
  requests: RequestWriter;
  /** What the files of one import have sent. */
  order: SendingOrder;
  /** How many records may still be rejected; shared by the files of one import. */
  rejectsLeft: { count: number };
  onBytes: (bytes: number) => void;
  /** Told of records of this run, and of those of earlier runs that are passed over. */
  onRecords: (records: number, isEarlier: boolean) => void;
  onReject: (reject: Reject) => void;
  /** Of a dry run; shared by the files of one import. */
  report?: DryRunReport | undefined;
  /** Told, before the first record is taken, what the file is: `Amplitude's export, JSON lines, gzip`. */
  onFormat: (description: string) => void;
}

export interface ImportedFile {
  /** Over all runs. */
  counts: ImportCounts;
  /** Records that earlier runs have done. */
  resumed: number;
  /** Why the end of the file could not be read. */
  damage: InputDamaged | undefined;
  /** Why it was left before its end. */
  stopped: ImportStopped | undefined;
}

/** A file that was read: what is left to be done with it needs no file. */
export interface ReadFile {
  isStopped: boolean;
  /** Resolves when its last batch has arrived; it rejects with what the target throws. */
  imported: Promise<ImportedFile>;
}

/**
 * Reads a file; its last batches may still be on their way when it returns. The next file may be read meanwhile: batches of
 * different files arrive in the order in which they were read.
 *
 * @throws {FileUnreadable} @throws {ImportChanged} and what the target throws.
 */
export async function readFile(job: ImportJob): Promise<ReadFile> {
  return await new Importer(job).run();
}

/** What is told of a batch that was sent. */
interface SentBatch {
  /** Its last record's. */
  line: number;
  fingerprint: string;
  counts: Partial<ImportCounts>;
  rejects: Reject[];
}

const noRequests = new Uint8Array();
/** Records that are looked at to tell what they are. */
const samplesMax = 20;

class Importer {
  private done: FileProgress;
  private readonly rejectFile: RejectFile;
  private batch = new RecordBatch();
  /** What sends the batches one after the other, the last one's last; it fails for good with the first that fails. */
  private sending: Promise<void> = Promise.resolve();
  private readonly underWay = new Set<Promise<void>>();
  private stopped: ImportStopped | undefined;
  private format: RecordFormat = "events";
  /** What the first records look like. */
  private seems: ReturnType<typeof detectFormat>;
  private copier: RecordCopier | undefined;
  private readonly finishing: FinishOptions;
  /** Some uuid is made of the number among equal records. */
  private hasOrdinals = false;
  private readonly doubts = new Doubts();
  private localTimes: LocalTimes | undefined;
  private readonly context: MapContext;

  constructor(private readonly job: ImportJob) {
    this.done = job.isResumed && !job.isDryRun ? job.progress.read(job.content.name) : noProgress();
    this.rejectFile = new RejectFile(job.rejectPath);
    this.hasOrdinals = this.done.hasOrdinals === true;
    this.context = { ...job.context, table: tableOf(job.content.name) };
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
      const imported = { counts: this.done.counts, resumed, damage: undefined, stopped: undefined };
      return { isStopped: false, imported: Promise.resolve(imported) };
    }
    if (!job.isDryRun) this.rejectFile.begin(this.done.rejectBytes);
    const damage = await this.readAll();
    await this.flush();
    const imported = this.finish(resumed, damage);
    // It is awaited when some of the next files have been read.
    imported.catch(() => undefined);
    return { isStopped: this.stopped !== undefined, imported };
  }

  private async finish(resumed: number, damage: InputDamaged | undefined): Promise<ImportedFile> {
    const { job } = this;
    await this.sending;
    const isDone = damage === undefined && this.stopped === undefined;
    const { warning } = this.localTimes ?? {};
    if (isDone && warning !== undefined) addName(this.done.counts.warnings, ...warning);
    // Of a file without records there is nothing to remember.
    if (!job.isDryRun && this.done.line > 0) this.write({ ...this.done, isDone });
    if (damage !== undefined) this.noteDamage(damage);
    return { counts: this.done.counts, resumed, damage, stopped: this.stopped };
  }

  private write(progress: FileProgress): void {
    const isSmall = progress.line < recordsOfDoubt;
    // `--resume` must know which lookup rows the loaded records were joined with.
    this.job.saveLookups();
    this.job.progress.write(this.job.content.name, progress, { isDurable: !isSmall });
  }

  /** @returns why it could not be read to its end. */
  private async readAll(): Promise<InputDamaged | undefined> {
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
          // Only its equal records were wanted.
          if (this.done.isDone) break;
          if (!found) throw changed(job.content.name);
          this.take(read);
          const isFull = this.batch.size >= this.batchMax();
          // A batch that was being sent is made up again as it was.
          if (read.line < repeatTo) continue;
          if (read.line === repeatTo || isFull || this.batch.bytes >= batchLengthMax) await this.flush();
          if (this.stopped !== undefined) return undefined;
        }
      }
    } catch (error) {
      if (error instanceof InputDamaged) return error;
      throw error;
    }
    if (!found) throw changed(job.content.name);
    return undefined;
  }

  /** The first batch is small, so that a file of another kind is noticed early. */
  private batchMax(): number {
    return this.doubts.areOver ? recordsPerBatch : recordsOfDoubt;
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
      batch.add({ uuid: copied.uuid, text: copied, isMade: false, line });
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
      this.takeSnapshot(line, record, mapped.snapshot);
      return;
    }
    if (mapped.events.some(({ hasPlaceholder }) => hasPlaceholder)) batch.addPlaceholder(line);
    const events = finish(mapped.events, line, record, this.finishing);
    if (events.length === 0 && mapped.leftOut === undefined)
      batch.rejects.push({ line, reason: "no_event_in_record", record });
    for (const event of events) batch.add({ ...event, line, record });
  }

  /** It is checked like an event, and kept until all files are read. */
  private takeSnapshot(line: number, record: JsonObject, snapshot: Snapshot): void {
    const isTimed = snapshot.time !== undefined && snapshot.time !== null && snapshot.time !== "";
    const micros = isTimed ? timeOf(snapshot.time, undefined, this.finishing.zone) : this.fileMicros();
    const timestamp = typeof micros === "number" ? isoFromMicros(micros) : "";
    const timeProblem: TimeProblem | undefined = typeof micros === "number" ? undefined : micros;
    const text = JSON.stringify(checkEvent(snapshot, timestamp));
    const event = { uuid: "", text, timeProblem, isMade: false };
    this.batch.add({ ...event, line, record, snapshot: { snapshot, timestamp } });
  }

  /** The time of snapshots without a time of their own. */
  private fileMicros(): number {
    const found = this.job.path === "-" ? undefined : statSync(this.job.path, { throwIfNoEntry: false });
    return found === undefined ? this.finishing.nowMicros : Math.floor(found.mtimeMs * 1_000);
  }

  /** The records, once it is known what they are. @throws {FileUnreadable} they can never be events. */
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
      if (isShape(format) || format === "auto") {
        if (found === "totals" && format === "auto")
          throw new FileUnreadable(`${content.name} holds totals per day, no events: it cannot be loaded.`);
        this.format = format === "auto" && found !== undefined && found !== "totals" ? found : "events";
      } else this.format = format;
      const { zone } = this.job;
      if (zone === undefined && this.format === "mixpanel")
        this.localTimes = new LocalTimes(this.finishing.nowMicros);
      if (zone !== undefined)
        this.finishing.zone = { toInstant: zone, hasLocalNumbers: this.format === "mixpanel" };
      onFormat([titleOf(this.format), shape, ...content.packing, content.archive ?? []].flat().join(", "));
      const members = fields.length === 0 && zone === undefined ? membersOf(this.format) : undefined;
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
   * Has what is collected sent while the next batches are read: the store is asked at once what of it is new, and it goes on its
   * way when all batches before it have arrived.
   */
  private async flush(): Promise<void> {
    const { job, batch } = this;
    this.batch = new RecordBatch();
    batch.check();
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

    if (job.report !== undefined) this.report(job.report, batch);
    job.snapshots.add(batch.snapshots(job.number));
    const good = batch.events;
    const settling = this.settle(last.line, good);
    const sent = { line: last.line, fingerprint: fingerprint(last), counts: batch.counts(), rejects };
    const copied = good.findLast(({ text }) => typeof text !== "string")?.text as CopiedEvent | undefined;
    const write = (items: readonly Item[]) =>
      job.isDryRun ? noRequests : job.requests.write(items.map(({ text }) => text));
    let requests: Uint8Array | undefined;
    if (isPlain(good)) requests = write(good);
    // What was copied is released in order.
    else if (copied !== undefined) requests = write((await settling).items);
    if (copied !== undefined) this.copier?.release(copied);
    // Its counts are written down before it is sent, and those of the batch before it must be there by then.
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

  /** What a dry run shows of a batch. */
  private report(report: DryRunReport, batch: RecordBatch): void {
    for (const { reason } of batch.rejects) report.reject(reason);
    for (const { line, text } of batch.all) {
      const written = typeof text === "string" ? text : text.texts.toString("utf8", text.start, text.end);
      report.add(this.format, `${this.job.number}:${line}`, written);
    }
  }

  private noteUnderWay(sending: Promise<void>): void {
    this.underWay.add(sending);
    // A failure is seen where the result is awaited.
    sending.then(() => this.underWay.delete(sending)).catch(() => undefined);
  }

  /** Sends a batch, behind all before it, and makes it part of what is done. */
  private async send(
    { line, fingerprint, counts: more, rejects }: SentBatch,
    known: Known,
    requests: Uint8Array,
  ): Promise<void> {
    const { job } = this;
    if (!job.isDryRun) {
      this.write({ ...this.done, sending: { ...known, line } });
      // Of what is stored already nothing has to be sent.
      if (known.accepted > 0 || known.made > 0) await job.target.send(requests);
    }
    for (const reject of rejects) job.onReject(reject);
    if (!job.isDryRun) this.rejectFile.append(rejects);
    const { counts } = this.done;
    addCounts(counts, { ...more, ...known });
    this.done = {
      ...{ isDone: false, line, fingerprint, counts },
      rejectBytes: this.rejectFile.length,
      hasOrdinals: this.hasOrdinals,
    };
  }

  /** What it looks like, when it was taken for something else. */
  private guess(): RecordFormat | undefined {
    const { seems } = this;
    return seems === "totals" || seems === this.format ? undefined : seems;
  }

  /** Of a batch that an earlier run was sending, what was new then counts. */
  private async settle(line: number, good: readonly Item[]): Promise<SettledBatch> {
    const { sending } = this.done;
    const settled = await settle(good, this.job);
    if (sending?.line !== line) return settled;
    const { accepted, duplicate, made } = sending;
    return { ...settled, known: { accepted, duplicate, made } };
  }

  /** Not part of what is done, so that a mended file can be resumed. */
  private noteDamage(damage: InputDamaged): void {
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

function changed(path: string): ImportChanged {
  return new ImportChanged(`${path} is not what the interrupted import has read.`);
}
