/**
 * Takes batches of the journal in order: duplicates, identity, events.
 *
 * Realtime batches go first whenever there are any; history stops for them, so that a year of it never delays a live event
 * by more than one portion. Each store keeps its own cursor in its own transaction: after
 * a crash a batch may be read again, but nothing is applied twice and nothing is left out.
 */

import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type EventStore, LoadGivenUp } from "../../events/store.ts";
import { loadableBytes, roomToCheckpoint, roomToLoad } from "../../journal/disk.ts";
import type { Entry, JournalItem } from "../../journal/entry.ts";
import { decodeEntries, writtenLine } from "../../journal/entry-reader.ts";
import type { JournalBatch } from "../../journal/reader.ts";
import type { Lane } from "../../journal/segment.ts";
import type { IdentityStore } from "../../people/batch.ts";
import type { SpikeSignal } from "../../people/spikes/detector.ts";
import type { ProjectUsage } from "./flag-usage.ts";
import { Step, type StoredStep } from "./step.ts";

/** Takes batches that both stores have for good; from then on it alone deals with their place in the journal. */
export interface BatchKeeper<Batch extends JournalBatch> {
  /** Returns at once. */
  keep(batches: readonly Batch[]): void;
  /** Resolves when all batches are dealt with, or have to be tried again later. */
  idle(): Promise<void>;
}

export interface PipelineSettings {
  /** Batches taken together hold at most this many bytes (one is always taken). */
  batchBytesMax: number;
  /** Batches of this size together are taken apart at once: their properties, as values, take many times as much. */
  portionBytes: number;
  /** Loaded bytes after which the event store is asked to write its file. */
  checkpointBytes: number;
  checkpointIntervalMs: number;
  /** Where refused lines go. */
  workFolder: string;
  /** The volume of the stores; left out: there is always room. */
  space?: () => Promise<{ freeBytes: number; totalBytes: number }>;
}

export interface PipelineHooks {
  onApplied: (applied: AppliedBatch) => void;
  /** Which flags were called or viewed, per project that had events. */
  onFlagUsage: (usage: ProjectUsage[]) => void;
  /** What was read, for those who only want to know; once more after a crash. */
  onItems?: (items: readonly JournalItem[]) => void;
  /** Spikes that began or ended. */
  onSpikes: (spikes: SpikeSignal[]) => void;
  /** Acknowledged entries cannot be read; an operator must know. */
  onDamage: (error: Error) => void;
  /** The pipeline cannot go on in this process. */
  onFatal: (error: unknown) => void;
  /** Batches wait for room on the disk, or do not any more. */
  onPaused?: (pause: Pause | null) => void;
}

/** There is not enough room to load anything. */
export interface Pause {
  freeBytes: number;
  neededBytes: number;
}

export interface AppliedBatch {
  lane: Lane;
  lastSeq: number;
  events: number;
  duplicates: number;
  /** Events that ingestion left out. */
  dropped: number;
  ms: number;
}

/** Without the last one the next start has more to read; nothing is lost. */
const lastCheckpointAttempts = 20;
/** How often a pause looks for room. */
const pauseMs = 1_000;
/** A part of a batch is not smaller. */
const partBytesMin = 256 * 1024;
/** The event store's log is at most this part of the volume, lest there be no room to write it into the file. */
const logShare = 1 / 64;

