/** Writes one lane of the journal: group commit to the open segment, sealed by size and age. */

import { join } from "node:path";
import { AppError } from "../lib/errors.ts";
import type { Disk } from "./disk.ts";
import { type EntryJson, getLine, Lines } from "./entry.ts";
import { PreparedLines } from "./prepared-lines.ts";
import {
  blockLine,
  hashBlock,
  hashSeed,
  type Lane,
  type SealedSegment,
  segmentFileName,
  segmentHeader,
} from "./segment.ts";
import type { JournalFile } from "./segment-file.ts";

/** Nothing of the request was stored; the client may retry. */
export class JournalUnavailableError extends AppError {
  static readonly reasons = {
    disk_full: "The disk is almost full; new events are rejected.",
    write_failed: "The journal could not be written.",
    overloaded: "Too many events are queued for fsync.",
    closed: "The journal is closed.",
  } as const;
  readonly code = "journal_unavailable";
  override readonly hint = "Free disk space in the data directory, or see the log for the disk's error.";
  constructor(readonly reason: keyof typeof JournalUnavailableError.reasons) {
    super(JournalUnavailableError.reasons[reason]);
  }
}

export interface LaneOptions {
  /** Segments are sealed at this size. */
  segmentBytesMax: number;
  /** Segments are sealed at this number of entries; larger requests span several segments. */
  segmentEntriesMax: number;
  /** Segments are sealed at this age of their first entry, earlier if the last seal was this long ago. */
  sealIntervalMs: number;
  /** How long a group waits for further requests; 0: only for the previous write. */
  flushIntervalMs: number;
  /** Maximum bytes queued for the disk; new entries are rejected above it. */
  queueBytesMax: number;
}

/** A request that is not durable yet. */
interface Request {
  first: number;
  hasFailed: boolean;
  resolve: (first: number) => void;
  reject: (error: Error) => void;
}

type PartLines = string | Pick<Lines, "length" | "write">;

/** Entries of a request that are written in one block. */
interface Part {
  lines: PartLines;
  first: number;
  count: number;
  isLast: boolean;
  request: Request;
}

interface OpenSegment {
  first: number;
  /** Sequence number of the last durable entry; `first - 1` if the segment is empty. */
  last: number;
  path: string;
  file: JournalFile;
  /** Durable bytes; 0 until the header is written. */
  bytes: number;
  hash: bigint;
  openedAt: number;
}

/** Maximum characters per group: limits the memory and duration of a write. */
const groupCharactersMax = 16 * 1024 * 1024;
/** Size of the reused write buffer; nearly all groups fit. */
const scratchBytes = 1024 * 1024;
/** UTF-8 bytes per UTF-16 code unit. */
const bytesPerUnitMax = 3;
/** Upper limit of a header's and of a block line's size. */
const frameBytesMax = 128;
/** Reject entries without writing for this long after a failed write. */
const pauseAfterFailureMs = 250;

/** Delay of sealing the first entry after idle time: requests of a client usually come in bursts. */
const companyMs = 25;

/** Writes one segment at a time. Sequence numbers of failed entries are not reused. */
export class LaneWriter {
  /** Entries made durable since startup. */
  durableCount = 0;
  private queue: Part[] = [];
  private queueCharacters = 0;
  private segment: OpenSegment | undefined;
  private running: Promise<void> | undefined;
  private sealTimer: ReturnType<typeof setTimeout> | undefined;
  private lastSealAt = performance.now();
  private pausedUntil = 0;
  private closed = false;
  private sealing: Promise<void> | undefined;
  /** Resolved when the open segment is sealed, after the current group. */
  private sealWaiters: (() => void)[] = [];
  private scratch: Buffer | undefined;
  /** Sequence numbers up to here are in sealed segments or belong to failed entries. */
  private sealedTo: number;

  constructor(
    readonly lane: Lane,
    private readonly folder: string,
    private nextSeq: number,
    private readonly disk: Disk,
    private readonly options: LaneOptions,
    private readonly onSealed: (segment: SealedSegment) => void | Promise<void>,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.sealedTo = nextSeq - 1;
  }

  /** The highest assigned sequence number. */
  get lastSeq(): number {
    return this.nextSeq - 1;
  }

  /** Size of the open segment. */
  get openBytes(): number {
    return this.segment?.bytes ?? 0;
  }

  /** Approximate bytes (counted as characters) queued for the disk. */
  get queuedBytes(): number {
    return this.queueCharacters;
  }

