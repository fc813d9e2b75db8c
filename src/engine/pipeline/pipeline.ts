/**
 * Applies journal batches in order: duplicates, persons, events. Realtime batches preempt historical ones between
 * portions. Each store keeps a cursor in the same transaction as its data: after a crash a batch may be read again, but
 * nothing is applied twice or skipped.
 */

import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type EventStore, LoadCancelledError, StagingError } from "../../events/store.ts";
import { bytesNeededToCheckpoint, bytesNeededToLoad, loadableBytes } from "../../journal/disk.ts";
import { type Entry, getSeq, type JournalItem } from "../../journal/entry.ts";
import { PropertyReader } from "../../journal/entry-properties.ts";
import { decodeEntries, writtenLine } from "../../journal/entry-reader.ts";
import type { JournalBatch } from "../../journal/reader.ts";
import type { Lane } from "../../journal/segment.ts";
import { BufferPool } from "../../lib/buffer-pool.ts";
import type { StepBytes } from "../../lib/memory-budget.ts";
import type { IdentityStore } from "../../persons/batch.ts";
import type { SpikeSignal } from "../../persons/spike-detector.ts";
import type { ProjectUsage } from "./flag-usage.ts";
import { batchSizeAt, getBytes, type LaneLag, PendingBatches, takeFirst } from "./pending-batches.ts";
import { Step, type StoredStep } from "./step.ts";

/** Receives batches that both stores have made durable, and removes them from the journal. */
export interface BatchStore<Batch extends JournalBatch> {
  /** Returns immediately. */
  keep(batches: readonly Batch[]): void;
  /** Resolves when all batches are processed or have to be retried later. */
  idle(): Promise<void>;
}

export interface PipelineOptions {
  /** Maximum bytes of the batches of a step; a step has at least one batch. */
  stepBytes: StepBytes;
  /** Batches are decoded in portions of this size: parsed properties take many times the memory. */
  portionBytes: number;
  /** Loaded bytes after which the event store is checkpointed. */
  checkpointBytes: number;
  checkpointIntervalMs: number;
  /** How long a large historical step waits for more. Clients that send without a pause seal segments more often. */
  bulkPauseMs: number;
  /** Folder for rejected lines. */
  workFolder: string;
  /** Space of the volume of the stores; default: unlimited. */
  space?: () => Promise<{ freeBytes: number; totalBytes: number }>;
}

export interface PipelineCallbacks {
  onApplied: (applied: AppliedBatch) => void;
  /** Flags called or viewed, per project with events. */
  onFlagUsage: (usage: ProjectUsage[]) => void;
  /** Applied items, for recording definitions; repeated after a crash. */
  onItems?: (items: readonly JournalItem[]) => void;
  /** Spikes that started or ended. */
  onSpikes: (spikes: SpikeSignal[]) => void;
  /** Acknowledged entries cannot be read; an operator must know. */
  onCorruption: (error: Error) => void;
  /** The pipeline cannot continue in this process. */
  onFatal: (error: unknown) => void;
  /** Loading is paused because disk space is short, or continues (null). */
  onPaused?: (pause: Pause | null) => void;
}

/** Too little disk space to load anything. */
export interface Pause {
  freeBytes: number;
  neededBytes: number;
}

export interface AppliedBatch {
  lane: Lane;
  lastSeq: number;
  events: number;
  duplicates: number;
  /** Events rejected by ingestion rules. */
  dropped: number;
  ms: number;
}

/** Without the last checkpoint, the next start has more to read. */
const lastCheckpointAttempts = 20;
/** How often free space is checked during a pause. */
const pauseMs = 1_000;
/** Minimum size of a partial batch. */
const partBytesMin = 256 * 1024;
/**
 * A step of this size accepts batches that arrive meanwhile, up to the maximum that the event store loads at a time.
 */
const bulkBytesMin = 4 * 1024 * 1024;
/** A step accepts no more batches after this time, so that its events become visible. */
const bulkMsMax = 5_000;
/** Maximum size of the event store's log as a fraction of the volume: a checkpoint needs space. */
const logShare = 1 / 64;

/**
 * The only writer of entries to its two stores; starts when batches are offered and pauses when disk space is short. A
 * store's error is passed to `onFatal` and stops the pipeline; the next process receives the batches again.
 */
