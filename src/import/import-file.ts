/** Loads a file of events into a project: in order, in batches, through the historical lane. */

import { statSync } from "node:fs";
import type { JsonObject } from "../lib/json/value.ts";
import { isoFromMicros, nowMicros } from "../lib/time.ts";
import { AbortRules, sampleSize } from "./abort-rules.ts";
import { BatchSender, batchLengthMax, fingerprint } from "./batch-sender.ts";
import { getTable } from "./files.ts";
import { FormatReader } from "./format-reader.ts";
import type { ImportedFile, ImportJob } from "./import-job.ts";
import { withFields } from "./map/fields.ts";
import { type MapContext, mapRecord } from "./map/formats.ts";
import { isPlaceholder } from "./map/identity.ts";
import type { Snapshot } from "./map/mapped.ts";
import { type TimeProblem, toTime } from "./map/time.ts";
import { type FinishOptions, passOver, toEvents } from "./map/to-events.ts";
import { ImportFileChangedError } from "./progress-file.ts";
import { CorruptInputError } from "./read/input.ts";
import { standardInput } from "./read/piped-input.ts";
import type { ReadRecord } from "./read/record.ts";
import { RecordBatch } from "./record-batch.ts";
import { checkEvent } from "./snapshots.ts";

const recordsPerBatch = 5_000;

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

class Importer {
  private batch = new RecordBatch();
  private readonly abortRules = new AbortRules();
  private readonly context: MapContext;
  private readonly finishing: FinishOptions;
  private readonly reader: FormatReader;
  private readonly sender: BatchSender;

  constructor(private readonly job: ImportJob) {
    this.context = { ...job.context, table: getTable(job.content.name) };
    const now = nowMicros();
    this.reader = new FormatReader(job, now);
    this.sender = new BatchSender(job, this.reader, this.abortRules);
    this.finishing = {
      nowMicros: now,
      isNews: (news) => job.said.add(news),
      hasHistory: job.hasHistory,
      ordinalOf: (content) => {
        this.sender.hasOrdinals = true;
        return job.ordinals.add(content);
      },
    };
  }

  async run(): Promise<ReadFile> {
    const { job, sender } = this;
    const { done, hasOrdinals } = sender;
    const { read: resumed, rejected } = done.counts;
    job.rejectsLeft.count -= rejected;
    if (resumed > rejected) this.abortRules.end();
    if (done.isDone) {
      if (hasOrdinals) await this.readAll();
      else job.onRecords(resumed, true);
      const { counts, span, rejectBytes } = done;
      const hasRejects = rejectBytes > 0;
      const imported = { counts, span, hasRejects, resumed, corruption: undefined, stopped: undefined };
      return { isStopped: false, imported: Promise.resolve(imported) };
    }
    sender.start();
    const corruption = await this.readAll();
    await this.flush();
    const imported = sender.finish(resumed, corruption);
    // It is awaited after some of the next files have been read.
    imported.catch(() => undefined);
    return { isStopped: sender.stopped !== undefined, imported };
  }

  /** @returns why it could not be read to its end. */
  private async readAll(): Promise<CorruptInputError | undefined> {
    const { job, reader, sender } = this;
    const { done: before } = sender;
    const skipTo = before.line;
    const repeatTo = before.sending?.line ?? 0;
    let found = skipTo === 0;
    try {
      for await (const records of reader.records()) {
        this.finishing.zone = reader.zone;
        const earlier = skipTo === 0 ? 0 : records.filter(({ line }) => line <= skipTo).length;
        if (earlier > 0) job.onRecords(earlier, true);
        if (earlier < records.length) job.onRecords(records.length - earlier, false);
        for (const read of records) {
          reader.localTimes?.add(read.record);
          if (read.line <= skipTo) {
            if (read.line === skipTo) found = fingerprint(read) === before.fingerprint;
            if (sender.hasOrdinals) this.skip(read);
            continue;
          }
          // Only its equal records were needed.
          if (before.isDone) break;
          if (!found) throw changed(job.content.name);
          this.take(read);
          const isFull = this.batch.size >= this.batchMax();
          // A batch that was being sent is rebuilt exactly.
          if (read.line < repeatTo) continue;
          if (read.line === repeatTo || isFull || this.batch.bytes >= batchLengthMax) await this.flush();
          if (sender.stopped !== undefined) return undefined;
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
    return this.abortRules.isExceeded ? recordsPerBatch : sampleSize;
  }

  private async flush(): Promise<void> {
    const { batch } = this;
    this.batch = new RecordBatch();
    await this.sender.add(batch);
  }

  private skip({ record }: ReadRecord): void {
    if (record === undefined) return;
    passOver(this.map(record).events, this.finishing);
  }

  private map(record: JsonObject) {
    return mapRecord(this.reader.format, withFields(record, this.job.fields), this.context);
  }

  private take(read: ReadRecord): void {
    const { batch } = this;
    const { line, record, problem, text: raw, copied } = read;
    batch.take(read);
    if (copied !== undefined) {
      const { about } = copied;
      if (isPlaceholder(about.distinctId)) batch.addPlaceholder(line);
      batch.add({ uuid: copied.uuid, text: copied, isGenerated: false, about, line });
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
    const event = { uuid: "", text, timeProblem, isGenerated: false };
    if (snapshot.kind === "person" && snapshot.distinctIds.some(isPlaceholder))
      this.batch.addPlaceholder(line);
    this.batch.add({ ...event, line, record, snapshot: { snapshot, timestamp } });
  }

  /** The time of snapshots without one. */
  private fileMicros(): number {
    const { path } = this.job;
    const found = path === standardInput ? undefined : statSync(path, { throwIfNoEntry: false });
    return found === undefined ? this.finishing.nowMicros : Math.floor(found.mtimeMs * 1_000);
  }
}

function changed(path: string): ImportFileChangedError {
  return new ImportFileChangedError(`${path} is not what the interrupted import has read.`);
}
