/**
 * Takes batches of the journal in order: duplicates, identity, events.
 *
 * Realtime batches go first whenever there are any; historical ones follow a few at a time, so that a year of history
 * never delays a live event by more than `historicalBytesMax`. Each store keeps its own cursor in its own transaction: after
 * a crash a batch may be read again, but nothing is applied twice and nothing is left out.
 */

import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { EventStore } from "../../events/store.ts";
import { decodeEntries, type Entry, type EventEntry, noteCount } from "../../journal/entry.ts";
import type { JournalBatch } from "../../journal/reader.ts";
import type { Lane } from "../../journal/segment.ts";
import type { DuplicateCount, IdentityStore } from "../../people/batch.ts";
import type { SpikeSignal } from "../../people/spikes/detector.ts";
import { flagUsageOf, type ProjectUsage } from "./flag-usage.ts";

/** Takes batches that both stores have for good; from then on it alone deals with their place in the journal. */
export interface BatchKeeper<Batch extends JournalBatch> {
  /** Returns at once. */
  keep(batches: readonly Batch[]): void;
  /** Resolves when all batches are dealt with, or have to be tried again later. */
  idle(): Promise<void>;
}

export interface PipelineSettings {
  /** Realtime batches taken together hold at most this many bytes (one is always taken). */
  batchBytesMax: number;
  /** The same for historical ones: so much a live event may have to wait for. */
  historicalBytesMax: number;
  /** Loaded bytes after which the event store is asked to write its file. */
  checkpointBytes: number;
  checkpointIntervalMs: number;
  /** Where refused lines go. */
  workFolder: string;
}

export interface PipelineHooks {
  onApplied: (applied: AppliedBatch) => void;
  /** Which flags were called or viewed, per project that had events. */
  onFlagUsage: (usage: ProjectUsage[]) => void;
  /** Spikes that began or ended. */
  onSpikes: (spikes: SpikeSignal[]) => void;
  /** Acknowledged entries cannot be read; an operator must know. */
  onDamage: (error: Error) => void;
  /** The pipeline cannot go on in this process. */
  onFatal: (error: unknown) => void;
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

export class Pipeline<Batch extends JournalBatch = JournalBatch> {
  private readonly waiting: Record<Lane, Batch[]> = { realtime: [], historical: [] };
  private readonly applied: Batch[] = [];
  private running: Promise<void> | undefined;
  private bytesSinceCheckpoint = 0;
  private lastCheckpointAt = performance.now();
  private stopped = false;

  constructor(
    private readonly identity: IdentityStore,
    private readonly events: EventStore,
    private readonly keeper: BatchKeeper<Batch>,
    private readonly settings: PipelineSettings,
    private readonly hooks: PipelineHooks,
  ) {}

  /** Hands over batches of one or both lanes, oldest first. */
  offer(batches: readonly Batch[]): void {
    for (const batch of batches) {
      if (batch.last <= this.cursor(batch.lane)) this.noteApplied(batch);
      else this.waiting[batch.lane].push(batch);
    }
    if (this.stopped || this.running !== undefined) return;
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
    }, timeoutMs);
    await this.settle();
    clearTimeout(stop);
    this.stopped = true;
    for (let attempt = 0; attempt < lastCheckpointAttempts && !(await this.checkpoint()); attempt++) {
      await Bun.sleep(50);
    }
    await this.keeper.idle();
  }

  /** Writes the event store's file when that is due and nothing else happens; call it every few seconds. */
  tidy(): void {
    if (this.running !== undefined || this.stopped || !this.isCheckpointDue()) return;
    this.running = this.checkpoint().then(
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
      for (let next = this.take(); next !== undefined && !this.stopped; next = this.take()) {
        await this.apply(next);
        if (this.isCheckpointDue()) await this.checkpoint();
      }
      this.running = undefined;
    } catch (error) {
      this.stopped = true;
      this.running = undefined;
      this.hooks.onFatal(error);
    }
  }

  private take(): Batch[] | undefined {
    const { realtime, historical } = this.waiting;
    const { batchBytesMax, historicalBytesMax } = this.settings;
    if (realtime.length > 0) return firstOf(realtime, batchBytesMax);
    return historical.length > 0 ? firstOf(historical, historicalBytesMax) : undefined;
  }

  private async apply(batches: Batch[]): Promise<void> {
    const started = performance.now();
    const lane = batches[0]!.lane;
    const last = batches.at(-1)!.last;
    const entries = await this.read(batches, lane);
    const loaded = this.events.cursor(lane);
    const unloaded = entries.filter((entry) => entry.kind === "event" && entry.seq > loaded) as EventEntry[];
    const known = await this.events.known(unloaded.filter((event) => !event.hasMadeUuid));
    const { items, duplicates, duplicateSeqs } = withoutDuplicates(
      entries,
      known,
      this.identity.cursor(lane),
    );

    // What its cursor covers already has no effect.
    const spikes = await this.identity.apply({ lane, lastSeq: last, items, duplicates });
    const stored = unloaded.filter(({ seq }) => !duplicateSeqs.has(seq));
    await this.events.load(lane, last, stored);

    for (const batch of batches) this.noteApplied(batch);
    if (spikes.length > 0) this.hooks.onSpikes(spikes);
    this.hooks.onFlagUsage(flagUsageOf(items));
    this.hooks.onApplied({
      lane,
      lastSeq: last,
      events: stored.length,
      duplicates: duplicateSeqs.size,
      dropped: droppedIn(items),
      ms: Math.round(performance.now() - started),
    });
  }

  /** The entries that at least one of the stores lacks. */
  private async read(batches: readonly Batch[], lane: Lane): Promise<Entry[]> {
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

  private isCheckpointDue(): boolean {
    if (this.bytesSinceCheckpoint === 0) return false;
    if (this.bytesSinceCheckpoint >= this.settings.checkpointBytes) return true;
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

/**
 * Drops every event whose uuid was seen before in its project, in the store or earlier in the batch; the first wins.
 *
 * @param countedUpTo duplicates up to this sequence number were counted before a crash.
 *
 * Source: contract, README "Duplicates by uuid".
 */
export function withoutDuplicates(
  entries: readonly Entry[],
  known: ReadonlySet<number>,
  countedUpTo: number,
) {
  const items: Entry[] = [];
  const duplicateSeqs = new Set<number>();
  const counts = new Map<string, DuplicateCount>();
  const seen = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === "event" && !entry.hasMadeUuid) {
      const key = `${entry.projectId}:${entry.uuid}`;
      if (known.has(entry.seq) || seen.has(key)) {
        duplicateSeqs.add(entry.seq);
        if (entry.seq > countedUpTo) countDuplicate(counts, entry);
        continue;
      }
      seen.add(key);
    }
    items.push(entry);
  }
  return { items, duplicateSeqs, duplicates: [...counts.values()] };
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

function droppedIn(items: readonly Entry[]): number {
  return items.reduce((sum, item) => (item.kind === "drop" ? sum + noteCount(item) : sum), 0);
}

const microsPerDay = 86_400_000_000;

function countDuplicate(counts: Map<string, DuplicateCount>, entry: Entry): void {
  const { projectId, receivedMicros, historical } = entry;
  const key = `${projectId}:${historical}:${Math.floor(receivedMicros / microsPerDay)}`;
  const count = counts.get(key);
  if (count === undefined) counts.set(key, { projectId, receivedMicros, historical, count: 1 });
  else count.count += 1;
}