export class Pipeline<Batch extends JournalBatch = JournalBatch> {
  private readonly waiting = new PendingBatches<Batch>();
  private readonly applied: Batch[] = [];
  private running: Promise<void> | undefined;
  private bytesSinceCheckpoint = 0;
  private lastCheckpointAt = performance.now();
  private stopped = false;
  private logBytesMax: number;
  private readonly properties = new PropertyReader();
  private pause: ReturnType<typeof setTimeout> | undefined;
  /** Ends the wait of a step for more batches. */
  private wake: (() => void) | undefined;
  private isDraining = false;
  /** Whether the event store stages the next step's events; not after staging has failed. */
  private isStaging: boolean;
  /** Input of the current step; entries refer to it. */
  private readonly buffers: BufferPool;

  constructor(
    private readonly identity: IdentityStore,
    private readonly events: EventStore,
    private readonly batchStore: BatchStore<Batch>,
    private readonly options: PipelineOptions,
    private readonly callbacks: PipelineCallbacks,
  ) {
    this.logBytesMax = options.checkpointBytes;
    this.isStaging = events.stage !== undefined;
    this.buffers = new BufferPool(options.stepBytes.staged);
  }

  /** Queues batches of one or both lanes, oldest first. */
  offer(batches: readonly Batch[]): void {
    for (const batch of batches) {
      if (batch.last <= this.cursor(batch.lane)) this.recordApplied(batch);
      else this.waiting.add(batch);
    }
    this.wake?.();
    if (this.stopped || this.running !== undefined || this.pause !== undefined) return;
    // Started in a later tick: `run` ends by clearing `running`, and must not do so before it is set.
    this.running = Promise.resolve().then(() => this.run());
  }

  /** The last sequence number of a lane that both stores have. */
  cursor(lane: Lane): number {
    return Math.min(this.identity.cursor(lane), this.events.cursor(lane));
  }

  /** Pending batches and bytes per lane. */
  lag(): Record<Lane, LaneLag> {
    return this.waiting.lag();
  }

  /** Resolves when all offered batches are applied. */
  async settle(): Promise<void> {
    while (this.running !== undefined) await this.running;
  }

  /** Whether nothing is pending or being applied. */
  get isIdle(): boolean {
    return this.running === undefined && this.waiting.isEmpty;
  }

  /** Discards pending batches, which will be offered again; a step in progress continues. */
  discard(): void {
    this.waiting.clear();
  }

  /** Ends the wait of a step for more batches, because a reader waits for its events. */
  hurry(): void {
    this.wake?.();
  }

  /** Applies pending batches until the timeout, then checkpoints the event store. */
  async drain(timeoutMs: number): Promise<void> {
    this.isDraining = true;
    this.hurry();
    const stop = setTimeout(() => {
      this.stopped = true;
      this.events.cancel();
    }, timeoutMs);
    await this.settle();
    clearTimeout(stop);
    clearTimeout(this.pause);
    this.stopped = true;
    if (!(await this.canCheckpoint())) return;
    for (let attempt = 0; attempt < lastCheckpointAttempts && !(await this.checkpoint()); attempt++)
      await Bun.sleep(50);
    await this.batchStore.idle();
  }

  /** Checkpoints the event store if due and idle; call it every few seconds. */
  tidy(): void {
    if (this.running !== undefined || this.stopped || !this.isCheckpointDue()) return;
    this.running = this.checkpointIfSpace().then(
      () => {
        this.running = undefined;
        this.offer([]);
      },
      (error) => {
        this.running = undefined;
        this.callbacks.onFatal(error);
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
        if (this.isCheckpointDue()) await this.checkpointIfSpace();
      }
      if (isShort) await this.rest();
      else this.callbacks.onPaused?.(null);
      this.buffers.release();
      this.running = undefined;
    } catch (error) {
      const wasStopped = this.stopped;
      this.stopped = true;
      this.running = undefined;
      if (!(wasStopped && error instanceof LoadCancelledError)) this.callbacks.onFatal(error);
    }
  }

