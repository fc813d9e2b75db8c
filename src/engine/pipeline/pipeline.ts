/**
 * Takes batches of the journal in order: duplicates, identity, events.
 *
 * Realtime batches go first whenever there are any; history stops for them, so that a year of it never delays a live event
 * by more than one portion. Each store keeps its own cursor in its own transaction: after
 * a crash a batch may be read again, but nothing is applied twice and nothing is left out.
 */

import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type EventStore, LoadGivenUp, StagingFailed } from "../../events/store.ts";
import { bytesNeededToCheckpoint, bytesNeededToLoad, loadableBytes } from "../../journal/disk.ts";
import { type Entry, type JournalItem, seqOf } from "../../journal/entry.ts";
import { PropertyReader } from "../../journal/entry-properties.ts";
import { decodeEntries, writtenLine } from "../../journal/entry-reader.ts";
import type { JournalBatch } from "../../journal/reader.ts";
import type { Lane } from "../../journal/segment.ts";
import type { StepBytes } from "../../lib/memory-budget.ts";
import { ReusedBuffers } from "../../lib/reused-buffers.ts";
import type { IdentityStore } from "../../people/batch.ts";
import type { SpikeSignal } from "../../people/spikes/detector.ts";
import type { ProjectUsage } from "./flag-usage.ts";
import { Step, type StoredStep } from "./step.ts";
import { bytesOf, firstPart, type LaneLag, portionAt, WaitingBatches } from "./waiting-batches.ts";

/** Takes batches that both stores have for good; from then on it alone deals with their place in the journal. */
export interface BatchKeeper<Batch extends JournalBatch> {
  /** Returns at once. */
  keep(batches: readonly Batch[]): void;
  /** Resolves when all batches are dealt with, or have to be tried again later. */
  idle(): Promise<void>;
}

export interface PipelineSettings {
  /** Batches of a step have at most so many bytes together (one is always taken). */
  stepBytes: StepBytes;
  /** Batches of this size together are taken apart at once: their properties, as values, take many times as much. */
  portionBytes: number;
  /** Loaded bytes after which the event store is asked to write its file. */
  checkpointBytes: number;
  checkpointIntervalMs: number;
  /** How long a large step of history waits for more. Those who send it without a pause seal segments more often. */
  bulkPauseMs: number;
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

/** Without the last one the next start has more to read. */
const lastCheckpointAttempts = 20;
/** How often a pause looks for room. */
const pauseMs = 1_000;
/** A part of a batch is not smaller. */
const partBytesMin = 256 * 1024;
/** Of a lane, taken as one step: more that comes meanwhile becomes part of it, up to what the event store loads at once. */
const bulkBytesMin = 4 * 1024 * 1024;
/** A step takes nothing more after so long, so that it can be read. */
const bulkMsMax = 5_000;
/** The event store's log is at most this part of the volume, lest there be no room to write it into the file. */
const logShare = 1 / 64;

/**
 * The only one that applies entries to its two stores; it begins by itself when batches are offered. It rests where the disk is
 * short. A fault of a store is told to `onFatal`, and it begins nothing more then: what was not applied is offered to the next
 * one. `Batch` is whatever names a part of the journal.
 */
export class Pipeline<Batch extends JournalBatch = JournalBatch> {
  private readonly waiting = new WaitingBatches<Batch>();
  private readonly applied: Batch[] = [];
  private running: Promise<void> | undefined;
  private bytesSinceCheckpoint = 0;
  private lastCheckpointAt = performance.now();
  private stopped = false;
  private logBytesMax: number;
  private readonly properties = new PropertyReader();
  private pause: ReturnType<typeof setTimeout> | undefined;
  /** A step waits for more: ends that. */
  private wake: (() => void) | undefined;
  private isDraining = false;
  /** Whether the event store takes the next step's events in advance: not behind a step that failed for it. */
  private isStaging: boolean;
  /** What is read for a step; entries refer to it. */
  private readonly buffers: ReusedBuffers;

  constructor(
    private readonly identity: IdentityStore,
    private readonly events: EventStore,
    private readonly keeper: BatchKeeper<Batch>,
    private readonly settings: PipelineSettings,
    private readonly hooks: PipelineHooks,
  ) {
    this.logBytesMax = settings.checkpointBytes;
    this.isStaging = events.stage !== undefined;
    this.buffers = new ReusedBuffers(settings.stepBytes.staged);
  }

  /** Hands over batches of one or both lanes, oldest first. */
  offer(batches: readonly Batch[]): void {
    for (const batch of batches) {
      if (batch.last <= this.cursor(batch.lane)) this.noteApplied(batch);
      else this.waiting.add(batch);
    }
    this.wake?.();
    if (this.stopped || this.running !== undefined || this.pause !== undefined) return;
    // Started in a later turn: `run` ends by clearing `running`, and must not do so before it is set.
    this.running = Promise.resolve().then(() => this.run());
  }