  /**
   * Appends entries; resolves with the first sequence number when all are durable.
   * @throws {JournalUnavailableError} nothing was stored
   */
  append(entries: readonly EntryJson[] | PreparedLines): Promise<number> {
    if (this.closed) return Promise.reject(new JournalUnavailableError("closed"));
    if (this.queueCharacters > this.options.queueBytesMax)
      return Promise.reject(new JournalUnavailableError("overloaded"));
    if (this.pausedUntil !== 0) {
      if (performance.now() < this.pausedUntil)
        return Promise.reject(new JournalUnavailableError("write_failed"));
      this.pausedUntil = 0;
    }
    const first = this.nextSeq;
    const total = entries instanceof PreparedLines ? entries.count : entries.length;
    this.nextSeq += total;
    return new Promise((resolve, reject) => {
      const request: Request = { first, hasFailed: false, resolve, reject };
      let end = 0;
      for (const { count, lines } of this.parts(first, entries)) {
        this.queue.push({ lines, first: first + end, count, isLast: end + count === total, request });
        this.queueCharacters += lines.length;
        end += count;
      }
      this.running ??= this.run();
    });
  }

  /** The lines of a request, divided if they do not fit in one segment. */
  private parts(
    first: number,
    entries: readonly EntryJson[] | PreparedLines,
  ): { count: number; lines: PartLines }[] {
    const countMax = this.options.segmentEntriesMax;
    if (entries instanceof PreparedLines) {
      const { count } = entries;
      return count > countMax
        ? this.parts(first, entries.entries())
        : [{ count, lines: entries.numbered(first) }];
    }
    const parts: { count: number; lines: PartLines }[] = [];
    for (let start = 0; start < entries.length; start += countMax) {
      const some = entries.slice(start, start + countMax);
      parts.push({ count: some.length, lines: textOrLines(first + start, some) });
    }
    return parts;
  }

  /** Waits for queued entries to be durable and seals the open segment, if any. */
  async seal(): Promise<void> {
    while (this.running !== undefined) await this.running;
    if (this.segment !== undefined) await this.exclusively(this.sealOpen());
  }

  /**
   * Seals the open segment after the current group, if it has acknowledged entries. Resolves when all entries
   * acknowledged before the call are in sealed segments and handed over.
   */
  async sealAcknowledged(): Promise<void> {
    await this.sealing;
    const { segment } = this;
    if (segment === undefined || segment.last < segment.first) return;
    if (this.running === undefined) await this.exclusively(this.sealOpen());
    else await new Promise<void>((resolve) => this.sealWaiters.push(resolve));
  }

  /** Rejects new entries, makes queued ones durable and seals the open segment. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.sealTimer);
    await this.seal();
  }

  private async run(): Promise<void> {
    if (this.options.flushIntervalMs > 0) await Bun.sleep(this.options.flushIntervalMs);
    // Wait one tick, so that all pending requests share the first sync.
    else await new Promise(setImmediate);
    while (this.queue.length > 0) await this.writeGroup();
    if (this.sealWaiters.length > 0) await this.sealOpenIfAny();
    this.running = undefined;
    const segment = this.segment;
    if (segment !== undefined && this.sealTimer === undefined) {
      const left = this.sealDueAt(segment) - performance.now();
      this.sealTimer = setTimeout(() => this.sealByAge(), Math.max(0, left));
    }
  }

  private sealByAge(): void {
    this.sealTimer = undefined;
    // A running write checks the age itself.
    if (this.running === undefined && this.segment !== undefined) void this.exclusively(this.sealOpen());
  }

  /** Blocks writes while the open segment is modified. */
  private exclusively(work: Promise<void>): Promise<void> {
    this.running = work.finally(() => {
      this.running = this.queue.length > 0 ? this.run() : undefined;
    });
    return this.running;
  }

  /** Removes the next group from the queue; it fits in one segment. */
  private takeGroup(): Part[] {
    const group: Part[] = [];
    let characters = 0;
    let count = 0;
    while (this.queue[group.length] !== undefined) {
      const part = this.queue[group.length]!;
      if (group.length > 0 && characters + part.lines.length > groupCharactersMax) break;
      if (group.length > 0 && count + part.count > this.options.segmentEntriesMax) break;
      characters += part.lines.length;
      count += part.count;
      group.push(part);
    }
    if (group.length === this.queue.length) this.queue = [];
    else this.queue.splice(0, group.length);
    this.queueCharacters -= characters;
    // Skip the rest of a failed request: the client retries the whole request in order.
    return group.filter(({ request }) => !request.hasFailed);
  }

  private async writeGroup(): Promise<void> {
    const group = this.takeGroup();
    const newest = group.at(-1);
    if (newest === undefined) return;
    const last = newest.first + newest.count - 1;
    try {
      this.segment ??= await this.openSegment();
      const segment = this.segment;
      const { bytes, hash } = this.block(segment, group, last);
      await segment.file.write(bytes, segment.bytes);
      segment.bytes += bytes.length;
      segment.hash = hash;
      segment.last = last;
    } catch (error) {
      await this.abandonSegment();
      this.pausedUntil = performance.now() + pauseAfterFailureMs;
      const full =
        (error as NodeJS.ErrnoException).code === "ENOSPC" ||
        (error as NodeJS.ErrnoException).code === "EDQUOT";
      const failure = new JournalUnavailableError(full ? "disk_full" : "write_failed");
      for (const { request } of group) {
        request.hasFailed = true;
        request.reject(failure);
      }
      this.onFailure(error);
      return;
    }
    for (const { count, isLast, request } of group) {
      this.durableCount += count;
      if (isLast) request.resolve(request.first);
    }
    if (this.isSealDue(this.segment)) await this.sealOpen();
  }

