/**
 * Takes applied journal segments into the archive, one after another, beside the pipeline and never in its way.
 *
 * A segment's file goes only when the archive's is on the disk under its name; a crash in between leaves both, and the
 * next start hands the segment over again. The archive gives way before the disk is so full that events are refused.
 */

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, unlink, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ignoreAbsent } from "../lib/remove-files.ts";
import { ReusedBuffers } from "../lib/reused-buffers.ts";
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
  textOf,
} from "./archive.ts";
import { encodeColumnar } from "./archive-columnar.ts";
import { bytesNeededToAccept, type Disk, reservedBytes, syncFolder, systemDisk } from "./disk.ts";
import { type Lane, lanes, type SealedSegment, scanSegment, truncateSegment } from "./segment.ts";

export interface ArchiveSettings {
  folder: string;
  /** Where a segment goes that could not be read in full. */
  quarantineFolder: string;
  /** 0: nothing is kept. */
  bytesMax: number;
  /** The journal's reserve; so much more than what the journal needs stays free of the archive. */
  reserveBytes: number;
  /** Bytes of the journal that wait to be loaded. */
  waitingBytes?: () => number;
  /** When events were loaded last, as `performance.now()` has it. */
  lastLoadedAt?: () => number;
}

export interface ArchiveHooks {
  /** The journal may forget everything of the lane up to here; the segments' files are gone. */
  onReleased: (lane: Lane, lastSeq: number) => void;
  /** Archived entries went although no backup covers them. */
  onGivenUp: (range: DiscardedRange) => void;
  /** The disk refused; the segments stay in the journal and are tried again. */
  onTrouble: (error: unknown) => void;
}

/** Segments are compressed together up to this size: memory, and the time of one compression. */
const frameBytesMax = 16 * 1024 * 1024;
/** A file smaller than this is written again with what follows it: few files, and little written twice. */
const joinBytesMax = 512 * 1024;
/** When nothing was loaded for so long, files are arranged by columns one after the other. */
const quietMs = 3_000;
/** While events come in, there is a pause after each, so many times as long as it took: a tenth of a processor at the most. */
const restFactor = 10;
/** There is time for it: twice as small as at level 1 in rows, for ten times the work. */
const columnarLevel = 6;

export class SegmentArchive {
  private queue: SealedSegment[] = [];
  private running: Promise<void> | undefined;
  /** Never less than there is: another process may release files. */
  private bytes = 0;
  private warned: Partial<Record<Lane, true>> = {};
  private arrangesFrom = 0;
  /** Nothing was kept since no file was left to be arranged: idle, the folders are not listed again and again. */
  private areColumnar = false;
  /** Somebody waits for what is being written. */
  private waiters = 0;
  /** Files that columns do not make smaller, or that cannot be read. */
  private readonly staying = new Set<string>();
  /** The texts of a frame, once as they were read and once together. */
  private readonly buffers = new ReusedBuffers(2 * frameBytesMax + joinBytesMax);

