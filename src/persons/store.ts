/**
 * Writes persons, groups, warnings, usage and spikes: one transaction per step of the pipeline. Only the engine has an
 * instance. Batches of a step are applied in memory, so that each person is read and written once; a step is committed
 * with the lane's cursor, or not at all.
 */

import { eq } from "drizzle-orm";
import { type JournalEvent, type JournalItem, type JournalNote, noteCount } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { sanitizeString } from "../lib/json/canonical.ts";
import { tx } from "../lib/sqlite/open.ts";
import { microsPerDay } from "../lib/time.ts";
import type { DuplicateCount, IdentityStep, IdentityStore, PeopleBatch, PlannedEvent } from "./batch.ts";
import { BatchState } from "./batch-state.ts";
import { writeState } from "./batch-write.ts";
import { applyDeletion } from "./deletion.ts";
import { sweepPendingOverrides } from "./hash-key-overrides.ts";
import { applyToGroups } from "./identity/group-rules.ts";
import type { Warning } from "./identity/ingestion-warning.ts";
import { getOperations } from "./identity/operations.ts";
import { applyToPersons } from "./identity/person-rules.ts";
import { KeySetCollector } from "./key-set-gc.ts";
import type { PeopleDb } from "./open.ts";
import { laneCursors } from "./reader.ts";
import { laneCursor } from "./schema.ts";
import type { SpikeDetector, SpikeOptions, SpikeSignal } from "./spikes/detector.ts";
import { pruneSpikes, restoreDetector, saveDetector, spikeRetentionDays } from "./spikes/spike-store.ts";
import { UsageTally } from "./usage.ts";
import { pruneWarnings, recordWarnings, warningRetentionDays } from "./warnings.ts";

/** Contents of a batch other than persons and groups. */
interface Gathered {
  planned: PlannedEvent[];
  /** Ordered by `seq`, like `planned`. */
  personless: JournalEvent[];
  /** Ordered by `seq`; each applies to earlier events. */
  deletions: JournalNote[];
}

/** Events between two deletions. */
type Part = Pick<Gathered, "planned" | "personless">;

const housekeepingMicros = 3_600_000_000;
/** Persons in memory above which a step has to be committed; each can have 0.5 MB of properties. */
const stepPersonsMax = 30_000;
/** Same for characters of their properties. */
const stepCharactersMax = 64 * 1024 * 1024;

export class PeopleStore implements IdentityStore {
  private readonly cursors: Record<Lane, number>;
  private detector: SpikeDetector | undefined;
  private housekeptMicros = 0;
  private readonly unusedLists: KeySetCollector;
  private isStepOpen = false;
  /** State of the last step, reusable because no other process writes persons. */
  private cachedState: CachedState | undefined;

