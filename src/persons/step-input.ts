/** What a step of the pipeline does to persons, groups, warnings and usage, independently of how they are stored. */

import { type JournalEvent, type JournalItem, type JournalNote, noteCount } from "../journal/entry.ts";
import { sanitizeString } from "../lib/json/canonical.ts";
import type { PersonBatch, PlannedEvent } from "./batch.ts";
import { applyToGroups, type GroupState } from "./identity/group-rules.ts";
import type { Warning } from "./identity/ingestion-warning.ts";
import { getOperations } from "./identity/operations.ts";
import { applyToPersons } from "./identity/person-rules.ts";
import type { PersonsState } from "./identity/persons-state.ts";
import type { PersonsDb } from "./open.ts";
import { UsageTally } from "./usage.ts";
import { recordWarnings } from "./warnings.ts";

/** Events between two deletions. */
export interface StepPart {
  planned: PlannedEvent[];
  /** Ordered by `seq`, like `planned`. */
  personless: JournalEvent[];
}

/** A deletion, and the events after it. */
export interface DeferredPart {
  deletion: JournalNote;
  part: StepPart;
}

/** Contents of a batch other than persons and groups. */
interface Gathered extends StepPart {
  /** Ordered by `seq`; each applies to earlier events. */
  deletions: JournalNote[];
}

/** The persons and groups that a part refers to, in memory. */
export interface StepState {
  readonly people: PersonsState;
  readonly groups: GroupState;
  readonly personlessIds: { add(projectId: number, distinctId: string): void };
}

export class StepInput {
  /**
   * From the first deletion on, parts are applied when the step is stored: deletions require that earlier parts are
   * written.
   */
  readonly deferred: DeferredPart[] = [];
  private readonly warnings: Warning[] = [];
  private readonly usage = new UsageTally();
  /** Number of warnings before the deferred parts; undefined until they are applied. */
  private deferredWarningsAt: number | undefined;

  /** @param cursor items up to it have no effect @param feed counts an event for spikes */
  constructor(
    private readonly cursor: number,
    private readonly feed: (event: JournalEvent) => void,
  ) {}

  /** Takes a batch. @returns the part to apply before the next batch */
  accept({ items, duplicates }: PersonBatch): StepPart {
    const gathered = this.gather(items);
    for (const { projectId, receivedMicros, count } of duplicates)
      this.usage.add(projectId, receivedMicros, "duplicates", count);
    let rest: StepPart = gathered;
    let first: StepPart | undefined;
    for (const deletion of gathered.deletions) {
      const [before, after] = splitAt(rest, deletion.seq);
      first ??= this.defer(before);
      this.deferred.push({ deletion, part: { planned: [], personless: [] } });
      rest = after;
    }
    const last = this.defer(rest);
    return first ?? last;
  }

  /** Applies events to persons and groups, ordered by `seq`; the state contains what they refer to. */
  apply(state: StepState, { planned, personless }: StepPart): void {
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

  /** Applies deferred parts from the start: an earlier attempt to store the step has not counted. */
  restartDeferred(): void {
    this.deferredWarningsAt ??= this.warnings.length;
    this.warnings.length = this.deferredWarningsAt;
  }

  /** Writes warnings and usage, in the step's transaction. @param idStep see `ProjectShare` */
  write(db: PersonsDb, idStep?: number): void {
    recordWarnings(db, this.warnings, idStep);
    this.usage.write(db);
  }

  /** Appends a part to the last deletion. @returns the part itself before the first deletion, else an empty one */
  private defer(part: StepPart): StepPart {
    const last = this.deferred.at(-1);
    if (last === undefined) return part;
    for (const { event } of part.planned) {
      const retained = { ...event, properties: event.properties.retained() };
      last.part.planned.push({ event: retained, operations: getOperations(retained)! });
    }
    for (const event of part.personless) last.part.personless.push(event);
    return { planned: [], personless: [] };
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
    this.feed(event);
  }

  private readNote(note: JournalNote): void {
    const { projectId, type, details, receivedMicros } = note;
    const count = noteCount(note);
    this.warnings.push({ projectId, type, details, receivedMicros, count });
    if (note.kind === "drop") this.usage.add(projectId, receivedMicros, "dropped", count);
  }
}

function splitAt({ planned, personless }: StepPart, seq: number): [before: StepPart, after: StepPart] {
  const is = (isBefore: boolean): StepPart => ({
    planned: planned.filter(({ event }) => event.seq < seq === isBefore),
    personless: personless.filter((event) => event.seq < seq === isBefore),
  });
  return [is(true), is(false)];
}

function recordPersonless({ personlessIds }: StepState, { projectId, distinctId }: JournalEvent): void {
  personlessIds.add(projectId, sanitizeString(distinctId));
}
