/** Loads a file of events into a project: in order, in batches, over the appliance's own `/batch/` route. */

import { appendFileSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { AppError } from "../errors.ts";
import type { JsonObject } from "../flags/json.ts";
import { refusalOf } from "./check.ts";
import type { Position } from "./position.ts";
import { type ReadRecord, readRecords } from "./read-records.ts";
import { type ImportFormat, mapRecord, renamed, uuidOf } from "./records.ts";

const eventsPerBatch = 5_000;
/** Well below the usual limit of a body. */
const batchLengthMax = 4 * 1024 * 1024;
const retryMs = 1_000;
const retriesMax = 60;
const settleMs = 60_000;

export interface ImportSummary {
  read: number;
  accepted: number;
  duplicate: number;
  rejected: number;
  /** Records that an earlier run loaded. */
  skipped: number;
}

export interface ImportJob {
  /** Absolute, or `-`. */
  path: string;
  format: ImportFormat;
  names: ReadonlyMap<string, string>;
  /** Where `/batch/` is. */
  url: string;
  apiKey: string;
  isDryRun: boolean;
  isResumed: boolean;
  position: Position;
  /** Where rejected records go. */
  rejectPath: string;
  /** How many of these uuids are stored. */
  countKnown: (uuids: string[]) => Promise<number>;
  onProgress: (summary: ImportSummary) => void;
}

/** The appliance does not take the events. */
export class ImportRefused extends AppError {
  readonly code = "import_refused";
  override readonly hint = "Nothing is lost: run the same command with --resume.";
}

/**
 * Imports one file.
 *
 * @throws {ImportRefused} @throws {FileUnreadable}
 */
export async function importFile(job: ImportJob): Promise<ImportSummary> {
  const importer = new Importer(job);
  return await importer.run();
}

class Importer {
  private readonly summary: ImportSummary = { read: 0, accepted: 0, duplicate: 0, rejected: 0, skipped: 0 };
  private texts: string[] = [];
  private uuids: string[] = [];
  private length = 0;
  private lastUuids: string[] = [];

  constructor(private readonly job: ImportJob) {}

  async run(): Promise<ImportSummary> {
    const { job, summary } = this;
    const done = job.isResumed ? job.position.read() : 0;
    if (done === 0) rmSync(job.rejectPath, { force: true });
    let line = 0;
    for await (const read of readRecords(job.path, job.format)) {
      line = read.line;
      if (line <= done) {
        summary.skipped += 1;
        continue;
      }
      summary.read += 1;
      this.take(read);
      if (this.texts.length >= eventsPerBatch || this.length >= batchLengthMax) await this.flush(line);
    }
    await this.flush(line);
    await this.settle();
    if (!job.isDryRun) job.position.forget();
    return summary;
  }

  private take({ line, record, problem }: ReadRecord): void {
    const { job } = this;
    if (record === undefined) {
      this.reject(line, problem ?? "not_an_object", null);
      return;
    }
    const { event, sourceId } = mapRecord(job.format, renamed(record, job.names));
    const uuid = uuidOf(sourceId, basename(job.path), line);
    const text = JSON.stringify({ ...event, uuid });
    const refusal = refusalOf(text);
    if (refusal !== undefined) {
      this.reject(line, refusal, record);
      return;
    }
    this.texts.push(text);
    this.uuids.push(uuid);
    this.length += text.length;
  }

  private reject(line: number, reason: string, record: JsonObject | null): void {
    this.summary.rejected += 1;
    if (this.job.isDryRun) return;
    appendFileSync(this.job.rejectPath, `${JSON.stringify({ line, reason, record })}\n`, { mode: 0o600 });
  }

  /** Sends what is collected and remembers the line once it is acknowledged. */
  private async flush(line: number): Promise<void> {
    const { job, summary, texts, uuids } = this;
    if (texts.length > 0) {
      const isNew = new Set(uuids);
      const known = await job.countKnown([...isNew]);
      const accepted = isNew.size - known;
      if (!job.isDryRun) await this.send(texts);
      summary.accepted += accepted;
      summary.duplicate += uuids.length - accepted;
      this.lastUuids = [...isNew];
    }
    if (!job.isDryRun && line > 0) job.position.write(line);
    this.texts = [];
    this.uuids = [];
    this.length = 0;
    job.onProgress(summary);
  }

  private async send(texts: readonly string[]): Promise<void> {
    const { url, apiKey } = this.job;
    const body = `{"api_key":${JSON.stringify(apiKey)},"historical_migration":true,"batch":[${texts.join(",")}]}`;
    for (let tries = 0; ; tries++) {
      const response = await fetch(`${url}/batch/`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
      }).catch(() => undefined);
      if (response?.ok) return;
      const isPassing = response === undefined || response.status === 503 || response.status === 429;
      if (!isPassing || tries >= retriesMax) {
        const reason = response === undefined ? "no answer" : `${response.status} ${await response.text()}`;
        throw new ImportRefused(`The appliance did not take the events (${reason}).`);
      }
      await Bun.sleep(retryMs);
    }
  }

  /** The historical lane keeps its order: when the last batch can be read, all before it can. */
  private async settle(): Promise<void> {
    const { job, lastUuids } = this;
    if (job.isDryRun || lastUuids.length === 0) return;
    const end = performance.now() + settleMs;
    while ((await job.countKnown(lastUuids)) < lastUuids.length && performance.now() < end)
      await Bun.sleep(100);
  }
}
