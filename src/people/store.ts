/**
 * The writing side of persons, groups, warnings, usage and spikes: one transaction per step of the pipeline.
 *
 * Only the engine makes one, once. What a step brings is applied in memory, batch after batch, so that a person whom many
 * events name is read once and written once; it is stored whole, with the lane's cursor, or not at all.
 */

import { eq } from "drizzle-orm";
import { type JournalEvent, type JournalItem, type JournalNote, noteCount } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { tx } from "../lib/sqlite/open.ts";
import { microsPerDay } from "../lib/time.ts";
import { storableText } from "../lib/unicode.ts";
import type { DuplicateCount, IdentityStep, IdentityStore, PeopleBatch, PlannedEvent } from "./batch.ts";
import { StepState } from "./batch-load.ts";
import { writeState } from "./batch-write.ts";
import { applyDeletion } from "./deletion.ts";
import { sweepPendingOverrides } from "./hash-key-overrides.ts";
import { applyToGroups } from "./identity/group-rules.ts";
import { operationsOf } from "./identity/operations.ts";
import { applyToPersons } from "./identity/person-rules.ts";
import type { Warning } from "./identity/warning.ts";
import type { PeopleDb } from "./open.ts";
import { laneCursors } from "./reader.ts";
import { laneCursor } from "./schema.ts";
import type { SpikeDetector, SpikeSettings, SpikeSignal } from "./spikes/detector.ts";
import { forgetSpikes, restoreDetector, saveDetector, spikeRetentionDays } from "./spikes/spike-store.ts";
import { UnusedLists } from "./unused-lists.ts";
import { UsageTally } from "./usage.ts";
import { forgetWarnings, recordWarnings, warningRetentionDays } from "./warnings.ts";

/** What a batch brings besides persons and groups. */
interface Gathered {
  planned: PlannedEvent[];
  /** In order of `seq`, as `planned`. */
  personless: JournalEvent[];
  /** In order of `seq`; each counts for the events before it. */
  deletions: JournalNote[];
}

/** Events between two deletions. */
type Part = Pick<Gathered, "planned" | "personless">;

const housekeepingMicros = 3_600_000_000;
/** Persons that a step holds in memory before it has to be committed; each may have half a megabyte of properties. */
const stepPersonsMax = 30_000;
/** The same for the text of their properties. */
const stepCharactersMax = 64 * 1024 * 1024;

export class PeopleStore implements IdentityStore {
  private readonly cursors: Record<Lane, number>;
  private detector: SpikeDetector | undefined;
  private housekeptMicros = 0;
  private readonly unusedLists: UnusedLists;
  private isStepOpen = false;
  /** What the last step had in memory; nobody else writes persons. */
  private kept: KeptState | undefined;

  constructor(
    readonly db: PeopleDb,
    private readonly spikeSettings: SpikeSettings,
  ) {
    this.cursors = laneCursors(db);
    this.unusedLists = new UnusedLists(db.$client);
  }

  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  begin(lane: Lane): PeopleStep {
    this.isStepOpen = true;
    // Before anything is read: what another process writes from now on is seen by the next step.
    const version = this.version();
    const state = this.takeKept(version) ?? new StepState(this.db.$client);
    return new PeopleStep(this.db, this.cursors[lane], state, {
      feed: (event) => {
        if (lane !== "realtime") return;
        const { projectId, receivedMicros, event: name, distinctId } = event;
        this.knownDetector().feed(projectId, receivedMicros, name, distinctId);
      },
      commit: (lastSeq, write) => {
        if (lastSeq <= this.cursors[lane]) {
          this.isStepOpen = false;
          return [];
        }
        const spikes = this.change(() => {
          write();
          this.db.update(laneCursor).set({ seq: lastSeq }).where(eq(laneCursor.lane, lane)).run();
          return lane === "realtime" ? saveDetector(this.db, this.knownDetector()) : [];
        });
        this.cursors[lane] = lastSeq;
        this.isStepOpen = false;
        return spikes;
      },
      keep: () => {
        if (state.settle()) this.kept = { state, version, isIdle: false };
      },
      abandon: () => {
        this.forgetCounts();
        this.isStepOpen = false;
      },
    });
  }

  private takeKept(version: number): StepState | undefined {
    const { kept } = this;
    this.kept = undefined;
    // An operator may have changed the file by hand.
    return kept?.version === version ? kept.state : undefined;
  }

  /** Another number whenever another connection has changed the file. */
  private version(): number {
    const query = this.db.$client.query<{ data_version: number }, []>("PRAGMA data_version");
    return query.get()!.data_version;
  }

