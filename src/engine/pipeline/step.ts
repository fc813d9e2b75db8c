/**
 * One step of the pipeline: entries of a lane, taken portion after portion and stored together.
 *
 * Large steps cost less an event: persons are read and written once, each store commits once. What is held of an event until
 * then is its row; its properties are only text.
 */

import type { EventStore } from "../../events/store.ts";
import {
  type Entry,
  type EventEntry,
  type JournalItem,
  noteCount,
  type StorableEvent,
  storable,
} from "../../journal/entry.ts";
import type { Lane } from "../../journal/segment.ts";
import type { DuplicateCount, IdentityStep, IdentityStore } from "../../people/batch.ts";
import type { SpikeSignal } from "../../people/spikes/detector.ts";
import { flagUsageOf, type ProjectUsage } from "./flag-usage.ts";

/** What became of the entries of a step. */
export interface StoredStep {
  spikes: SpikeSignal[];
  flagUsage: ProjectUsage[];
  events: number;
  duplicates: number;
  /** Events that ingestion left out. */
  dropped: number;
}

export class Step {
  /** The lane's cursor afterwards. */
  last: number;
  private readonly loaded: number;
  private readonly applied: number;
  private readonly seen = new Set<string>();
  private readonly storable: StorableEvent[] = [];
  private readonly flagUsage: ProjectUsage[] = [];
  private duplicates = 0;
  private dropped = 0;

  private constructor(
    identity: IdentityStore,
    private readonly persons: IdentityStep,
    private readonly events: EventStore,
    private readonly lane: Lane,
    private readonly onItems: ((items: readonly JournalItem[]) => void) | undefined,
  ) {
    this.applied = identity.cursor(lane);
    this.loaded = events.cursor(lane);
    this.last = Math.min(this.applied, this.loaded);
  }

  /** @param onItems is told of the items of each portion, once more after a crash. */
  static async begin(
    identity: IdentityStore,
    events: EventStore,
    lane: Lane,
    onItems?: (items: readonly JournalItem[]) => void,
  ): Promise<Step> {
    return new Step(identity, await identity.begin(lane), events, lane, onItems);
  }

  /** So much is held in memory that it should be stored. */
  get isFull(): boolean {
    return this.persons.isFull;
  }

  /**
   * Takes the next entries, in order; what one of the stores has already has no effect on it again.
   *
   * @param last the last sequence number that is done with them.
   */
  async take(entries: readonly Entry[], last: number): Promise<void> {
    const unloaded = entries.filter(
      (entry): entry is EventEntry => entry.kind === "event" && entry.seq > this.loaded,
    );
    const known = await this.events.known(unloaded.filter((event) => !event.hasMadeUuid));
    const { items, duplicates, duplicateSeqs } = withoutDuplicates(entries, known, this.applied, this.seen);
    await this.persons.add({ items, duplicates });
    for (const event of unloaded) {
      if (!duplicateSeqs.has(event.seq)) this.storable.push(storable(event));
    }
    this.flagUsage.push(...flagUsageOf(items));
    this.onItems?.(items);
    this.duplicates += duplicateSeqs.size;
    this.dropped += droppedIn(items);
    this.last = last;
  }

  /** Stores everything: the persons, then the events. */
  async store(): Promise<StoredStep> {
    this.events.begin({ lane: this.lane, last: this.last });
    const spikes = await this.persons.commit(this.last);
    await this.events.load(this.lane, this.last, this.storable);
    const { flagUsage, duplicates, dropped } = this;
    return { spikes, flagUsage, events: this.storable.length, duplicates, dropped };
  }

  /** Forgets everything, when something has failed. */
  abandon(): void {
    this.persons.abandon();
  }
}

/**
 * Drops every event whose uuid was seen before in its project, in the store or among `seen`; the first wins.
 *
 * @param countedUpTo duplicates up to this sequence number were counted before a crash.
 * @param seen uuids of events before these that are not stored yet; those of these are added.
 *
 * Source: contract, README "Duplicates by uuid".
 */
function withoutDuplicates(
  entries: readonly Entry[],
  known: ReadonlySet<number>,
  countedUpTo: number,
  seen = new Set<string>(),
) {
  const items: Entry[] = [];
  const duplicateSeqs = new Set<number>();
  const counts = new Map<string, DuplicateCount>();
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
