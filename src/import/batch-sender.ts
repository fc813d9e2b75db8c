/**
 * Sends the batches of a file in order, while the next ones are read, and records the file's progress, counts and
 * rejects.
 */

import { type AbortRules, type ImportAbortedError, sampleSize, tooManyRejects } from "./abort-rules.ts";
import { addCounts, addName, type ImportCounts } from "./counts.ts";
import type { DryRunReport } from "./dry-run.ts";
import type { FormatReader } from "./format-reader.ts";
import type { ImportedFile, ImportJob } from "./import-job.ts";
import { digest, type FileProgress, noProgress } from "./progress-file.ts";
import type { CorruptInputError } from "./read/input.ts";
import { type CopiedEvent, parsedLine, type ReadRecord } from "./read/record.ts";
import { joinSpans, type Span } from "./receipt.ts";
import type { RecordBatch } from "./record-batch.ts";
import { type Reject, RejectFile } from "./reject-file.ts";
import { type Item, isPlain, type Known, type SettledBatch, settle } from "./settled-batch.ts";

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

/** Batches in flight, from the lookup of new events until they are on disk. */
const batchesUnderWay = 4;
/** Length of a full batch. */
export const batchLengthMax = 4 * 1024 * 1024;
/** Bytes of batches in flight, of all files together. */
const bytesUnderWayMax = batchesUnderWay * batchLengthMax;
const noRequests = new Uint8Array();

export class BatchSender {
  /** Everything that has arrived. */
  done: FileProgress;
  /** Some UUID contains the number among equal records. */
  hasOrdinals: boolean;
  /** Why the file is aborted before its end. */
  stopped: ImportAbortedError | undefined;
  private readonly rejectFile: RejectFile;
  /** Chain of batches that are sent one after the other; it fails permanently with the first failure. */
  private sending: Promise<void> = Promise.resolve();
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    private readonly job: ImportJob,
    private readonly reader: FormatReader,
    private readonly abortRules: AbortRules,
  ) {
    this.done = job.isResumed && !job.isDryRun ? job.progress.read(job.content.name) : noProgress();
    this.hasOrdinals = this.done.hasOrdinals === true;
    this.rejectFile = new RejectFile(job.rejectPath);
  }

  /** Prepares the reject file for the rejects of this run. */
  start(): void {
    if (!this.job.isDryRun) this.rejectFile.start(this.done.rejectBytes);
  }

  /** Sends a batch: the lookup of its new events starts immediately, and it is sent after all previous ones have arrived. */
  async add(batch: RecordBatch): Promise<void> {
    const { job } = this;
    // What a server has stored can be loaded into one with a lower limit.
    batch.check(this.reader.format === "flagkeep" ? Number.POSITIVE_INFINITY : job.eventBytesMax);
    this.applyAbortRules(batch);
    const { last, rejects } = batch;
    if (last === undefined) return;

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
    if (copied !== undefined) this.reader.copier?.release(copied);
    // Its counts are recorded before it is sent, and those of the previous batch must be recorded by then.
    const ready = Promise.all([settling, this.sending]).then(([settled]) => settled);
    this.sending = job.order.add(batch.bytes, ready, async ({ known, items }) => {
      const written = requests ?? write(items);
      await this.send(sent, known, written);
      job.requests.release(written);
    });
    this.recordUnderWay(this.sending);
    if (job.recent.isFull) {
      await job.order.idle();
      await job.recent.tidy();
    }
    while (this.underWay.size >= batchesUnderWay) await Promise.race(this.underWay);
    await job.order.waitForCapacity(bytesUnderWayMax);
  }

  /**
   * Waits until all batches have arrived.
   *
   * @param resumed records done by earlier runs.
   * @param corruption  why the end of the file could not be read.
   */
  async finish(resumed: number, corruption: CorruptInputError | undefined): Promise<ImportedFile> {
    const { job } = this;
    await this.sending;
    const isDone = corruption === undefined && this.stopped === undefined;
    const { warning } = this.reader.localTimes ?? {};
    if (isDone && warning !== undefined) addName(this.done.counts.warnings, ...warning);
    // A file without records needs no progress.
    if (!job.isDryRun && this.done.line > 0) this.write({ ...this.done, isDone });
    if (corruption !== undefined) this.recordCorruption(corruption);
    const { counts, span } = this.done;
    const hasRejects = this.rejectFile.length > 0;
    return { counts, span, hasRejects, resumed, corruption, stopped: this.stopped };
  }

  /** Ends the batch before the first reject too many, and aborts the file if the rules say so. */
  private applyAbortRules(batch: RecordBatch): void {
    const { job } = this;
    const tooMany = batch.rejects[job.rejectsLeft.count];
    if (tooMany !== undefined) {
      batch.endBefore(tooMany.line);
      this.stopped = tooManyRejects(job.content.name, job.rejectPath, tooMany);
    }
    const { last, rejects } = batch;
    if (last === undefined) return;
    if (batch.isUseful) this.abortRules.end();
    else this.stopped ??= this.abortRules.add(rejects, job.content.name, this.reader.guess);
    job.rejectsLeft.count -= rejects.length;
  }

  /** Adds a batch to the report of a dry run. @param sent without the links that the gate rejects. */
  private report(report: DryRunReport, batch: RecordBatch, sent: readonly Item[]): void {
    for (const { reason } of batch.rejects) report.reject(reason);
    const all = new Set(sent);
    for (const item of batch.all) {
      if (item.snapshot === undefined && !all.has(item)) continue;
      const { line, text } = item;
      const written = typeof text === "string" ? text : text.texts.toString("utf8", text.start, text.end);
      report.add(this.reader.format, `${this.job.number}:${line}`, written);
    }
  }

  private recordUnderWay(sending: Promise<void>): void {
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
    const listed = [...rejects, ...incomplete].sort((a, b) => a.line - b.line);
    if (!job.isDryRun) this.rejectFile.append(listed);
    const { counts } = this.done;
    addCounts(counts, { ...more, ...known });
    this.done = {
      isDone: false,
      line,
      fingerprint,
      counts,
      rejectBytes: this.rejectFile.length,
      hasOrdinals: this.hasOrdinals,
      span: joinSpans(this.done.span, span),
    };
  }

  private write(progress: FileProgress): void {
    // `--resume` must know which lookup rows the loaded records were joined with.
    this.job.saveLookups();
    this.job.progress.write(this.job.content.name, progress, { isSmall: progress.line < sampleSize });
  }

  /** For a batch that an earlier run was sending, the recorded counts apply. */
  private async settle(line: number, good: readonly Item[]): Promise<SettledBatch> {
    const { sending } = this.done;
    const settled = await settle(good, this.job);
    if (sending?.line !== line) return settled;
    const { accepted, duplicate, made: generated } = sending;
    return { ...settled, known: { accepted, duplicate, made: generated } };
  }

  /** Not part of the progress, so that a repaired file can be resumed. */
  private recordCorruption(corruption: CorruptInputError): void {
    const reject = { line: this.done.line + 1, reason: corruption.code, record: corruption.message };
    this.job.report?.reject(reject.reason);
    this.job.onReject(reject);
    if (!this.job.isDryRun) this.rejectFile.append([reject]);
    const { counts } = this.done;
    this.done.counts = { ...counts, read: counts.read + 1, rejected: counts.rejected + 1 };
  }
}

/** Identifies the content of a record, to detect a file that was changed between two runs. */
export function fingerprint(read: ReadRecord): string {
  const { record, problem, text } = read.copied === undefined ? read : parsedLine(read.copied.record, 0);
  return digest(record === undefined ? `${problem}:${text}` : JSON.stringify(record));
}
