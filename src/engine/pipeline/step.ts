/**
 * One step of the pipeline: entries of a lane, taken in portions and stored together. Large steps cost less per event:
 * persons are read and written once, and each store commits once. Until then only an event's row is held, with
 * properties as JSON, or nothing if the event store stages events.
 */

import type { EventStore } from "../../events/store.ts";
import {
  type Entry,
  type EventEntry,
  type JournalItem,
  noteCount,
  type StorableEvent,
} from "../../journal/entry.ts";
import type { PropertyReader } from "../../journal/entry-properties.ts";
import type { Lane } from "../../journal/segment.ts";
import { microsPerDay } from "../../lib/time.ts";
import type { DuplicateCount, IdentityStep, IdentityStore } from "../../persons/batch.ts";
import type { SpikeSignal } from "../../persons/spike-detector.ts";
import { FlagUsageTally, type ProjectUsage } from "./flag-usage.ts";

export interface StoredStep {
  spikes: SpikeSignal[];
  flagUsage: ProjectUsage[];
  events: number;
  duplicates: number;
  /** Events rejected by ingestion rules. */
  dropped: number;
}

export interface StepOptions {
  /** Shared by all steps, which run one at a time. */
  readonly properties: PropertyReader;
  /** Whether events may be staged in the event store. */
  readonly isStaging: boolean;
  /** Receives the items of each batch; repeated after a crash. */
  readonly onItems?: (items: readonly JournalItem[]) => void;
}

/**
 * Filled by `take` until full, then ended by `store` or `abandon`; nothing is visible in the stores before. Errors of
 * the stores are passed through, and require `abandon`.
 */
export class Step {
  /** The lane's cursor after this step. */
  last: number;
  private readonly loaded: number;
  private readonly applied: number;
  private readonly seen = new SeenUuids();
  private storable: StorableEvent[] = [];
  private staged = 0;
  private readonly flagUsage = new FlagUsageTally();
  private duplicates = 0;
  private dropped = 0;

  private constructor(
    identity: IdentityStore,
    private readonly persons: IdentityStep,
    private readonly events: EventStore,
    readonly lane: Lane,
    private readonly options: StepOptions,
  ) {
    this.applied = identity.cursor(lane);
    this.loaded = events.cursor(lane);
    this.last = Math.min(this.applied, this.loaded);
  }

  static async start(
    identity: IdentityStore,
    events: EventStore,
    lane: Lane,
    options: StepOptions,
  ): Promise<Step> {
    return new Step(identity, await identity.start(lane), events, lane, options);
  }

  /** Whether no taken entry is referenced any more. */
  get holdsNothing(): boolean {
    return this.storable.length === 0;
  }

  /** Whether so much is held or staged that the step should be stored. */
  get isFull(): boolean {
    return this.persons.isFull || this.capacityEvents === 0;
  }

  private get capacityEvents(): number {
    return (this.events.eventsPerLoad ?? Number.POSITIVE_INFINITY) - this.staged - this.storable.length;
  }

  /**
   * Takes the next entries until full; entries that a store already has are not applied to it again.
   * @param last the last sequence number covered by all entries
   * @returns events that are rejected because their properties cannot be parsed
   */
  async take(entries: readonly Entry[], last: number): Promise<EventEntry[]> {
    const rejected: EventEntry[] = [];
    let start = 0;
    // Duplicates use no capacity, so continue until new events have filled it.
    do {
      const end = start + Math.min(entries.length - start, this.capacityEvents);
      const part = entries.slice(start, end);
      rejected.push(...(await this.takeAll(part, end === entries.length ? last : part.at(-1)!.seq)));
      start = end;
    } while (start < entries.length && this.capacityEvents > 0);
    return rejected;
  }