  /**
   * How many bytes of batches fit on the disk. If space is short, loaded events are checkpointed first, which frees
   * their journal segments.
   */
  private async loadableBytes(): Promise<number> {
    const { space } = this.options;
    if (space === undefined) return Number.POSITIVE_INFINITY;
    const { freeBytes, totalBytes } = await space();
    this.logBytesMax = Math.min(this.options.checkpointBytes, totalBytes * logShare);
    const bytes = loadableBytes(freeBytes);
    if (bytes >= this.stepBytesMax) return Number.POSITIVE_INFINITY;
    if (this.bytesSinceCheckpoint === 0 || !(await this.checkpointIfSpace())) return bytes;
    await this.batchStore.idle();
    return loadableBytes((await space()).freeBytes);
  }

  /** Pauses loading and checks again later; queries run meanwhile. */
  private async rest(): Promise<void> {
    const { freeBytes } = await this.options.space!();
    this.callbacks.onPaused?.({ freeBytes, neededBytes: Math.ceil(bytesNeededToLoad(partBytesMin)) });
    this.pause = setTimeout(() => {
      this.pause = undefined;
      this.offer([]);
    }, pauseMs);
  }

  private get stepBytesMax(): number {
    return this.isStaging ? this.options.stepBytes.staged : this.options.stepBytes.held;
  }

  /** @param bytesMax of all batches */
  private take(bytesMax: number): Batch[] | undefined {
    const unfinished = this.events.unfinished();
    if (unfinished !== undefined) return this.waiting.takeUpTo(unfinished.lane, unfinished.last);
    return this.waiting.takeNext(Math.min(bytesMax, this.stepBytesMax));
  }

  /**
   * Applies batches as one step: one transaction per store, persons first.
   * @param bytesMax of a larger batch only the first entries are applied; the rest stays pending
   */
  private async apply(batches: Batch[], bytesMax: number): Promise<void> {
    const started = performance.now();
    const lane = batches[0]!.lane;
    const { isStaging, properties, identity, events } = this;
    const { onItems } = this.callbacks;
    const step = await Step.start(identity, events, lane, { isStaging, properties, onItems });
    this.isStaging = events.stage !== undefined;
    const isOpen = isStaging && bytesMax === Number.POSITIVE_INFINITY;
    let stored: StoredStep;
    try {
      const isUnfinished = this.events.unfinished() !== undefined;
      let acquired = 0;
      const isEnough = () => !isUnfinished && (step.isFull || (acquired > 0 && this.isCutShort(lane)));
      while (!isEnough()) {
        if (acquired === batches.length) {
          const more = isOpen ? await this.moreFor(batches, started) : undefined;
          if (more === undefined) break;
          batches.push(...more);
        }
        const portion = batchSizeAt(batches, acquired, this.options.portionBytes);
        acquired += portion.length;
        const isWhole = await this.addTo(step, portion, bytesMax);
        if (step.holdsNothing) this.buffers.reuse();
        if (!isWhole) break;
      }
      stored = await step.store();
    } catch (error) {
      await step.abandon();
      if (!(error instanceof StagingError)) throw error;
      // Retry without staging: events are held here until the load, which can be retried when memory is short.
      this.isStaging = false;
      this.waiting.requeue(lane, batches);
      return;
    }
    const whole = batches.filter(({ last }) => last <= step.last);
    for (const batch of whole) this.recordApplied(batch);
    this.waiting.requeue(lane, batches.slice(whole.length));
    if (whole.length === 0) this.bytesSinceCheckpoint += Math.min(bytesMax, batches[0]!.bytes);
    this.buffers.reuse();
    const { spikes, flagUsage, ...counts } = stored;
    if (spikes.length > 0) this.callbacks.onSpikes(spikes);
    this.callbacks.onFlagUsage(flagUsage);
    const ms = Math.round(performance.now() - started);
    this.callbacks.onApplied({ lane, lastSeq: step.last, ...counts, ms });
  }

  /**
   * Batches that arrived meanwhile and join a large step; a historical step waits for them. @returns undefined if none
   */
  private async moreFor(batches: readonly Batch[], started: number): Promise<Batch[] | undefined> {
    const { lane } = batches[0]!;
    const { bulkPauseMs } = this.options;
    const bytes = getBytes(batches);
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
    // Realtime events that arrived with more historical ones are loaded first.
    return this.isCutShort(lane) ? undefined : this.waiting.takeNextInLane(lane, this.stepBytesMax - bytes);
  }