  /** The last sequence number of a lane that both stores have. */
  cursor(lane: Lane): number {
    return Math.min(this.identity.cursor(lane), this.events.cursor(lane));
  }

  /** Batches and bytes that wait, per lane. */
  lag(): Record<Lane, LaneLag> {
    return this.waiting.lag();
  }

  /** Resolves when all that was offered is applied. */
  async settle(): Promise<void> {
    while (this.running !== undefined) await this.running;
  }

  /** Somebody wants to read what has arrived: no step waits for more. */
  hurry(): void {
    this.wake?.();
  }

  /** Applies what waits, until all is done or the time is over; then writes the event store's file. */
  async drain(timeoutMs: number): Promise<void> {
    this.isDraining = true;
    this.hurry();
    const stop = setTimeout(() => {
      this.stopped = true;
      this.events.giveUp();
    }, timeoutMs);
    await this.settle();
    clearTimeout(stop);
    clearTimeout(this.pause);
    this.stopped = true;
    if (!(await this.hasRoomToCheckpoint())) return;
    for (let attempt = 0; attempt < lastCheckpointAttempts && !(await this.checkpoint()); attempt++)
      await Bun.sleep(50);
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
        isShort = bytesMax < partBytesMin && !this.waiting.isEmpty;
        if (isShort) break;
        const next = this.take(bytesMax);
        if (next === undefined) break;
        await this.apply(next, bytesMax);
        if (this.isCheckpointDue()) await this.checkpointInRoom();
      }
      if (isShort) await this.rest();
      else this.hooks.onPaused?.(null);
      this.buffers.release();
      this.running = undefined;
    } catch (error) {
      const wasStopped = this.stopped;
      this.stopped = true;
      this.running = undefined;
      if (!(wasStopped && error instanceof LoadGivenUp)) this.hooks.onFatal(error);
    }
  }

  /**
   * How many bytes of batches there is room for on the disk. Where it is short, what was loaded is written into the event
   * store's file first, and its place in the journal becomes free.
   */
  private async loadableBytes(): Promise<number> {
    const { space } = this.settings;
    if (space === undefined) return Number.POSITIVE_INFINITY;
    const { freeBytes, totalBytes } = await space();
    this.logBytesMax = Math.min(this.settings.checkpointBytes, totalBytes * logShare);
    const bytes = loadableBytes(freeBytes);
    if (bytes >= this.stepBytesMax) return Number.POSITIVE_INFINITY;
    if (this.bytesSinceCheckpoint === 0 || !(await this.checkpointInRoom())) return bytes;
    await this.keeper.idle();
    return loadableBytes((await space()).freeBytes);
  }

  /** Looks again in a while: queries are answered meanwhile. */
  private async rest(): Promise<void> {
    const { freeBytes } = await this.settings.space!();
    this.hooks.onPaused?.({ freeBytes, neededBytes: Math.ceil(bytesNeededToLoad(partBytesMin)) });
    this.pause = setTimeout(() => {
      this.pause = undefined;
      this.offer([]);
    }, pauseMs);
  }

  /** Batches of the next step have at most so many bytes together. */
  private get stepBytesMax(): number {
    return this.isStaging ? this.settings.stepBytes.staged : this.settings.stepBytes.held;
  }

  /** @param bytesMax of batches together. */
  private take(bytesMax: number): Batch[] | undefined {
    const unfinished = this.events.unfinished();
    if (unfinished !== undefined) return this.waiting.takeUpTo(unfinished.lane, unfinished.last);
    return this.waiting.takeNext(Math.min(bytesMax, this.stepBytesMax));
  }

  /**
   * Applies batches as one step: each store takes them in one transaction, the persons first.
   *
   * @param bytesMax when one batch is larger than that, only its first entries are applied, and it goes on waiting.
   */
  private async apply(batches: Batch[], bytesMax: number): Promise<void> {
    const started = performance.now();
    const lane = batches[0]!.lane;
    const { isStaging, properties, identity, events } = this;
    const { onItems } = this.hooks;
    const step = await Step.begin(identity, events, lane, { isStaging, properties, onItems });
    this.isStaging = events.stage !== undefined;
    const isOpen = isStaging && bytesMax === Number.POSITIVE_INFINITY;
    let stored: StoredStep;
    try {
      const isUnfinished = this.events.unfinished() !== undefined;
      let taken = 0;
      const isEnough = () => !isUnfinished && (step.isFull || (taken > 0 && this.isCutShort(lane)));
      while (!isEnough()) {
        if (taken === batches.length) {
          const more = isOpen ? await this.moreFor(batches, started) : undefined;
          if (more === undefined) break;
          batches.push(...more);
        }
        const portion = portionAt(batches, taken, this.settings.portionBytes);
        taken += portion.length;
        const isWhole = await this.addTo(step, portion, bytesMax);
        if (step.holdsNothing) this.buffers.reuse();
        if (!isWhole) break;
      }
      stored = await step.store();
    } catch (error) {
      await step.abandon();
      if (!(error instanceof StagingFailed)) throw error;
      // Once more, held here until all is loaded: that can be tried again when there is no memory.
      this.isStaging = false;
      this.waiting.putBack(lane, batches);
      return;
    }
    const whole = batches.filter(({ last }) => last <= step.last);
    for (const batch of whole) this.noteApplied(batch);
    this.waiting.putBack(lane, batches.slice(whole.length));
    if (whole.length === 0) this.bytesSinceCheckpoint += Math.min(bytesMax, batches[0]!.bytes);
    this.buffers.reuse();
    const { spikes, flagUsage, ...counts } = stored;
    if (spikes.length > 0) this.hooks.onSpikes(spikes);
    this.hooks.onFlagUsage(flagUsage);
    const ms = Math.round(performance.now() - started);
    this.hooks.onApplied({ lane, lastSeq: step.last, ...counts, ms });
  }

  /** What came meanwhile and becomes part of a large step; history is waited for. @returns undefined when there is none */
  private async moreFor(batches: readonly Batch[], started: number): Promise<Batch[] | undefined> {
    const { lane } = batches[0]!;
    const { bulkPauseMs } = this.settings;
    const bytes = bytesOf(batches);
    if (bytes < bulkBytesMin || bytes >= this.stepBytesMax || performance.now() - started > bulkMsMax)
      return undefined;
    if (lane === "historical" && this.waiting.isEmpty && !this.isDraining) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, bulkPauseMs);
      this.wake = resolve;
      await promise;
      this.wake = undefined;
      clearTimeout(timer);
    }
    // Live events that came with more history go before it.
    return this.isCutShort(lane) ? undefined : this.waiting.takeNextOf(lane, this.stepBytesMax - bytes);
  }

  /** Between two portions: the time for loading is over, or history lets live events go first. */
  private isCutShort(lane: Lane): boolean {
    return this.stopped || (lane === "historical" && this.waiting.has("realtime"));
  }

  /** Hands the entries of batches over to a step, as many as it or the disk has room for. @returns whether it has all of them */
  private async addTo(step: Step, batches: readonly Batch[], bytesMax: number): Promise<boolean> {
    const { entries: all, refused, damages } = await this.read(batches);
    const end = batches.at(-1)!.last;
    const unfinished = this.events.unfinished();
    if (unfinished !== undefined) {
      const begun = all.filter(({ seq }) => seq <= unfinished.last);
      await this.handOver(step, begun, Math.min(end, unfinished.last));
    } else {
      const bytes = bytesOf(batches);
      const entries = bytes <= bytesMax ? all : firstPart(all, bytes, bytesMax);
      await this.handOver(step, entries, entries.length === all.length ? end : entries.at(-1)!.seq);
    }
    // What lies behind is read once more, and is said then.
    const isPassed = (line: string) => seqOf(Buffer.from(line)) <= step.last;
    await this.keepRefusedLines(refused.filter(isPassed), step.lane);
    if (step.last !== end) return false;
    for (const damage of damages) this.hooks.onDamage(damage);
    return true;
  }

  private async handOver(step: Step, entries: readonly Entry[], last: number): Promise<void> {
    await this.keepRefusedLines((await step.take(entries, last)).map(writtenLine), step.lane);
  }

  /** The entries that at least one of the stores lacks; lines that are none; and what cannot be read. */
  private async read(batches: readonly Batch[]) {
    const after = this.cursor(batches[0]!.lane);
    const texts = await Promise.all(batches.map((batch) => batch.text(this.buffers)));
    const decoded = texts.map(({ bytes }) => decodeEntries(bytes, after));
    return {
      entries: decoded.flatMap(({ entries }) => entries),
      refused: decoded.flatMap(({ refused }) => refused),
      damages: texts.flatMap(({ damage }) => damage ?? []),
    };
  }

  /** Both stores have a batch; its place in the journal is free after the next checkpoint. */
  private noteApplied(batch: Batch): void {
    this.applied.push(batch);
    this.bytesSinceCheckpoint += batch.bytes;
  }

  /** A line that is no entry is kept in a file, and said, instead of holding up all events behind it. */
  private async keepRefusedLines(lines: readonly string[], lane: Lane): Promise<void> {
    if (lines.length === 0) return;
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
    return (
      space === undefined || (await space()).freeBytes >= bytesNeededToCheckpoint(this.bytesSinceCheckpoint)
    );
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