  constructor(
    private readonly settings: ArchiveSettings,
    private readonly hooks: ArchiveHooks,
    private readonly disk: Disk = systemDisk,
  ) {
    for (const lane of lanes) {
      mkdirSync(this.folderOf(lane), { recursive: true, mode: 0o700 });
      this.clean(lane);
    }
    this.bytes = this.listed().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Takes applied segments, oldest first in each lane; returns at once. */
  keep(segments: readonly SealedSegment[]): void {
    this.queue.push(...segments);
    if (segments.length > 0) this.areColumnar = false;
    // Started in a later turn: `run` ends by clearing `running`, and must not do so before it is set.
    this.running ??= Promise.resolve().then(() => this.run());
  }

  /** Resolves when nothing is being written. */
  async idle(): Promise<void> {
    this.waiters += 1;
    await this.running;
    this.waiters -= 1;
  }

  /**
   * Makes room when the disk is almost full, tries again what failed, and arranges files while nothing else is to be done; call it
   * every few seconds.
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
      this.hooks.onTrouble(error);
    }
    this.buffers.release();
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
    if (this.settings.bytesMax > 0 && !(await this.archiveIfFits(lane, group, size))) {
      this.giveUp(lane, group[0]!.first, group.at(-1)!.last, "disk");
    }
    for (const { path } of group) await unlink(path).catch(ignoreAbsent);
    this.queue.splice(0, group.length);
    this.hooks.onReleased(lane, group.at(-1)!.last);
    if (this.bytes > this.settings.bytesMax) this.bound();
  }

  private async archiveIfFits(lane: Lane, group: readonly SealedSegment[], size: number): Promise<boolean> {
    // Compressed it is smaller; how much is not known yet.
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
    const newest = listArchive(this.settings.folder, lane).at(-1);
    // Archived before a crash that kept the segments' files.
    const fresh = group.filter(({ last }) => last > (newest?.last ?? 0));
    const texts: Buffer[] = [];
    let first: number | undefined;
    for (const segment of fresh) {
      const text = await this.readable(segment);
      if (text === undefined) {
        // Gone before, without being archived: a range must not claim it.
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
    const before = joins ? await readFile(newest.path).catch(ignoreAbsent) : undefined;
    const name = archivedFileName(before === undefined ? first : newest!.first, last);
    await this.write(join(this.folderOf(lane), name), before === undefined ? [frame] : [before, frame]);
    this.bytes += frame.length;
    if (before !== undefined) await unlink(newest!.path).catch(ignoreAbsent);
  }

  /** @returns whether there was one to be arranged, and time for it. */
  private async arrangeNext(): Promise<boolean> {
    const { waitingBytes, lastLoadedAt } = this.settings;
    const isWanted = this.waiters > 0 || this.queue.length > 0 || (waitingBytes?.() ?? 0) > 0;
    if (this.areColumnar || isWanted) return false;
    const started = performance.now();
    if (started - (lastLoadedAt?.() ?? -quietMs) < quietMs && started < this.arrangesFrom) return false;
    const next = lanes
      .flatMap((lane) => {
        const files = listArchive(this.settings.folder, lane);
        return files.filter((file, n) => n < files.length - 1 || !isShort(file));
      })
      .find(({ path }) => !isColumnar(path) && !this.staying.has(path));
    this.areColumnar = next === undefined;
    if (next === undefined) return false;
    this.staying.add(next.path);
    await this.arrange(next);
    const now = performance.now();
    this.arrangesFrom = now + restFactor * (now - started);
    return true;
  }

  private async arrange({ path, bytes }: ArchivedSegment): Promise<void> {
    const read = await textOf(path).catch(() => undefined);
    // A damaged file stays as it is: arranged, what is missing would no longer show.
    if (read === undefined || !read.isWhole) return;
    const pieces: Buffer[] = [];
    for (const piece of encodeColumnar(read.text)) {
      pieces.push(piece);
      await new Promise(setImmediate);
    }
    const packed = await zstdCompressed(Buffer.concat(pieces), columnarLevel);
    const stats = await stat(path).catch(ignoreAbsent);
    // A backup may cover it meanwhile.
    if (packed.length >= bytes || stats === undefined) return;
    const arranged = columnarPath(path);
    await this.write(arranged, [packed]);
    // The oldest ones go first when there is no room.
    await utimes(arranged, stats.atime, stats.mtime);
    await unlink(path).catch(ignoreAbsent);
    this.staying.delete(path);
    this.bytes -= bytes - packed.length;
  }

  private together(parts: readonly Buffer[]): Buffer {
    const whole = this.buffers.take(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) at += part.copy(whole, at);
    return whole;
  }

  /** The text of a segment as far as it can be read; a damaged one is kept in the quarantine, too. */
  private async readable(segment: SealedSegment): Promise<Buffer | undefined> {
    const { lane, last, path } = segment;
    const bytes = await this.buffers.readFile(path).catch(ignoreAbsent);
    if (bytes === undefined) return undefined;
    const scan = scanSegment(bytes);
    if (scan !== undefined && (!scan.torn || scan.last >= last)) return bytes.subarray(0, scan.goodBytes);
    const { quarantineFolder } = this.settings;
    const mended = truncateSegment(bytes, segment);
    if (mended.lost.length === 0) return mended.bytes;
    await mkdir(quarantineFolder, { recursive: true, mode: 0o700 });
    await rename(path, join(quarantineFolder, damagedFileName(lane, basename(path), mended.lost)));
    return mended.bytes;
  }

  private async write(path: string, parts: readonly Buffer[]): Promise<void> {
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

  /** Deletes the oldest files while the disk is short. @returns whether so many bytes may be written. */
  private async freeSpace(bytes: number): Promise<boolean> {
    const isShort = async () => {
      const { freeBytes, totalBytes } = await this.disk.space(this.settings.folder);
      const reserve = reservedBytes(this.settings.reserveBytes, totalBytes);
      const accepting = bytesNeededToAccept(reserve, {
        unloaded: this.settings.waitingBytes?.() ?? 0,
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

  /** Deletes the oldest files beyond the allowed size. */
  private bound(): void {
    const listed = this.listed();
    this.bytes = listed.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const oldest of listed) {
      if (this.bytes <= this.settings.bytesMax) return;
      this.drop(oldest, "size");
    }
  }

  private drop({ lane, first, last, bytes, path }: ArchivedSegment, reason: DiscardedRange["reason"]): void {
    // Said before it is done: a crash in between must not hide it.
    if (this.settings.bytesMax > 0) this.giveUp(lane, first, last, reason);
    rmSync(path, { force: true });
    this.bytes -= bytes;
  }

  private giveUp(lane: Lane, first: number, last: number, reason: DiscardedRange["reason"]): void {
    const range = { lane, first, last, reason, at: new Date().toISOString() };
    try {
      recordDiscarded(this.settings.folder, range);
    } catch {
      // Not even that fits on the disk; making room goes on, and the gap in the names tells.
    }
    if (this.warned[lane]) return;
    this.warned[lane] = true;
    this.hooks.onGivenUp(range);
  }

  /** All files, the oldest first. */
  private listed(): ArchivedSegment[] {
    const withTime = lanes
      .flatMap((lane) => listArchive(this.settings.folder, lane))
      .map((file) => ({ file, at: statSync(file.path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
    return withTime.sort((a, b) => a.at - b.at || a.file.first - b.file.first).map(({ file }) => file);
  }

  /** Removes what a crash left: unfinished files, and those that a longer one replaced. */
  private clean(lane: Lane): void {
    const listed = new Set(listArchive(this.settings.folder, lane).map(({ path }) => basename(path)));
    for (const name of readdirSync(this.folderOf(lane))) {
      if (!listed.has(name)) rmSync(join(this.folderOf(lane), name), { force: true });
    }
  }

  private folderOf(lane: Lane): string {
    return join(this.settings.folder, lane);
  }
}

/** Whether what follows is written into the same file. */
function isShort({ path, bytes }: ArchivedSegment): boolean {
  return bytes < joinBytesMax && !isColumnar(path);
}

/** `realtime-0000000000000001.ndjson.lost-3-9.damaged`: of a segment whose entries 3 to 9 cannot all be read. */
function damagedFileName(lane: Lane, name: string, lost: readonly { first: number; last: number }[]): string {
  return `${lane}-${name}.lost-${lost[0]!.first}-${lost.at(-1)!.last}.damaged`;
}