export class Pipeline<Batch extends JournalBatch = JournalBatch> {
  private readonly waiting: Record<Lane, Batch[]> = { realtime: [], historical: [] };
  private readonly applied: Batch[] = [];
  private running: Promise<void> | undefined;
  private bytesSinceCheckpoint = 0;
  private lastCheckpointAt = performance.now();
  private stopped = false;
  private logBytesMax: number;
  private pause: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly identity: IdentityStore,
    private readonly events: EventStore,
    private readonly keeper: BatchKeeper<Batch>,
    private readonly settings: PipelineSettings,
    private readonly hooks: PipelineHooks,
  ) {
    this.logBytesMax = settings.checkpointBytes;
  }

  /** Hands over batches of one or both lanes, oldest first. */
  offer(batches: readonly Batch[]): void {
    for (const batch of batches) {
      if (batch.last <= this.cursor(batch.lane)) this.noteApplied(batch);
      else this.waiting[batch.lane].push(batch);
    }
    if (this.stopped || this.running !== undefined || this.pause !== undefined) return;
    // Started in a later turn: `run` ends by clearing `running`, and must not do so before it is set.
    this.running = Promise.resolve().then(() => this.run());
  }

  /** The last sequence number of a lane that both stores have. */
  cursor(lane: Lane): number {
    return Math.min(this.identity.cursor(lane), this.events.cursor(lane));
  }

  /** Batches and bytes that wait, per lane. */
  lag(): Record<Lane, { segments: number; bytes: number; entries: number }> {
    const of = (lane: Lane) => ({
      segments: this.waiting[lane].length,
      bytes: this.waiting[lane].reduce((sum, batch) => sum + batch.bytes, 0),
      entries: this.waiting[lane].reduce((sum, batch) => sum + batch.last - batch.first + 1, 0),
    });
    return { realtime: of("realtime"), historical: of("historical") };
  }

  /** Resolves when all that was offered is applied. */
  async settle(): Promise<void> {
    while (this.running !== undefined) await this.running;
  }

  /** Applies what waits, until all is done or the time is over; then writes the event store's file. */
  async drain(timeoutMs: number): Promise<void> {
    const stop = setTimeout(() => {
      this.stopped = true;
      this.events.giveUp();
    }, timeoutMs);
    await this.settle();
    clearTimeout(stop);
    clearTimeout(this.pause);
    this.stopped = true;
    if (!(await this.hasRoomToCheckpoint())) return;
    for (let attempt = 0; attempt < lastCheckpointAttempts && !(await this.checkpoint()); attempt++) {
      await Bun.sleep(50);
    }
    await this.keeper.idle();
  }

  /** Writes the event store's file when that is due and nothing else happens; call it every few seconds. */
  tidy(): void {
    if (this.running !== undefined || this.stopped || !this.isCheckpointDue()) return;
    this.running = this.checkpointInRoom().then(
      () => {
        this.running = undefined;
        this.offer([]);
      },
      (error) => {
        this.running = undefined;
        this.hooks.onFatal(error);
      },
    );
  }

  private async run(): Promise<void> {
    try {
      let isShort = false;
      while (!this.stopped) {
        const bytesMax = await this.loadableBytes();
        isShort = bytesMax < partBytesMin && this.isWaiting;
        if (isShort) break;
        const next = this.take(bytesMax);
        if (next === undefined) break;
        await this.apply(next, bytesMax);
        if (this.isCheckpointDue()) await this.checkpointInRoom();
      }
      if (isShort) await this.rest();
      else this.hooks.onPaused?.(null);
      this.running = undefined;
    } catch (error) {
      const wasStopped = this.stopped;
      this.stopped = true;
      this.running = undefined;
      if (!(wasStopped && error instanceof LoadGivenUp)) this.hooks.onFatal(error);
    }
  }

  private get isWaiting(): boolean {
    return this.waiting.realtime.length + this.waiting.historical.length > 0;
  }

  /**
   * How many bytes of batches there is room for on the disk. Where it is short, what was loaded is written into the event
   * store's file first, and its place in the journal becomes free.
   */
  private async loadableBytes(): Promise<number> {
    const { space, batchBytesMax } = this.settings;
    if (space === undefined) return Number.POSITIVE_INFINITY;
    const { freeBytes, totalBytes } = await space();
    this.logBytesMax = Math.min(this.settings.checkpointBytes, totalBytes * logShare);
    const bytes = loadableBytes(freeBytes);
    if (bytes >= batchBytesMax) return Number.POSITIVE_INFINITY;
    if (this.bytesSinceCheckpoint === 0 || !(await this.checkpointInRoom())) return bytes;
    await this.keeper.idle();
    return loadableBytes((await space()).freeBytes);
  }

  /** Looks again in a while: queries are answered meanwhile. */
  private async rest(): Promise<void> {
    const { freeBytes } = await this.settings.space!();
    this.hooks.onPaused?.({ freeBytes, neededBytes: Math.ceil(roomToLoad(partBytesMin)) });
    this.pause = setTimeout(() => {
      this.pause = undefined;
      this.offer([]);
    }, pauseMs);
  }

  /** @param bytesMax of batches together; one is always taken. */
  private take(bytesMax: number): Batch[] | undefined {
    const { realtime, historical } = this.waiting;
    const unfinished = this.events.unfinished();
    if (unfinished !== undefined) return upTo(this.waiting[unfinished.lane], unfinished.last);
    const next = realtime.length > 0 ? realtime : historical;
    return next.length > 0 ? firstOf(next, Math.min(bytesMax, this.settings.batchBytesMax)) : undefined;
  }

  /**
   * Applies batches as one step: each store takes them in one transaction, the persons first.
   *
   * @param bytesMax when one batch is larger than that, only its first entries are applied, and it goes on waiting.
   */
  private async apply(batches: Batch[], bytesMax: number): Promise<void> {
    const started = performance.now();
    const lane = batches[0]!.lane;
    const step = await Step.begin(this.identity, this.events, lane, this.hooks.onItems);
    let stored: StoredStep;
    let whole = 0;
    try {
      const isUnfinished = this.events.unfinished() !== undefined;
      const isEnough = () => !isUnfinished && (step.isFull || (whole > 0 && this.isOvertaken(lane)));
      while (whole < batches.length && !isEnough()) {
        const portion = portionAt(batches, whole, this.settings.portionBytes);
        const isWhole = await this.addTo(step, portion, bytesMax);
        if (!isWhole) break;
        whole += portion.length;
      }
      stored = await step.store();
    } catch (error) {
      step.abandon();
      throw error;
    }
    for (const batch of batches.slice(0, whole)) this.noteApplied(batch);
    this.waiting[lane].unshift(...batches.slice(whole));
    if (whole === 0) this.bytesSinceCheckpoint += bytesMax;
    const { spikes, flagUsage, ...counts } = stored;
    if (spikes.length > 0) this.hooks.onSpikes(spikes);
    this.hooks.onFlagUsage(flagUsage);
    const ms = Math.round(performance.now() - started);
    this.hooks.onApplied({ lane, lastSeq: step.last, ...counts, ms });
  }

  /** History lets live events go first, between two portions. */
  private isOvertaken(lane: Lane): boolean {
    return lane === "historical" && this.waiting.realtime.length > 0;
  }

  /** Hands the entries of batches over to a step. @returns false when they were too many, and only the first were taken */
  private async addTo(step: Step, batches: readonly Batch[], bytesMax: number): Promise<boolean> {
    const all = await this.read(batches);
    const end = batches.at(-1)!.last;
    const unfinished = this.events.unfinished();
    if (unfinished !== undefined) {
      const { last } = unfinished;
      const begun = all.filter(({ seq }) => seq <= last);
      await this.handOver(step, begun, Math.min(end, last));
      return end <= last;
    }
    const bytes = bytesOf(batches);
    const entries = bytes <= bytesMax ? all : firstPart(all, bytes, bytesMax);
    const isWhole = entries.length === all.length;
    await this.handOver(step, entries, isWhole ? end : entries.at(-1)!.seq);
    return isWhole;
  }

  private async handOver(step: Step, entries: readonly Entry[], last: number): Promise<void> {
    const refused = await step.take(entries, last);
    if (refused.length > 0)
      await this.keepRefusedLines(
        refused.map(writtenLine),
        refused[0]!.historical ? "historical" : "realtime",
      );
  }

  /** The entries that at least one of the stores lacks. */
  private async read(batches: readonly Batch[]): Promise<Entry[]> {
    const lane = batches[0]!.lane;
    const after = this.cursor(lane);
    const entries: Entry[] = [];
    for (const text of await Promise.all(batches.map((batch) => batch.text()))) {
      if (text.damage !== undefined) this.hooks.onDamage(text.damage);
      const decoded = decodeEntries(text.bytes, after);
      for (const entry of decoded.entries) entries.push(entry);
      if (decoded.refused.length > 0) await this.keepRefusedLines(decoded.refused, lane);
    }
    return entries;
  }

  /** Both stores have a batch; its place in the journal is free after the next checkpoint. */
  private noteApplied(batch: Batch): void {
    this.applied.push(batch);
    this.bytesSinceCheckpoint += batch.bytes;
  }

  /** A line that is no entry is kept in a file, and said, instead of holding up all events behind it. */
  private async keepRefusedLines(lines: readonly string[], lane: Lane): Promise<void> {
    const { workFolder } = this.settings;
    const path = join(workFolder, `refused-${lane}.ndjson`);
    await mkdir(workFolder, { recursive: true, mode: 0o700 });
    await appendFile(path, lines.map((line) => `${line}\n`).join(""), { mode: 0o600, flush: true });
    this.hooks.onDamage(
      new Error(`${lines.length} lines of the journal cannot be read; they are in ${path}.`),
    );
  }

  private async hasRoomToCheckpoint(): Promise<boolean> {
    const { space } = this.settings;
    return space === undefined || (await space()).freeBytes >= roomToCheckpoint(this.bytesSinceCheckpoint);
  }

  /** Without room DuckDB would close the event store. @returns false when it has to be tried again. */
  private async checkpointInRoom(): Promise<boolean> {
    return (await this.hasRoomToCheckpoint()) && (await this.checkpoint());
  }

  private isCheckpointDue(): boolean {
    if (this.bytesSinceCheckpoint === 0) return false;
    if (this.bytesSinceCheckpoint >= this.logBytesMax) return true;
    return performance.now() - this.lastCheckpointAt >= this.settings.checkpointIntervalMs;
  }

  /** @returns false when it has to be tried again. */
  private async checkpoint(): Promise<boolean> {
    if (this.bytesSinceCheckpoint > 0 && !(await this.events.checkpoint())) return false;
    this.bytesSinceCheckpoint = 0;
    this.lastCheckpointAt = performance.now();
    this.keeper.keep(this.applied.splice(0));
    return true;
  }
}

