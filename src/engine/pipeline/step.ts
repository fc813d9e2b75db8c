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
} from "../../journal/entry.ts";
import { withProperties } from "../../journal/entry-reader.ts";
import type { Lane } from "../../journal/segment.ts";
import type { DuplicateCount, IdentityStep, IdentityStore } from "../../people/batch.ts";
import type { SpikeSignal } from "../../people/spikes/detector.ts";
import { FlagUsageTally, type ProjectUsage } from "./flag-usage.ts";

/**
 * Events whose properties are values at the same time: those that last keep the garbage collector busy, and persons are
 * asked for once for all of them.
 */
const eventsAtOnce = 2_000;

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
  private readonly seen = new SeenUuids();
  private readonly storable: StorableEvent[] = [];
  private readonly flagUsage = new FlagUsageTally();
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
   * @returns    events that cannot be taken, because their properties cannot be read.
   */
  async take(entries: readonly Entry[], last: number): Promise<EventEntry[]> {
    const unloaded = entries.filter(
      (entry): entry is EventEntry => entry.kind === "event" && entry.seq > this.loaded,
    );
    const known = await this.events.known(unloaded.filter((event) => !event.hasMadeUuid));
    const { fresh, duplicates, duplicateCount } = withoutDuplicates(entries, known, this.applied, this.seen);
    const refused: EventEntry[] = [];
    await this.persons.add({ items: [], duplicates });
    for (let start = 0; start < fresh.length; start += eventsAtOnce) {
      const items: JournalItem[] = [];
      for (const entry of fresh.slice(start, start + eventsAtOnce)) {
        const item = entry.kind === "event" ? withProperties(entry) : entry;
        if (item !== undefined) items.push(item);
        else refused.push(entry as EventEntry);
        if (item?.kind === "event" && item.seq > this.loaded) this.storable.push(entry as EventEntry);
      }
      await this.persons.add({ items, duplicates: [] });
      this.flagUsage.add(items);
      this.onItems?.(items);
      this.dropped += droppedIn(items);
    }
    this.duplicates += duplicateCount;
    this.last = last;
    return refused;
  }

  /** Stores everything: the persons, then the events. */
  async store(): Promise<StoredStep> {
    this.events.begin({ lane: this.lane, last: this.last });
    const spikes = await this.persons.commit(this.last);
    await this.events.load(this.lane, this.last, this.storable);
    const { duplicates, dropped } = this;
    return { spikes, flagUsage: this.flagUsage.usage, events: this.storable.length, duplicates, dropped };
  }

  /** Forgets everything, when something has failed. */
  abandon(): void {
    this.persons.abandon();
  }
}

/** The uuids of the events of a step, which the store does not know yet. */
class SeenUuids {
  private readonly projects = new Map<number, Set<string>>();

  /** @returns false when it was there already. */
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
  seen: SeenUuids,
) {
  const fresh: Entry[] = [];
  let duplicateCount = 0;
  const counts = new Map<string, DuplicateCount>();
  for (const entry of entries) {
    if (entry.kind === "event" && !entry.hasMadeUuid) {
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

const microsPerDay = 86_400_000_000;

function countDuplicate(counts: Map<string, DuplicateCount>, entry: Entry): void {
  const { projectId, receivedMicros, historical } = entry;
  const key = `${projectId}:${historical}:${Math.floor(receivedMicros / microsPerDay)}`;
  const count = counts.get(key);
  if (count === undefined) counts.set(key, { projectId, receivedMicros, historical, count: 1 });
  else count.count += 1;
}
