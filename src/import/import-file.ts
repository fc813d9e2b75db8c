/** Loads a file of events into a project: in order, in batches, through the historical lane. */

import { AppError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { refusalsOf } from "./check.ts";
import { type ImportFormat, mapRecord, renamed, uuidOf } from "./map/records.ts";
import {
  digest,
  type FileProgress,
  ImportChanged,
  type ImportProgress,
  noProgress,
} from "./progress-file.ts";
import { InputDamaged } from "./read/input.ts";
import { type ReadRecord, readRecords } from "./read/read-records.ts";
import type { RecentUuids } from "./recent-uuids.ts";
import { type Reject, RejectFile } from "./reject-file.ts";
import type { ImportCounts } from "./summary.ts";
import type { ImportTarget } from "./target.ts";

const recordsPerBatch = 5_000;
/** When so many records at the beginning of a file are no events, none of it will be. */
const recordsOfDoubt = 1_000;
/** Names of fields that a message shows. */
const keysShown = 12;
const batchLengthMax = 4 * 1024 * 1024;

export interface ImportJob {
  /** Absolute, or `-`. */
  path: string;
  format: ImportFormat;
  names: ReadonlyMap<string, string>;
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
  /** How many records may still be rejected; shared by the files of one import. */
  rejectsLeft: { count: number };
  onBytes: (bytes: number) => void;
  /** Told of records of this run, and of those of earlier runs that are passed over. */
  onRecords: (records: number, isEarlier: boolean) => void;
  onReject: (reject: Reject) => void;
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

/** The import ends before the end of its files: going on would be of no use. */
export class ImportStopped extends AppError {
  readonly code = "import_stopped";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

/** @throws {FileUnreadable} @throws {ImportChanged} and what the target throws. */
export async function importFile(job: ImportJob): Promise<ImportedFile> {
  return await new Importer(job).run();
}

interface Item {
  line: number;
  uuid: string;
  text: string;
  record: JsonObject;
}

class Importer {
  private done: FileProgress;
  private readonly rejectFile: RejectFile;
  private items: Item[] = [];
  private rejects: Reject[] = [];
  private length = 0;
  /** All records of the batch. */
  private taken: ReadRecord[] = [];
  private sending: Promise<void> = Promise.resolve();
  /** Makes the last batch sent part of what is done. */
  private commit: () => void = () => {};
  private stopped: ImportStopped | undefined;
  /** Of this run: reasons, while nothing else was met. */
  private doubts: Map<string, number> | undefined = new Map();

  constructor(private readonly job: ImportJob) {
    this.done = job.isResumed && !job.isDryRun ? job.progress.read(job.path) : noProgress();
    this.rejectFile = new RejectFile(job.rejectPath);
  }

  async run(): Promise<ImportedFile> {
    const { job } = this;
    const { read: resumed, rejected } = this.done.counts;
    job.rejectsLeft.count -= rejected;
    if (resumed > rejected) this.doubts = undefined;
    if (this.done.isDone) {
      job.onRecords(resumed, true);
      return { counts: this.done.counts, resumed, damage: undefined, stopped: undefined };
    }
    if (!job.isDryRun) this.rejectFile.begin(this.done.rejectBytes);
    const damage = await this.readAll();
    await this.flush();
    await this.sent();
    const isDone = damage === undefined && this.stopped === undefined;
    if (!job.isDryRun) job.progress.write(job.path, { ...this.done, isDone });
    if (damage !== undefined) this.noteDamage(damage);
    return { counts: this.done.counts, resumed, damage, stopped: this.stopped };
  }

  /** @returns why it could not be read to its end. */
  private async readAll(): Promise<InputDamaged | undefined> {
    const { job } = this;
    const skipTo = this.done.line;
    const repeatTo = this.done.sending?.line ?? 0;
    let found = skipTo === 0;
    try {
      for await (const read of readRecords(job.path, job.format, job)) {
        if (read.line <= skipTo) {
          if (read.line === skipTo) found = fingerprint(read) === this.done.fingerprint;
          job.onRecords(1, true);
          continue;
        }
        if (!found) throw changed(job.path);
        this.take(read);
        const isFull = this.items.length + this.rejects.length >= this.batchMax();
        // A batch that was being sent is made up again as it was.
        if (read.line < repeatTo) continue;
        if (read.line === repeatTo || isFull || this.length >= batchLengthMax) await this.flush();
        if (this.stopped !== undefined) return undefined;
      }
    } catch (error) {
      if (error instanceof InputDamaged) return error;
      throw error;
    }
    if (!found) throw changed(job.path);
    return undefined;
  }

  /** The first batch is small, so that a file of another kind is noticed early. */
  private batchMax(): number {
    return this.doubts === undefined ? recordsPerBatch : recordsOfDoubt;
  }

  private take(read: ReadRecord): void {
    const { line, record, problem, text: raw } = read;
    this.taken.push(read);
    this.job.onRecords(1, false);
    if (record === undefined) {
      this.rejects.push({ line, reason: problem ?? "not_an_object", record: raw ?? null });
      return;
    }
    const mapped = mapRecord(this.job.format, renamed(record, this.job.names));
    const uuid = uuidOf(mapped, line, record);
    const text = JSON.stringify({ ...mapped.event, uuid });
    this.items.push({ line, uuid, text, record });
    this.length += text.length;
  }

  /** Sends what is collected while the next batch is read. */
  private async flush(): Promise<void> {
    const { job } = this;
    let taken = this.taken;
    const refusals = refusalsOf(this.items.map(({ text }) => text));
    let good = this.items.filter((_, index) => refusals[index] === undefined);
    this.items.forEach(({ line, record }, index) => {
      const reason = refusals[index];
      if (reason !== undefined) this.rejects.push({ line, reason, record });
    });
    let rejects = this.rejects.sort((one, other) => one.line - other.line);
    [this.items, this.rejects, this.length, this.taken] = [[], [], 0, []];
    const tooMany = rejects[job.rejectsLeft.count];
    if (tooMany !== undefined) {
      // The batch ends before it.
      taken = taken.filter(({ line }) => line < tooMany.line);
      good = good.filter(({ line }) => line < tooMany.line);
      rejects = rejects.slice(0, job.rejectsLeft.count);
      this.stopped = tooManyRejects(job, tooMany);
    }
    const last = taken.at(-1);
    if (last === undefined) return;
    this.doubt(good, rejects);
    job.rejectsLeft.count -= rejects.length;

    const known = await this.countNew(last.line, good);
    job.recent.add(good.map(({ uuid }) => uuid));
    await this.sent();
    const batch = { line: last.line, ...known };
    if (!job.isDryRun) {
      job.progress.write(job.path, { ...this.done, sending: batch });
      // Of what is stored already nothing has to be sent.
      this.sending = known.accepted === 0 ? Promise.resolve() : job.target.send(good.map(({ text }) => text));
      // A failure is seen where the result is awaited.
      this.sending.catch(() => undefined);
    }
    this.commit = () => {
      for (const reject of rejects) job.onReject(reject);
      if (!job.isDryRun) this.rejectFile.append(rejects);
      const { counts } = this.done;
      this.done = {
        isDone: false,
        line: batch.line,
        fingerprint: fingerprint(last),
        counts: {
          read: counts.read + taken.length,
          accepted: counts.accepted + known.accepted,
          duplicate: counts.duplicate + known.duplicate,
          rejected: counts.rejected + rejects.length,
        },
        rejectBytes: this.rejectFile.length,
      };
    };
  }

  /** Stops where everything from the beginning was rejected: the file is of another kind than was said. */
  private doubt(good: readonly Item[], rejects: readonly Reject[]): void {
    if (this.doubts === undefined) return;
    if (good.length > 0) {
      this.doubts = undefined;
      return;
    }
    for (const { reason } of rejects) this.doubts.set(reason, (this.doubts.get(reason) ?? 0) + 1);
    const count = [...this.doubts.values()].reduce((sum, each) => sum + each, 0);
    if (count < recordsOfDoubt) return;
    const reasons = [...this.doubts].sort(([, one], [, other]) => other - one).map(([reason]) => reason);
    const sample = rejects.find(({ record }) => record !== null && typeof record === "object")?.record;
    const keys = sample === undefined ? [] : Object.keys(sample as JsonObject).slice(0, keysShown);
    const shape = keys.length === 0 ? "" : ` Its records have ${keys.join(", ")}.`;
    this.stopped ??= new ImportStopped(
      `The first ${count} records of ${this.job.path} were all rejected (${reasons.join(", ")}).${shape}`,
      "Say what the file is with --format, or which fields it has with --map.",
    );
  }

  /** Waits for the batch that is on its way. */
  private async sent(): Promise<void> {
    await this.sending;
    this.commit();
    this.commit = () => {};
    await this.job.recent.tidy();
  }

  /** How many of a batch's events are new; of a batch that an earlier run was sending, what was new then. */
  private async countNew(line: number, good: readonly Item[]) {
    const { sending } = this.done;
    if (sending?.line === line) return { accepted: sending.accepted, duplicate: sending.duplicate };
    const unsent = new Set(good.map(({ uuid }) => uuid).filter((uuid) => !this.job.recent.has(uuid)));
    const known = unsent.size === 0 ? 0 : await this.job.target.countKnown([...unsent]);
    const accepted = unsent.size - known;
    return { accepted, duplicate: good.length - accepted };
  }

  /** Not part of what is done, so that a mended file can be resumed. */
  private noteDamage(damage: InputDamaged): void {
    const reject = { line: this.done.line + 1, reason: damage.code, record: damage.message };
    this.job.onReject(reject);
    if (!this.job.isDryRun) this.rejectFile.append([reject]);
    const { counts } = this.done;
    this.done.counts = { ...counts, read: counts.read + 1, rejected: counts.rejected + 1 };
  }
}

function fingerprint({ record, problem, text }: ReadRecord): string {
  return digest(record === undefined ? `${problem}:${text}` : JSON.stringify(record));
}

function changed(path: string): ImportChanged {
  return new ImportChanged(`${path} is not what the interrupted import has read.`);
}

function tooManyRejects({ path, rejectPath }: ImportJob, { line, reason }: Reject): ImportStopped {
  return new ImportStopped(
    `Too many records are rejected: ${path}, line ${line} (${reason}).`,
    `See ${rejectPath}; --max-rejects with --resume goes on from here.`,
  );
}