  /**
   * Closes spikes that are over, forgets old warnings, expired overrides, and lists of properties' names that nobody has
   * any more.
   *
   * Call it every few seconds while the realtime lane has no backlog: a spike ends when no more events are known.
   */
  tick(nowMicros: number): SpikeSignal[] {
    // What the detector has counted of an open step must not be stored without it.
    if (this.isStepOpen) return [];
    if (this.kept?.isIdle) this.kept = undefined;
    else if (this.kept !== undefined) this.kept.isIdle = true;
    this.unusedLists.turn(nowMicros);
    sweepPendingOverrides(this.db.$client, nowMicros);
    const detector = this.knownDetector();
    detector.tick(nowMicros);
    const isHousekeepingDue = nowMicros - this.housekeptMicros >= housekeepingMicros;
    if (!isHousekeepingDue && !detector.hasChanges) return [];
    const { db } = this;
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

  private knownDetector(): SpikeDetector {
    this.detector ??= restoreDetector(this.db, this.spikeSettings);
    return this.detector;
  }

  /** The detector starts again from what is stored. */
  private forgetCounts(): void {
    this.detector = undefined;
  }

  private change<Result>(run: () => Result): Result {
    try {
      return tx(this.db, run);
    } catch (error) {
      this.forgetCounts();
      throw error;
    }
  }
}

interface KeptState {
  state: StepState;
  /** Of the file, when the step began. */
  version: number;
  /** Since some seconds there was no step. */
  isIdle: boolean;
}

/** What a step needs of its store. */
interface StepOwner {
  /** Counts an event for spikes. */
  feed(event: JournalEvent): void;
  /** Runs `write` and moves the cursor, in one transaction. */
  commit(lastSeq: number, write: () => void): SpikeSignal[];
  /** The next step may begin with the state of this one. */
  keep(): void;
  abandon(): void;
}

class PeopleStep implements IdentityStep {
  /** From the first deletion on, everything waits for the transaction: what it deletes must have been written. */
  private readonly deferred: { deletion: JournalNote; part: Part }[] = [];
  private readonly warnings: Warning[] = [];
  private readonly usage = new UsageTally();

  constructor(
    private readonly db: PeopleDb,
    private readonly cursor: number,
    private readonly state: StepState,
    private readonly owner: StepOwner,
  ) {}

  add({ items, duplicates }: PeopleBatch): void {
    const gathered = this.gather(items);
    for (const duplicate of duplicates) countDuplicates(this.usage, duplicate);
    let part: Part = gathered;
    for (const deletion of gathered.deletions) {
      const [before, after] = splitAt(part, deletion.seq);
      this.take(before);
      this.deferred.push({ deletion, part: { planned: [], personless: [] } });
      part = after;
    }
    this.take(part);
  }

  get isFull(): boolean {
    const { people } = this.state;
    return people.touched.size >= stepPersonsMax || this.state.loadedCharacters >= stepCharactersMax;
  }

  commit(lastSeq: number): SpikeSignal[] {
    const spikes = this.owner.commit(lastSeq, () => {
      writeState(this.db.$client, this.state);
      for (const { deletion, part } of this.deferred) {
        applyDeletion(this.db.$client, deletion);
        const state = new StepState(this.db.$client);
        this.applyTo(state, part);
        writeState(this.db.$client, state);
      }
      recordWarnings(this.db, this.warnings);
      this.usage.write(this.db);
    });
    // What is deleted is not known here.
    if (this.deferred.length === 0) this.owner.keep();
    return spikes;
  }

  abandon(): void {
    this.owner.abandon();
  }

  private take(part: Part): void {
    const last = this.deferred.at(-1);
    if (last === undefined) {
      this.applyTo(this.state, part);
      return;
    }
    for (const { event } of part.planned) {
      const kept = { ...event, properties: event.properties.kept() };
      last.part.planned.push({ event: kept, operations: operationsOf(kept)! });
    }
    for (const event of part.personless) last.part.personless.push(event);
  }

  /** Applies events to persons and groups, in order of `seq`. */
  private applyTo(state: StepState, { planned, personless }: Part): void {
    state.load(planned);
    let noted = 0;
    for (const { event, operations, own } of planned) {
      for (; noted < personless.length && personless[noted]!.seq < event.seq; noted += 1)
        notePersonless(state, personless[noted]!);
      state.people.receivedMicros = event.receivedMicros;
      for (const warning of operations.warnings) this.warnings.push(warning);
      for (const warning of applyToPersons(state.people, event, operations, own)) this.warnings.push(warning);
      for (const warning of applyToGroups(state.groups, event, operations)) this.warnings.push(warning);
    }
    for (; noted < personless.length; noted += 1) notePersonless(state, personless[noted]!);
  }

  /** What the items ask for, as far as it depends on nothing but themselves. */
  private gather(items: readonly JournalItem[]): Gathered {
    const gathered: Gathered = { planned: [], personless: [], deletions: [] };
    for (const item of items) {
      if (item.seq <= this.cursor) continue;
      if (item.kind === "event") {
        this.countEvent(item);
        const operations = operationsOf(item);
        if (operations === undefined) gathered.personless.push(item);
        else gathered.planned.push({ event: item, operations });
      } else if (item.kind === "person_deleted") gathered.deletions.push(item);
      else this.takeNote(item);
    }
    return gathered;
  }

  private countEvent(event: JournalEvent): void {
    const { projectId, receivedMicros, historical, mode } = event;
    const anonymity = mode === "full" ? "identified" : "anonymous";
    this.usage.add(projectId, receivedMicros, historical ? "historical" : anonymity);
    this.owner.feed(event);
  }

  private takeNote(note: JournalNote): void {
    const { projectId, type, details, receivedMicros } = note;
    const count = noteCount(note);
    this.warnings.push({ projectId, type, details, receivedMicros, count });
    if (note.kind === "drop") this.usage.add(projectId, receivedMicros, "dropped", count);
  }
}

function splitAt({ planned, personless }: Part, seq: number): [before: Part, after: Part] {
  const is = (isBefore: boolean): Part => ({
    planned: planned.filter(({ event }) => event.seq < seq === isBefore),
    personless: personless.filter((event) => event.seq < seq === isBefore),
  });
  return [is(true), is(false)];
}

function notePersonless({ personlessIds }: StepState, { projectId, distinctId }: JournalEvent): void {
  personlessIds.add(projectId, storableText(distinctId));
}

function countDuplicates(usage: UsageTally, { projectId, receivedMicros, count }: DuplicateCount): void {
  usage.add(projectId, receivedMicros, "duplicates", count);
}
