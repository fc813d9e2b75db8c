/** Writes one lane of the journal: group commit into the open segment, sealing by size and age. */

import { join } from "node:path";
import { AppError } from "../lib/errors.ts";
import type { Disk, JournalFile } from "./disk.ts";
import { type EntryText, Lines, lineOf } from "./entry.ts";
import {
  blockLine,
  hashBlock,
  hashSeed,
  type Lane,
  type SealedSegment,
  segmentFileName,
  segmentHeader,
} from "./segment.ts";

/** Nothing of the request was stored; the client may retry. */
export class JournalUnavailableError extends AppError {
  /** Why it may be, in words. */
  static readonly reasons = {
    disk_full: "The disk is almost full; new events are refused.",
    write_failed: "The journal could not be written.",
    overloaded: "Too many events are waiting for the disk.",
    closed: "The journal is closed.",
  } as const;
  readonly code = "journal_unavailable";
  override readonly hint = "Free disk space in the data directory, or see the log for the disk's error.";
  constructor(readonly reason: keyof typeof JournalUnavailableError.reasons) {
    super(JournalUnavailableError.reasons[reason]);
  }
}

export interface LaneSettings {
  /** A segment is sealed once it has this many bytes. */
  segmentBytesMax: number;
  /** A segment is sealed once it has this many entries; a long request is spread over several. */
  segmentEntriesMax: number;
  /** A segment is sealed when its first entry is this old; sooner when none was sealed for so long. */
  sealIntervalMs: number;
  /** How long a group waits for further requests; 0: until the disk is free. */
  flushIntervalMs: number;
  /** Maximum bytes queued for the disk; above it new entries are rejected. */
  queueBytesMax: number;
}

/** One request that waits to be durable. */
interface Request {
  first: number;
  hasFailed: boolean;
  resolve: (first: number) => void;
  reject: (error: Error) => void;
}

/** A run of entries of one request; they are made durable together. */
interface Part {
  lines: string | Lines;
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
  /** Durable ones; 0 as long as not even the header is written. */
  bytes: number;
  hash: bigint;
  openedAt: number;
}

/** Characters of one group at the most: bounds the memory of a write and the time of a sync. */
const groupCharactersMax = 16 * 1024 * 1024;
/** Groups of this size are put together in memory that is kept: larger than nearly all. */
const scratchBytes = 1024 * 1024;
/** UTF-8 of a UTF-16 unit. */
const bytesPerUnitMax = 3;
/** More than a header or a block's line takes. */
const frameBytesMax = 128;
/** After a failed write the disk is left alone for this long. */
const pauseAfterFailureMs = 250;

/** So long the first entry after a quiet time waits for others: a client's requests mostly come together. */
const companyMs = 25;

/** Has one segment open at a time. Numbers of failed entries are not reused. */
export class LaneWriter {
  /** Entries made durable since the start. */
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
  /** They wait for the open segment to be sealed; it is after the group that is being written. */
  private sealWaiters: (() => void)[] = [];
  private scratch: Buffer | undefined;
  /** The numbers up to here are in sealed segments, or belonged to failed entries. */
  private sealedTo: number;

  constructor(
    readonly lane: Lane,
    private readonly folder: string,
    private nextSeq: number,
    private readonly disk: Disk,
    private readonly settings: LaneSettings,
    private readonly onSealed: (segment: SealedSegment) => void | Promise<void>,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.sealedTo = nextSeq - 1;
  }

  /** Sequence number of the newest entry that was given out. */
  get lastSeq(): number {
    return this.nextSeq - 1;
  }

  /** Bytes of the segment that is being written. */
  get openBytes(): number {
    return this.segment?.bytes ?? 0;
  }

  /** Bytes (about) that wait for the disk. */
  get queuedBytes(): number {
    return this.queueCharacters;
  }

  /**
   * Appends entries and resolves with the sequence number of the first once all are on the disk.
   *
   * @throws {JournalUnavailableError} nothing was kept.
   */
  append(entries: readonly EntryText[]): Promise<number> {
    if (this.closed) return Promise.reject(new JournalUnavailableError("closed"));
    if (this.queueCharacters > this.settings.queueBytesMax)
      return Promise.reject(new JournalUnavailableError("overloaded"));
    if (this.pausedUntil !== 0) {
      if (performance.now() < this.pausedUntil)
        return Promise.reject(new JournalUnavailableError("write_failed"));
      this.pausedUntil = 0;
    }
    const first = this.nextSeq;
    this.nextSeq += entries.length;
    return new Promise((resolve, reject) => {
      const request: Request = { first, hasFailed: false, resolve, reject };
      const countMax = this.settings.segmentEntriesMax;
      for (let start = 0; start < entries.length; start += countMax) {
        const count = Math.min(countMax, entries.length - start);
        const lines = textOrLines(first + start, entries.slice(start, start + count));
        this.queue.push({
          lines,
          first: first + start,
          count,
          isLast: start + count === entries.length,
          request,
        });
        this.queueCharacters += lines.length;
      }
      this.running ??= this.run();
    });
  }