  constructor(
    readonly db: PeopleDb,
    private readonly spikeSettings: SpikeOptions,
  ) {
    this.cursors = laneCursors(db);
    this.unusedLists = new KeySetCollector(db.$client);
  }

  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  start(lane: Lane): PeopleStep {
    this.isStepOpen = true;
    // Before reading: changes by another process from now on are detected by the next step.
    const version = this.version();
    const state = this.takeCached(version) ?? new BatchState(this.db.$client);
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
        if (state.settle()) this.cachedState = { state, version, isIdle: false };
      },
      abandon: () => {
        this.forgetCounts();
        this.isStepOpen = false;
      },
    });
  }

  private takeCached(version: number): BatchState | undefined {
    const { cachedState } = this;
    this.cachedState = undefined;
    // An operator may have modified the file.
    return cachedState?.version === version ? cachedState.state : undefined;
  }

  /** Changes when another connection has modified the file. */
  private version(): number {
    const query = this.db.$client.query<{ data_version: number }, []>("PRAGMA data_version");
    return query.get()!.data_version;
  }

  /**
   * Closes spikes, prunes warnings and overrides, and collects unused property key sets. Call it every few seconds
   * while the realtime lane has no backlog: a spike ends when no newer events exist.
   */
  tick(nowMicros: number): SpikeSignal[] {
    // The detector's counts of an open step must not be stored without the step.
    if (this.isStepOpen) return [];
    if (this.cachedState?.isIdle) this.cachedState = undefined;
    else if (this.cachedState !== undefined) this.cachedState.isIdle = true;
    this.unusedLists.turn(nowMicros);
    sweepPendingOverrides(this.db.$client, nowMicros);
    const detector = this.knownDetector();
    detector.tick(nowMicros);
    const isHousekeepingDue = nowMicros - this.housekeptMicros >= housekeepingMicros;
    if (!isHousekeepingDue && !detector.hasChanges) return [];
    const { db } = this;
    const signals = this.change(() => {
      if (isHousekeepingDue) {
        pruneWarnings(db, nowMicros - warningRetentionDays * microsPerDay);
        pruneSpikes(db, nowMicros - spikeRetentionDays * microsPerDay);
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

  /** Resets the detector to its stored state. */
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

interface CachedState {
  state: BatchState;
  /** Version of the file when the step started. */
  version: number;
  /** Whether no step ran for some seconds. */
  isIdle: boolean;
}

/** What a step needs of its store. */
interface StepOwner {
  /** Counts an event for spikes. */
  feed(event: JournalEvent): void;
  /** Runs `write` and moves the cursor in one transaction. */
  commit(lastSeq: number, write: () => void): SpikeSignal[];
  /** Lets the next step reuse the state of this one. */
  keep(): void;
  abandon(): void;
}

class PeopleStep implements IdentityStep {
  /**
   * From the first deletion on, parts are applied in the transaction: deletions require that earlier parts are written.
   */
  private readonly deferred: { deletion: JournalNote; part: Part }[] = [];
  private readonly warnings: Warning[] = [];
  private readonly usage = new UsageTally();

  constructor(
    private readonly db: PeopleDb,
    private readonly cursor: number,
    private readonly state: BatchState,
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
        const state = new BatchState(this.db.$client);
        this.applyTo(state, part);
        writeState(this.db.$client, state);
      }
      recordWarnings(this.db, this.warnings);
      this.usage.write(this.db);
    });
    // The state does not reflect deletions.
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
      const retained = { ...event, properties: event.properties.retained() };
      last.part.planned.push({ event: retained, operations: getOperations(retained)! });
    }
    for (const event of part.personless) last.part.personless.push(event);
  }

  /** Applies events to persons and groups, ordered by `seq`. */
  private applyTo(state: BatchState, { planned, personless }: Part): void {
    state.load(planned);
    let noted = 0;
    for (const { event, operations, own } of planned) {
      for (; noted < personless.length && personless[noted]!.seq < event.seq; noted += 1)
        recordPersonless(state, personless[noted]!);
      state.people.receivedMicros = event.receivedMicros;
      for (const warning of operations.warnings) this.warnings.push(warning);
      for (const warning of applyToPersons(state.people, event, operations, own)) this.warnings.push(warning);
      for (const warning of applyToGroups(state.groups, event, operations)) this.warnings.push(warning);
    }
    for (; noted < personless.length; noted += 1) recordPersonless(state, personless[noted]!);
  }

  /** Derives operations from items, independently of stored data. */
  private gather(items: readonly JournalItem[]): Gathered {
    const gathered: Gathered = { planned: [], personless: [], deletions: [] };
    for (const item of items) {
      if (item.seq <= this.cursor) continue;
      if (item.kind === "event") {
        this.countEvent(item);
        const operations = getOperations(item);
        if (operations === undefined) gathered.personless.push(item);
        else gathered.planned.push({ event: item, operations });
      } else if (item.kind === "person_deleted") gathered.deletions.push(item);
      else this.readNote(item);
    }
    return gathered;
  }

  private countEvent(event: JournalEvent): void {
    const { projectId, receivedMicros, historical, mode } = event;
    const anonymity = mode === "full" ? "identified" : "anonymous";
    this.usage.add(projectId, receivedMicros, historical ? "historical" : anonymity);
    this.owner.feed(event);
  }

  private readNote(note: JournalNote): void {
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

function recordPersonless({ personlessIds }: BatchState, { projectId, distinctId }: JournalEvent): void {
  personlessIds.add(projectId, sanitizeString(distinctId));
}

function countDuplicates(usage: UsageTally, { projectId, receivedMicros, count }: DuplicateCount): void {
  usage.add(projectId, receivedMicros, "duplicates", count);
}