/** The first entries of those that take so many bytes together, about as many as take `bytesMax`; at least one. */
function firstPart(entries: readonly Entry[], bytes: number, bytesMax: number): readonly Entry[] {
  return entries.slice(0, Math.max(1, Math.floor((entries.length * bytesMax) / bytes)));
}

/** Takes the batches out that have everything up to a number, if they are all there. */
function upTo<Batch extends JournalBatch>(waiting: Batch[], last: number): Batch[] | undefined {
  const count = waiting.findIndex((batch) => batch.last >= last) + 1;
  return count === 0 ? undefined : waiting.splice(0, count);
}

/** Takes the first ones out, as many as fit. */
function firstOf<Batch extends JournalBatch>(waiting: Batch[], bytesMax: number): Batch[] {
  let count = 1;
  let bytes = waiting[0]!.bytes;
  while (count < waiting.length && bytes + waiting[count]!.bytes <= bytesMax) {
    bytes += waiting[count]!.bytes;
    count += 1;
  }
  return waiting.splice(0, count);
}

/** The batches that are read together: as many as fit, or one. */
function portionAt<Batch extends JournalBatch>(
  batches: readonly Batch[],
  start: number,
  bytesMax: number,
): readonly Batch[] {
  let end = start + 1;
  while (end < batches.length && bytesOf(batches.slice(start, end + 1)) <= bytesMax) end += 1;
  return batches.slice(start, end);
}

function bytesOf(batches: readonly JournalBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.bytes, 0);
}