  /** @param last the last sequence number covered by these entries */
  private async takeAll(entries: readonly Entry[], last: number): Promise<EventEntry[]> {
    const unloaded = entries.filter(
      (entry): entry is EventEntry => entry.kind === "event" && entry.seq > this.loaded,
    );
    const known = await this.events.known(unloaded.filter((event) => !event.hasGeneratedUuid));
    const { fresh, duplicates, duplicateCount } = withoutDuplicates(entries, known, this.applied, this.seen);
    const rejected: EventEntry[] = [];
    await this.persons.add({ items: [], duplicates });
    for (const { entries: read, items: found } of this.options.properties.read(fresh)) {
      const items: JournalItem[] = [];
      for (const [index, entry] of read.entries()) {
        const item = found[index];
        if (item !== undefined) items.push(item);
        else rejected.push(entry as EventEntry);
        if (item?.kind === "event" && item.seq > this.loaded) this.storable.push(entry as EventEntry);
      }
      await this.persons.add({ items, duplicates: [] });
      this.flagUsage.add(items);
      this.options.onItems?.(items);
      this.dropped += droppedIn(items);
    }
    await this.stage();
    this.duplicates += duplicateCount;
    this.last = last;
    return rejected;
  }

  private async stage(): Promise<void> {
    if (!this.options.isStaging || this.events.stage === undefined || this.storable.length === 0) return;
    await this.events.stage(this.storable);
    this.staged += this.storable.length;
    this.storable = [];
  }

  /** Stores persons, then events. */
  async store(): Promise<StoredStep> {
    this.events.start({ lane: this.lane, last: this.last });
    const spikes = await this.persons.commit(this.last);
    await this.events.load(this.lane, this.last, this.storable);
    const { duplicates, dropped } = this;
    const events = this.staged + this.storable.length;
    return { spikes, flagUsage: this.flagUsage.usage, events, duplicates, dropped };
  }

  /** Discards everything after an error. */
  async abandon(): Promise<void> {
    this.persons.abandon();
    await this.events.unstage?.();
  }
}

/** UUIDs of the step's events, which the event store does not have yet. */
class SeenUuids {
  private readonly projects = new Map<number, Set<string>>();

  /** @returns false if it was already present */
  add(projectId: number, uuid: string): boolean {
    let seen = this.projects.get(projectId);
    if (seen === undefined) {
      seen = new Set();
      this.projects.set(projectId, seen);
    }
    const { size } = seen;
    return seen.add(uuid).size > size;
  }
}

/**
 * Drops events whose UUID is in the event store or in `seen` for the same project; the first one wins.
 * @param countedUpTo duplicates up to this sequence number were counted before a crash
 * @param seen UUIDs of earlier events that are not stored yet; extended by these. Source: contract, README "Duplicates
 * by uuid".
 */
function withoutDuplicates(
  entries: readonly Entry[],
  known: ReadonlySet<number>,
  countedUpTo: number,
  seen: SeenUuids,
) {
  const fresh: Entry[] = [];
  let duplicateCount = 0;
  const counts = new Map<string, DuplicateCount>();
  for (const entry of entries) {
    if (entry.kind === "event" && !entry.hasGeneratedUuid) {
      if (known.has(entry.seq) || !seen.add(entry.projectId, entry.uuid)) {
        duplicateCount += 1;
        if (entry.seq > countedUpTo) countDuplicate(counts, entry);
        continue;
      }
    }
    fresh.push(entry);
  }
  return { fresh, duplicateCount, duplicates: [...counts.values()] };
}

function droppedIn(items: readonly JournalItem[]): number {
  return items.reduce((sum, item) => (item.kind === "drop" ? sum + noteCount(item) : sum), 0);
}

function countDuplicate(counts: Map<string, DuplicateCount>, entry: Entry): void {
  const { projectId, receivedMicros, historical } = entry;
  const key = `${projectId}:${historical}:${Math.floor(receivedMicros / microsPerDay)}`;
  const count = counts.get(key);
  if (count === undefined) counts.set(key, { projectId, receivedMicros, historical, count: 1 });
  else count.count += 1;
}
