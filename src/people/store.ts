/**
 * The writing side of persons, groups, warnings, usage and spikes: one transaction per batch of the pipeline.
 *
 * Only the engine makes one, once. A batch is applied whole, with the lane's cursor, or not at all.
 */

import { eq } from "drizzle-orm";
import { type JournalEvent, type JournalNote, noteCount } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { tx } from "../lib/sqlite/open.ts";
import { storableText } from "../lib/unicode.ts";
import type { DuplicateCount, IdentityStore, PeopleBatch, PlannedEvent } from "./batch.ts";
import { type BatchState, loadState } from "./batch-load.ts";
import { writeState } from "./batch-write.ts";
import { applyDeletion } from "./deletion.ts";
import { applyToGroups } from "./identity/group-rules.ts";
import { operationsOf } from "./identity/operations.ts";
import { applyToPersons } from "./identity/person-rules.ts";
import type { Warning } from "./identity/warning.ts";
import type { PeopleDb } from "./open.ts";
import { laneCursors } from "./reader.ts";
import { laneCursor } from "./schema.ts";
import type { SpikeDetector, SpikeSettings, SpikeSignal } from "./spikes/detector.ts";
import { forgetSpikes, restoreDetector, saveDetector, spikeRetentionDays } from "./spikes/spike-store.ts";
import { UsageTally } from "./usage.ts";
import { forgetWarnings, recordWarnings, warningRetentionDays } from "./warnings.ts";

/** What a batch gathers besides persons and groups. */
interface Gathered {
  planned: PlannedEvent[];
  /** In order of `seq`, as `planned`. */
  personless: JournalEvent[];
  /** In order of `seq`; each counts for the events before it. */
  deletions: JournalNote[];
  warnings: Warning[];
  usage: UsageTally;
}

/** Events between two deletions. */
type Part = Pick<Gathered, "planned" | "personless">;

const microsPerDay = 86_400_000_000;
const housekeepingMicros = 3_600_000_000;

export class PeopleStore implements IdentityStore {
  private readonly cursors: Record<Lane, number>;
  private detector: SpikeDetector | undefined;
  private housekeptMicros = 0;

  constructor(
    readonly db: PeopleDb,
    private readonly spikeSettings: SpikeSettings,
  ) {
    this.cursors = laneCursors(db);
  }

  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  /**
   * Applies everything between the lane's cursor and `lastSeq` in one transaction and moves the cursor.
   *
   * Items at or before the cursor have no effect again: a worker that could not load a batch after it was applied hands
   * it over once more.
   *
   * @returns spikes that began or ended.
   * @throws whatever SQLite throws; nothing was changed then.
   */
  apply(batch: PeopleBatch): SpikeSignal[] {
    const { lane, lastSeq } = batch;
    if (lastSeq <= this.cursors[lane]) return [];
    const gathered = this.gather(batch);
    const spikes = this.change(() => {
      let part: Part = gathered;
      for (const deletion of gathered.deletions) {
        const [before, after] = splitAt(part, deletion.seq);
        gathered.warnings.push(...this.applyPart(before));
        applyDeletion(this.db.$client, deletion);
        part = after;
      }
      gathered.warnings.push(...this.applyPart(part));
      recordWarnings(this.db, gathered.warnings);
      gathered.usage.write(this.db);
      this.db.update(laneCursor).set({ seq: lastSeq }).where(eq(laneCursor.lane, lane)).run();
      return this.feedSpikes(batch);
    });
    this.cursors[lane] = lastSeq;
    return spikes;
  }

  /** Applies events to persons and groups; inside the batch's transaction. */
  private applyPart({ planned, personless }: Part): Warning[] {
    if (planned.length === 0 && personless.length === 0) return [];
    const state = loadState(this.db.$client, planned);
    const warnings: Warning[] = [];
    let noted = 0;
    for (const { event, operations } of planned) {
      for (; noted < personless.length && personless[noted]!.seq < event.seq; noted += 1)
        notePersonless(state, personless[noted]!);
      warnings.push(
        ...operations.warnings,
        ...applyToPersons(state.people, event, operations),
        ...applyToGroups(state.groups, event, operations),
      );
    }
    for (; noted < personless.length; noted += 1) notePersonless(state, personless[noted]!);
    writeState(this.db.$client, state);
    return warnings;
  }