  /** Seals the open segment, if there is one, once everything that waits is durable. */
  async seal(): Promise<void> {
    while (this.running !== undefined) await this.running;
    if (this.segment !== undefined) await this.exclusively(this.sealOpen());
  }

  /**
   * Seals the open segment, if it has acknowledged entries, as soon as the group that is being written is on the disk.
   * Resolves when everything that was acknowledged before the call is in sealed segments that were handed over.
   */
  async sealAcknowledged(): Promise<void> {
    await this.sealing;
    const { segment } = this;
    if (segment === undefined || segment.last < segment.first) return;
    if (this.running === undefined) await this.exclusively(this.sealOpen());
    else await new Promise<void>((resolve) => this.sealWaiters.push(resolve));
  }

  /** Rejects new entries, makes the waiting ones durable and seals the open segment. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.sealTimer);
    await this.seal();
  }

  private async run(): Promise<void> {
    if (this.settings.flushIntervalMs > 0) await Bun.sleep(this.settings.flushIntervalMs);
    // Wait one tick, so that all requests that are ready share the first sync.
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
    // A running write looks at the age by itself.
    if (this.running === undefined && this.segment !== undefined) void this.exclusively(this.sealOpen());
  }

  /** Lets new entries wait while something else happens to the open segment. */
  private exclusively(work: Promise<void>): Promise<void> {
    this.running = work.finally(() => {
      this.running = this.queue.length > 0 ? this.run() : undefined;
    });
    return this.running;
  }

  /** Takes the parts that are written together: as many as one segment may get. */
  private takeGroup(): Part[] {
    const group: Part[] = [];
    let characters = 0;
    let count = 0;
    while (this.queue[group.length] !== undefined) {
      const part = this.queue[group.length]!;
      if (group.length > 0 && characters + part.lines.length > groupCharactersMax) break;
      if (group.length > 0 && count + part.count > this.settings.segmentEntriesMax) break;
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
      await this.giveUpSegment();
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

  /** What a group adds to the segment: the header if it is the first, its lines, and the line that ends the block. */
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
      const bytesOf = (lines: string | Lines) =>
        typeof lines === "string" ? Buffer.byteLength(lines) : lines.length;
      return Buffer.allocUnsafeSlow(group.reduce((sum, { lines }) => sum + bytesOf(lines), frames));
    }
    this.scratch ??= Buffer.allocUnsafeSlow(scratchBytes);
    return this.scratch;
  }

  private isSealDue(segment: OpenSegment): boolean {
    if (this.sealWaiters.length > 0) return true;
    const { segmentBytesMax, segmentEntriesMax } = this.settings;
    const { bytes, first, last } = segment;
    if (bytes >= segmentBytesMax || last - first + 1 >= segmentEntriesMax) return true;
    return performance.now() >= this.sealDueAt(segment);
  }

  /** Segments are no more frequent than the interval, and what comes after a quiet time does not wait for it. */
  private sealDueAt({ openedAt }: OpenSegment): number {
    const { sealIntervalMs } = this.settings;
    const soonest = openedAt + Math.min(companyMs, sealIntervalMs);
    return Math.min(openedAt + sealIntervalMs, Math.max(soonest, this.lastSealAt + sealIntervalMs));
  }

  /** A segment begins where the one before it ends, also when a failed write has used up numbers in between. */
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

  /**
   * After a failed write or sync nothing is known of the bytes behind the last durable block: they are cut off, and
   * the segment is not written again.
   */
  private async giveUpSegment(): Promise<void> {
    const segment = this.segment;
    if (segment === undefined) return;
    if (segment.last < segment.first) {
      this.segment = undefined;
      await segment.file.close().catch(this.onFailure);
      await this.removeUnused(segment.path);
      return;
    }
    // A tail that cannot be cut is harmless: readers stop at the last whole block.
    await segment.file.truncate(segment.bytes).catch(this.onFailure);
    await this.sealOpen();
  }

  /** Removes a file that holds nothing; where that fails its name is taken, and the next segment gets another. */
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

/** Text where that will do: it is put together without a copy. */
function textOrLines(first: number, entries: readonly EntryText[]): string | Lines {
  let text = "";
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index]!;
    if (typeof entry !== "string") return new Lines(first, entries);
    text += lineOf(first + index, entry);
  }
  return text;
}