  /** The bytes a group adds to the segment: header (first group only), lines and block line. */
  private block(segment: OpenSegment, group: readonly Part[], last: number) {
    const header = segment.bytes === 0 ? segmentHeader(this.lane, segment.first) : "";
    const buffer = this.bufferFor(group);
    const start = buffer.write(header, "latin1");
    let end = start;
    for (const { lines } of group) {
      if (typeof lines === "string") end += buffer.write(lines, end);
      else end = lines.write(buffer, end);
    }
    const hash = hashBlock(buffer.subarray(start, end), last, segment.hash);
    end += buffer.write(blockLine(last, end - start, hash), end, "latin1");
    return { bytes: buffer.subarray(0, end), hash };
  }

  private bufferFor(group: readonly Part[]): Buffer {
    const frames = 2 * frameBytesMax;
    const bytesMax = group.reduce(
      (sum, { lines }) => sum + lines.length * (typeof lines === "string" ? bytesPerUnitMax : 1),
      frames,
    );
    if (bytesMax > scratchBytes) {
      const getBytes = (lines: PartLines) =>
        typeof lines === "string" ? Buffer.byteLength(lines) : lines.length;
      return Buffer.allocUnsafeSlow(group.reduce((sum, { lines }) => sum + getBytes(lines), frames));
    }
    this.scratch ??= Buffer.allocUnsafeSlow(scratchBytes);
    return this.scratch;
  }

  private isSealDue(segment: OpenSegment): boolean {
    if (this.sealWaiters.length > 0) return true;
    const { segmentBytesMax, segmentEntriesMax } = this.options;
    const { bytes, first, last } = segment;
    if (bytes >= segmentBytesMax || last - first + 1 >= segmentEntriesMax) return true;
    return performance.now() >= this.sealDueAt(segment);
  }

  /** Seals at most once per interval; after idle time, a segment is sealed after `companyMs`. */
  private sealDueAt({ openedAt }: OpenSegment): number {
    const { sealIntervalMs } = this.options;
    const soonest = openedAt + Math.min(companyMs, sealIntervalMs);
    return Math.min(openedAt + sealIntervalMs, Math.max(soonest, this.lastSealAt + sealIntervalMs));
  }

  /** A segment starts where the previous one ends, even if a failed write has used sequence numbers in between. */
  private async openSegment(): Promise<OpenSegment> {
    const first = this.sealedTo + 1;
    const path = join(this.folder, segmentFileName(first));
    const file = await this.disk.create(path).catch(async (error) => {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") this.skipName();
      else await this.removeUnused(path);
      throw error;
    });
    return {
      first,
      last: first - 1,
      path,
      file,
      bytes: 0,
      hash: hashSeed(first),
      openedAt: performance.now(),
    };
  }

  private async sealOpenIfAny(): Promise<void> {
    if (this.segment !== undefined) await this.sealOpen();
    for (const resolve of this.sealWaiters.splice(0)) resolve();
  }

  private async sealOpen(): Promise<void> {
    this.sealing = this.handOver();
    await this.sealing;
    this.sealing = undefined;
    for (const resolve of this.sealWaiters.splice(0)) resolve();
  }

  private async handOver(): Promise<void> {
    const segment = this.segment!;
    this.segment = undefined;
    this.sealedTo = segment.last;
    this.lastSealAt = performance.now();
    clearTimeout(this.sealTimer);
    this.sealTimer = undefined;
    await segment.file.close().catch(this.onFailure);
    const { first, last, path, bytes } = segment;
    await this.onSealed({ lane: this.lane, first, last, path, bytes });
  }

  /** After a failed write, the bytes after the last durable block are unknown: truncate them and seal the segment. */
  private async abandonSegment(): Promise<void> {
    const segment = this.segment;
    if (segment === undefined) return;
    if (segment.last < segment.first) {
      this.segment = undefined;
      await segment.file.close().catch(this.onFailure);
      await this.removeUnused(segment.path);
      return;
    }
    // A tail that cannot be truncated is harmless: readers stop at the last intact block.
    await segment.file.truncate(segment.bytes).catch(this.onFailure);
    await this.sealOpen();
  }

  /** Removes an empty file; if that fails, its name is taken and the next segment gets another one. */
  private async removeUnused(path: string): Promise<void> {
    await this.disk.remove(path).catch((error) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      this.skipName();
      this.onFailure(error);
    });
  }

  private skipName(): void {
    this.sealedTo = (this.queue[0]?.first ?? this.nextSeq) - 1;
  }
}

/** A string if all entries are strings: it is built without copying. */
function textOrLines(first: number, entries: readonly EntryJson[]): string | Lines {
  let text = "";
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index]!;
    if (typeof entry !== "string") return new Lines(first, entries);
    text += getLine(first + index, entry);
  }
  return text;
}