  /**
   * Closes spikes that are over and forgets old warnings.
   *
   * Call it every few seconds while the realtime lane has no backlog: a spike ends when no more events are known.
   */
  tick(nowMicros: number): SpikeSignal[] {
    this.detector ??= restoreDetector(this.db, this.spikeSettings);
    this.detector.tick(nowMicros);
    const isHousekeepingDue = nowMicros - this.housekeptMicros >= housekeepingMicros;
    if (!isHousekeepingDue && !this.detector.hasChanges) return [];
    const { db } = this;
    const detector = this.detector;
    const signals = this.change(() => {
      if (isHousekeepingDue) {
        forgetWarnings(db, nowMicros - warningRetentionDays * microsPerDay);
        forgetSpikes(db, nowMicros - spikeRetentionDays * microsPerDay);
      }
      return saveDetector(db, detector);
    });
    if (isHousekeepingDue) this.housekeptMicros = nowMicros;
    return signals;
  }

  /** What the items ask for, as far as it depends on nothing but themselves. */
  private gather({ lane, items, duplicates }: PeopleBatch): Gathered {
    const gathered: Gathered = {
      planned: [],
      personless: [],
      deletions: [],
      warnings: [],
      usage: new UsageTally(),
    };
    const cursor = this.cursors[lane];
    for (const item of items) {
      if (item.seq <= cursor) continue;
      if (item.kind === "event") gatherEvent(gathered, item);
      else if (item.kind === "person_deleted") gathered.deletions.push(item);
      else gatherNote(gathered, item);
    }
    for (const duplicate of duplicates) countDuplicates(gathered, duplicate);
    return gathered;
  }

  private feedSpikes({ lane, items }: PeopleBatch): SpikeSignal[] {
    if (lane !== "realtime") return [];
    this.detector ??= restoreDetector(this.db, this.spikeSettings);
    const cursor = this.cursors[lane];
    for (const item of items) {
      if (item.kind !== "event" || item.seq <= cursor) continue;
      this.detector.feed(item.projectId, item.receivedMicros, item.event, item.distinctId);
    }
    return saveDetector(this.db, this.detector);
  }

  /** A transaction; when it fails, the detector forgets what it counted in it. */
  private change<Result>(run: () => Result): Result {
    try {
      return tx(this.db, run);
    } catch (error) {
      this.detector = undefined;
      throw error;
    }
  }
}

function gatherEvent({ planned, personless, usage }: Gathered, event: JournalEvent): void {
  const { projectId, receivedMicros, historical, mode } = event;
  const anonymity = mode === "full" ? "identified" : "anonymous";
  usage.add(projectId, receivedMicros, historical ? "historical" : anonymity);
  const operations = operationsOf(event);
  if (operations === undefined) personless.push(event);
  else planned.push({ event, operations });
}

function splitAt({ planned, personless }: Part, seq: number): [before: Part, after: Part] {
  const is = (isBefore: boolean): Part => ({
    planned: planned.filter(({ event }) => event.seq < seq === isBefore),
    personless: personless.filter((event) => event.seq < seq === isBefore),
  });
  return [is(true), is(false)];
}

function notePersonless({ personlessIds }: BatchState, { projectId, distinctId }: JournalEvent): void {
  personlessIds.add(projectId, storableText(distinctId));
}

function gatherNote({ warnings, usage }: Gathered, note: JournalNote): void {
  const { projectId, type, details, receivedMicros } = note;
  const count = noteCount(note);
  warnings.push({ projectId, type, details, receivedMicros, count });
  if (note.kind === "drop") usage.add(projectId, receivedMicros, "dropped", count);
}

function countDuplicates({ usage }: Gathered, { projectId, receivedMicros, count }: DuplicateCount): void {
  usage.add(projectId, receivedMicros, "duplicates", count);
}
