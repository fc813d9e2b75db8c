/**
 * Archives applied journal segments in the background, without delaying the pipeline. A segment is deleted only when
 * its archive file is durable; after a crash in between, the next start archives it again. The archive shrinks before
 * the disk is full enough to reject events.
 */

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, unlink, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BufferPool } from "../lib/buffer-pool.ts";
import { ignoreNotFound } from "../lib/remove-files.ts";
import { zstdCompressed } from "../lib/zstd.ts";
import {
  type ArchivedSegment,
  archivedFileName,
  columnarPath,
  type DiscardedRange,
  frameEnd,
  isColumnar,
  listArchive,
  recordDiscarded,
} from "./archive.ts";
import { type ColumnarConverter, ColumnarThread, packColumnar } from "./columnar-converter.ts";
import { bytesNeededToAccept, type Disk, reservedBytes, syncFolder, systemDisk } from "./disk.ts";
import { type Lane, lanes, type SealedSegment, scanSegment, truncateSegment } from "./segment.ts";

export interface ArchiveOptions {
  folder: string;
  /** Folder for segments that are not fully readable. */
  quarantineFolder: string;
  /** 0 disables the archive. */
  bytesMax: number;
  /** The journal's reserve; the archive leaves it free in addition to what the journal needs. */
  reserveBytes: number;
  /** Journal bytes that are not loaded yet. */
  waitingBytes?: () => number;
  /** Time of the last load, by `performance.now()`. */
  lastLoadedAt?: () => number;
  /** Whether a thread converts files to columns, also while events are loaded. Default: no. */
  hasThread?: boolean;
}

export interface ArchiveCallbacks {
  /** The lane is archived up to here and its segment files are deleted. */
  onReleased: (lane: Lane, lastSeq: number) => void;
  /** Archived entries were discarded before a backup covered them. */
  onGivenUp: (range: DiscardedRange) => void;
  /** A write failed; the segments stay in the journal and are retried. */
  onError: (error: unknown) => void;
}

/** Maximum segment bytes per frame: limits memory and the duration of a compression. */
const frameBytesMax = 16 * 1024 * 1024;
/** Smaller files are rewritten together with the next segments: few files, little rewriting. */
const joinBytesMax = 512 * 1024;
/** Idle time after which files are rewritten in columnar form, one by one. */
const quietMs = 3_000;
/** While events arrive, pause after each file for this multiple of its duration: at most a tenth of a CPU. */
const restFactor = 10;
/** The same with a thread: at most half a CPU. */
const threadRestFactor = 1;

export class SegmentArchive {
  private queue: SealedSegment[] = [];
  private running: Promise<void> | undefined;
  /** Upper bound: another process may delete files. */
  private bytes = 0;
  private warned: Partial<Record<Lane, true>> = {};
  private arrangesFrom = 0;
  /** All files are columnar and none was added: avoids listing the folders when idle. */
  private areColumnar = false;
  /** Number of callers that wait for the current write. */
  private waiters = 0;
  /** Paths that were tried but stay in rows: not smaller as columns, or unreadable. */
  private readonly staying = new Set<string>();
  /** The texts of a frame, as read and joined. */
  private readonly buffers = new BufferPool(2 * frameBytesMax + joinBytesMax);
  private readonly converter: ColumnarConverter;