  /** Whether the step has to end after this portion: shutdown, or realtime events preempt historical ones. */
  private isCutShort(lane: Lane): boolean {
    return this.stopped || (lane === "historical" && this.waiting.has("realtime"));
  }

  /** Adds entries of batches to a step, up to the limits of the step and the disk. @returns whether all were added */
  private async addTo(step: Step, batches: readonly Batch[], bytesMax: number): Promise<boolean> {
    const { entries: all, rejected, corruptions } = await this.read(batches);
    const end = batches.at(-1)!.last;
    const unfinished = this.events.unfinished();
    if (unfinished !== undefined) {
      const started = all.filter(({ seq }) => seq <= unfinished.last);
      await this.handOver(step, started, Math.min(end, unfinished.last));
    } else {
      const bytes = getBytes(batches);
      const entries = bytes <= bytesMax ? all : takeFirst(all, bytes, bytesMax);
      await this.handOver(step, entries, entries.length === all.length ? end : entries.at(-1)!.seq);
    }
    // Later lines are read again by the next step, and reported then.
    const isPassed = (line: string) => getSeq(Buffer.from(line)) <= step.last;
    await this.quarantineRejectedLines(rejected.filter(isPassed), step.lane);
    if (step.last !== end) return false;
    for (const corruption of corruptions) this.callbacks.onCorruption(corruption);
    return true;
  }

  private async handOver(step: Step, entries: readonly Entry[], last: number): Promise<void> {
    await this.quarantineRejectedLines((await step.take(entries, last)).map(writtenLine), step.lane);
  }

  /** Entries that at least one store is missing, invalid lines, and unreadable ranges. */
  private async read(batches: readonly Batch[]) {
    const after = this.cursor(batches[0]!.lane);
    const texts = await Promise.all(batches.map((batch) => batch.text(this.buffers)));
    const decoded = texts.map(({ bytes }) => decodeEntries(bytes, after));
    return {
      entries: decoded.flatMap(({ entries }) => entries),
      rejected: decoded.flatMap(({ rejected }) => rejected),
      corruptions: texts.flatMap(({ corruption }) => corruption ?? []),
    };
  }

  /** Both stores have the batch; the journal can delete it after the next checkpoint. */
  private recordApplied(batch: Batch): void {
    this.applied.push(batch);
    this.bytesSinceCheckpoint += batch.bytes;
  }

  /** Moves invalid lines to a file and reports them, instead of blocking all later events. */
  private async quarantineRejectedLines(lines: readonly string[], lane: Lane): Promise<void> {
    if (lines.length === 0) return;
    const { workFolder } = this.options;
    const path = join(workFolder, `refused-${lane}.ndjson`);
    await mkdir(workFolder, { recursive: true, mode: 0o700 });
    await appendFile(path, lines.map((line) => `${line}\n`).join(""), { mode: 0o600, flush: true });
    this.callbacks.onCorruption(
      new Error(`${lines.length} journal lines are unreadable and were moved to ${path}.`),
    );
  }

  private async canCheckpoint(): Promise<boolean> {
    const { space } = this.options;
    return (
      space === undefined || (await space()).freeBytes >= bytesNeededToCheckpoint(this.bytesSinceCheckpoint)
    );
  }

  /** DuckDB would close the event store if the disk is full. @returns false if the checkpoint has to be retried */
  private async checkpointIfSpace(): Promise<boolean> {
    return (await this.canCheckpoint()) && (await this.checkpoint());
  }

  private isCheckpointDue(): boolean {
    if (this.bytesSinceCheckpoint === 0) return false;
    if (this.bytesSinceCheckpoint >= this.logBytesMax) return true;
    return performance.now() - this.lastCheckpointAt >= this.options.checkpointIntervalMs;
  }

  /** @returns false if it has to be retried */
  private async checkpoint(): Promise<boolean> {
    if (this.bytesSinceCheckpoint > 0 && !(await this.events.checkpoint())) return false;
    this.bytesSinceCheckpoint = 0;
    this.lastCheckpointAt = performance.now();
    this.batchStore.keep(this.applied.splice(0));
    return true;
  }
}