  constructor(
    private readonly options: ArchiveOptions,
    private readonly callbacks: ArchiveCallbacks,
    private readonly disk: Disk = systemDisk,
  ) {
    this.converter = options.hasThread ? new ColumnarThread() : { pack: packColumnar, rest: () => undefined };
    for (const lane of lanes) {
      mkdirSync(this.getFolder(lane), { recursive: true, mode: 0o700 });
      this.clean(lane);
    }
    this.bytes = this.listed().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Queues applied segments, oldest first in each lane; returns immediately. */
  keep(segments: readonly SealedSegment[]): void {
    this.queue.push(...segments);
    if (segments.length > 0) this.areColumnar = false;
    // Started in a later tick: `run` ends by clearing `running`, and must not do so before it is set.
    this.running ??= Promise.resolve().then(() => this.run());
  }

  /** Resolves when no write is in progress. */
  async idle(): Promise<void> {
    this.waiters += 1;
    await this.running;
    this.waiters -= 1;
  }

  /**
   * Frees disk space when the disk is almost full, retries failed writes and rewrites files in columnar form when idle.
   * Call it every few seconds.
   */
  async tidy(): Promise<void> {
    this.keep([]);
    await this.running;
  }

  private async run(): Promise<void> {
    try {
      await this.freeSpace(0);
      do {
        while (this.queue.length > 0) await this.takeGroup();
      } while ((await this.arrangeNext()) || this.queue.length > 0);
    } catch (error) {
      this.callbacks.onError(error);
    }
    this.buffers.release();
    this.converter.rest();
    this.running = undefined;
  }

  /** Compresses the oldest segments of one lane into one frame. */
  private async takeGroup(): Promise<void> {
    const { lane } = this.queue[0]!;
    const group: SealedSegment[] = [];
    let size = 0;
    for (const segment of this.queue) {
      if (segment.lane !== lane) break;
      if (group.length > 0 && size + segment.bytes > frameBytesMax) break;
      group.push(segment);
      size += segment.bytes;
    }
    if (this.options.bytesMax > 0 && !(await this.archiveIfFits(lane, group, size))) {
      this.cancel(lane, group[0]!.first, group.at(-1)!.last, "disk");
    }
    for (const { path } of group) await unlink(path).catch(ignoreNotFound);
    this.queue.splice(0, group.length);
    this.callbacks.onReleased(lane, group.at(-1)!.last);
    if (this.bytes > this.options.bytesMax) this.bound();
  }

  private async archiveIfFits(lane: Lane, group: readonly SealedSegment[], size: number): Promise<boolean> {
    // Assume a compression ratio of at least 4: the actual size is unknown.
    while (await this.freeSpace(size / 4)) {
      try {
        await this.archive(lane, group);
        return true;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        const oldest = this.listed()[0];
        if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
        if (oldest === undefined) return false;
        this.drop(oldest, "disk");
      }
    }
    return false;
  }

  private async archive(lane: Lane, group: readonly SealedSegment[]): Promise<void> {
    this.buffers.reuse();
    const newest = listArchive(this.options.folder, lane).at(-1);
    // The others were archived before a crash that left their files.
    const fresh = group.filter(({ last }) => last > (newest?.last ?? 0));
    const texts: Buffer[] = [];
    let first: number | undefined;
    for (const segment of fresh) {
      const text = await this.readable(segment);
      if (text === undefined) {
        // Deleted earlier without being archived: a range must not include it.
        texts.length = 0;
        first = undefined;
        continue;
      }
      texts.push(text);
      first ??= segment.first;
    }
    if (first === undefined) return;
    const last = fresh.at(-1)!.last;
    const frame = await zstdCompressed(this.together([...texts, Buffer.from(frameEnd(last))]));
    const joins = newest !== undefined && newest.last + 1 === first && isShort(newest);
    const before = joins ? await readFile(newest.path).catch(ignoreNotFound) : undefined;
    const name = archivedFileName(before === undefined ? first : newest!.first, last);
    await this.write(join(this.getFolder(lane), name), before === undefined ? [frame] : [before, frame]);
    this.bytes += frame.length;
    if (before !== undefined) await unlink(newest!.path).catch(ignoreNotFound);
  }

  /** @returns whether a file was processed */
  private async arrangeNext(): Promise<boolean> {
    const { waitingBytes, lastLoadedAt, hasThread } = this.options;
    const isLoading = hasThread !== true && (waitingBytes?.() ?? 0) > 0;
    if (this.areColumnar || isLoading || this.waiters > 0 || this.queue.length > 0) return false;
    const started = performance.now();
    if (started - (lastLoadedAt?.() ?? -quietMs) < quietMs && started < this.arrangesFrom) return false;
    const next = lanes
      .flatMap((lane) => {
        const files = listArchive(this.options.folder, lane);
        return files.filter((file, n) => n < files.length - 1 || !isShort(file));
      })
      .find(({ path }) => !isColumnar(path) && !this.staying.has(path));
    this.areColumnar = next === undefined;
    if (next === undefined) return false;
    this.staying.add(next.path);
    await this.arrange(next);
    const now = performance.now();
    this.arrangesFrom = now + (hasThread ? threadRestFactor : restFactor) * (now - started);
    return true;
  }

  private async arrange({ path, bytes }: ArchivedSegment): Promise<void> {
    const packed = await this.converter.pack(path);
    if (packed === undefined) return;
    const stats = await stat(path).catch(ignoreNotFound);
    // The file may have been pruned after a backup.
    if (packed.length >= bytes || stats === undefined) return;
    const columnar = columnarPath(path);
    await this.write(columnar, [packed]);
    // Keep the times: the oldest files are deleted first when space is short.
    await utimes(columnar, stats.atime, stats.mtime);
    await unlink(path).catch(ignoreNotFound);
    this.staying.delete(path);
    this.bytes -= bytes - packed.length;
  }

  private together(parts: readonly Buffer[]): Buffer {
    const whole = this.buffers.take(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) at += part.copy(whole, at);
    return whole;
  }

  /** The readable text of a segment; a corrupt segment is also quarantined. */
  private async readable(segment: SealedSegment): Promise<Buffer | undefined> {
    const { lane, last, path } = segment;
    const bytes = await this.buffers.readFile(path).catch(ignoreNotFound);
    if (bytes === undefined) return undefined;
    const scan = scanSegment(bytes);
    if (scan !== undefined && (!scan.torn || scan.last >= last)) return bytes.subarray(0, scan.goodBytes);
    const { quarantineFolder } = this.options;
    const repaired = truncateSegment(bytes, segment);
    if (repaired.lost.length === 0) return repaired.bytes;
    await mkdir(quarantineFolder, { recursive: true, mode: 0o700 });
    await rename(path, join(quarantineFolder, corruptFileName(lane, basename(path), repaired.lost)));
    return repaired.bytes;
  }

  private async write(path: string, parts: readonly Uint8Array[]): Promise<void> {
    const temporary = `${path}.tmp`;
    try {
      const file = await open(temporary, "w", 0o600);
      try {
        for (const part of parts) await file.writeFile(part);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      await syncFolder(dirname(path));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /** Deletes the oldest files while disk space is short. @returns whether `bytes` may be written */
  private async freeSpace(bytes: number): Promise<boolean> {
    const isShort = async () => {
      const { freeBytes, totalBytes } = await this.disk.space(this.options.folder);
      const reserve = reservedBytes(this.options.reserveBytes, totalBytes);
      const accepting = bytesNeededToAccept(reserve, {
        unloaded: this.options.waitingBytes?.() ?? 0,
        unwritten: 0,
      });
      return freeBytes - bytes < reserve + accepting;
    };
    while (await isShort()) {
      const oldest = this.listed()[0];
      if (oldest === undefined) return false;
      this.drop(oldest, "disk");
    }
    return true;
  }

  /** Deletes the oldest files above the maximum size. */
  private bound(): void {
    const listed = this.listed();
    this.bytes = listed.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const oldest of listed) {
      if (this.bytes <= this.options.bytesMax) return;
      this.drop(oldest, "size");
    }
  }

  private drop({ lane, first, last, bytes, path }: ArchivedSegment, reason: DiscardedRange["reason"]): void {
    // Recorded first: a crash in between must not hide the loss.
    if (this.options.bytesMax > 0) this.cancel(lane, first, last, reason);
    rmSync(path, { force: true });
    this.bytes -= bytes;
  }

  private cancel(lane: Lane, first: number, last: number, reason: DiscardedRange["reason"]): void {
    const range = { lane, first, last, reason, at: new Date().toISOString() };
    try {
      recordDiscarded(this.options.folder, range);
    } catch {
      // The record does not fit on the disk. Continue: the gap in the file names shows the loss.
    }
    if (this.warned[lane]) return;
    this.warned[lane] = true;
    this.callbacks.onGivenUp(range);
  }

  /** All files, oldest first. */
  private listed(): ArchivedSegment[] {
    const withTime = lanes
      .flatMap((lane) => listArchive(this.options.folder, lane))
      .map((file) => ({ file, at: statSync(file.path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
    return withTime.sort((a, b) => a.at - b.at || a.file.first - b.file.first).map(({ file }) => file);
  }

  /** Removes leftovers of a crash: unfinished files, and files replaced by a longer one. */
  private clean(lane: Lane): void {
    const listed = new Set(listArchive(this.options.folder, lane).map(({ path }) => basename(path)));
    for (const name of readdirSync(this.getFolder(lane))) {
      if (!listed.has(name)) rmSync(join(this.getFolder(lane), name), { force: true });
    }
  }

  private getFolder(lane: Lane): string {
    return join(this.options.folder, lane);
  }
}

/** Whether the next segments are appended to this file. */
function isShort({ path, bytes }: ArchivedSegment): boolean {
  return bytes < joinBytesMax && !isColumnar(path);
}

/** `realtime-0000000000000001.ndjson.lost-3-9.damaged`: entries 3 to 9 cannot all be read. */
function corruptFileName(lane: Lane, name: string, lost: readonly { first: number; last: number }[]): string {
  return `${lane}-${name}.lost-${lost[0]!.first}-${lost.at(-1)!.last}.damaged`;
}
