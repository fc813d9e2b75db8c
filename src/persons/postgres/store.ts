/**
 * Stores the steps of the pipeline as rows in PostgreSQL. Usage, warnings and spikes are in the replicated file; both are
 * one transaction with the cursor.
 */

import type { Sql } from "postgres";
import type { Postgres, Transaction } from "../../cluster/connection.ts";
import type { Lane } from "../../journal/segment.ts";
import { OperatorActionError } from "../../lib/errors.ts";
import type { IdentityStep, IdentityStore, PersonBatch } from "../batch.ts";
import type { NewGroupType } from "../identity/group-rules.ts";
import type { PersonsDb } from "../open.ts";
import { laneCursors } from "../reader.ts";
import type { SpikeSignal } from "../spike-detector.ts";
import type { StepPart } from "../step-input.ts";
import { type OpenStep, type PersonStore, stepCharactersMax, stepPersonsMax } from "../store.ts";
import { deletePerson } from "./merge-rows.ts";
import { RowState, type Run } from "./row-state.ts";
import { writeOtherRows, writePersonRows, writeRows } from "./writer.ts";

/** How far persons are applied. */
export interface StepCursor {
  cursor(lane: Lane): number;
  /** Locks the position until the transaction ends. @returns false: an earlier attempt has committed the step */
  lock(t: Transaction, lane: Lane, lastSeq: number): Promise<boolean>;
  write(t: Transaction, lane: Lane, lastSeq: number): Promise<void>;
  /** Called after a commit. */
  committed(lane: Lane, lastSeq: number): void;
}

export interface RowStoreDeps {
  postgres: Postgres;
  /** The rest of the store, in the replicated file. */
  people: PersonStore;
  /** Of this engine, if several apply persons; default: that of the store. */
  cursor?: StepCursor;
  /**
   * Commits the changes of the replicated file together with rows; retries until it is done. If `write` throws, nothing
   * is committed, and no other changes of the file are committed before it is done.
   * @param prepare runs before `write`, while other nodes can change the store
   */
  commit(write: (t: Transaction) => Promise<void>, prepare: (t: Transaction) => Promise<void>): Promise<void>;
}

/** The rows lack entries that the replicated file has, and that may be deleted from the journal. */
class PersonRowsBehindError extends OperatorActionError {
  readonly code = "person_rows_behind";
  override readonly hint = "Restore PostgreSQL from its last consistent backup.";
  constructor(lane: Lane, has: number, known: number) {
    super(
      `The persons in PostgreSQL end at ${lane} entry ${has}, but entry ${known} was loaded: the tables were changed ` +
        "or restored separately.",
    );
  }
}

/** The position of the only engine. */
function singleCursor(people: PersonStore): StepCursor {
  return {
    cursor: (lane) => people.cursor(lane),
    lock: async (t, lane, lastSeq) => {
      const [cursor] = await t<{ last: number }[]>`
        SELECT last_seq::float8 AS last FROM flagkeep.person_cursor WHERE lane = ${lane} FOR UPDATE`;
      // Otherwise the answer to an earlier commit of this step was lost.
      return cursor!.last < lastSeq;
    },
    write: async (t, lane, lastSeq) => {
      await t`UPDATE flagkeep.person_cursor SET last_seq = ${lastSeq} WHERE lane = ${lane}`;
    },
    committed: () => undefined,
  };
}

/** @throws {PersonRowsBehindError} @throws {PostgresUnreachableError} */
export async function assertRowsCurrent(people: PersonsDb, postgres: Postgres): Promise<void> {
  const cursors = laneCursors(people);
  const rows = await postgres.run(
    (sql) =>
      sql<{ lane: Lane; last: number }[]>`SELECT lane, last_seq::float8 AS last FROM flagkeep.person_cursor`,
  );
  for (const { lane, last } of rows)
    if (last < cursors[lane]) throw new PersonRowsBehindError(lane, last, cursors[lane]);
}

export class RowStore implements IdentityStore {
  /** State of the last step, reusable because no other process writes these persons. */
  private cached: RowState | undefined;
  private readonly position: StepCursor;

  constructor(private readonly deps: RowStoreDeps) {
    this.position = deps.cursor ?? singleCursor(deps.people);
  }

  cursor(lane: Lane): number {
    return this.position.cursor(lane);
  }

  /** Discards persons in memory: another engine may have changed them. */
  reload(): void {
    this.cached = undefined;
  }

  start(lane: Lane): RowStep {
    const { cached = this.newState() } = this;
    this.cached = undefined;
    const { people, cursor } = this.deps;
    const open = people.startStep(lane, cursor?.cursor(lane));
    return new RowStep(lane, { ...this.deps, cursor: this.position }, cached, open, {
      newState: (newTypes, excluded) => this.newState(newTypes, excluded),
      keep: (state) => {
        if (state.settle()) this.cached = state;
      },
    });
  }

  private newState(newTypes: readonly NewGroupType[] = [], excluded: readonly NewGroupType[] = []): RowState {
    const types = this.deps.people.db.$client.query<{ name: string; typeIndex: number }, [number]>(
      "SELECT name, type_index AS typeIndex FROM group_type WHERE project_id = ?",
    );
    return new RowState({
      groupTypes: (projectId) => [
        ...types
          .all(projectId)
          .filter(({ name }) => !excluded.some((type) => type.projectId === projectId && type.name === name)),
        ...newTypes.filter((type) => type.projectId === projectId),
      ],
    });
  }
}

/** Flags are evaluated and groups are read with the types in the file of each node. */
function addGroupTypes({ $client: client }: PersonsDb, newTypes: readonly NewGroupType[]): void {
  const add = client.query(
    "INSERT INTO group_type (project_id, type_index, name, created_at) VALUES (?, ?, ?, ?)",
  );
  for (const { projectId, typeIndex, name, createdMicros } of newTypes)
    add.run(projectId, typeIndex, name, createdMicros);
}

interface StepOwner {
  /** @param newTypes group types of this step @param excluded those that it has added to the file */
  newState(newTypes: readonly NewGroupType[], excluded: readonly NewGroupType[]): RowState;
  /** Lets the next step reuse the state of this one. */
  keep(state: RowState): void;
}

class RowStep implements IdentityStep {
  /** Group types that an earlier attempt to commit has added to the file; their rows were rolled back. */
  private addedTypes: readonly NewGroupType[] = [];

  constructor(
    private readonly lane: Lane,
    private readonly deps: Required<RowStoreDeps>,
    private readonly state: RowState,
    private readonly open: OpenStep,
    private readonly owner: StepOwner,
  ) {}

  async add(batch: PersonBatch): Promise<void> {
    const { postgres } = this.deps;
    // Reading is repeated while PostgreSQL is unavailable: nothing is applied before everything is read.
    const run: Run = (work) => postgres.untilDone(() => postgres.run((sql) => work(sql)));
    await this.applyTo(this.state, this.open.input.accept(batch), run);
  }

  get isFull(): boolean {
    const { people, loadedCharacters } = this.state;
    return people.touched.size >= stepPersonsMax || loadedCharacters >= stepCharactersMax;
  }

  async commit(lastSeq: number): Promise<SpikeSignal[]> {
    const { deferred } = this.open.input;
    const { cursor } = this.deps;
    if (lastSeq <= cursor.cursor(this.lane)) {
      this.open.abandon();
      return [];
    }
    let spikes: SpikeSignal[] | undefined;
    let isCommitted = false;
    const prepare = async (t: Transaction) => {
      isCommitted = !(await cursor.lock(t, this.lane, lastSeq));
      if (!isCommitted) await writePersonRows(t, this.state);
    };
    await this.deps.commit(async (t) => {
      const newTypes = isCommitted ? [] : await this.write(t, lastSeq);
      // Once: if the commit has to be repeated, the changes of the file are still there.
      spikes ??= this.open.commit(lastSeq, () => {
        addGroupTypes(this.deps.people.db, newTypes);
        this.addedTypes = newTypes;
      });
    }, prepare);
    cursor.committed(this.lane, lastSeq);
    // The state does not reflect deletions.
    if (deferred.length === 0) this.owner.keep(this.state);
    return spikes!;
  }

  abandon(): void {
    this.open.abandon();
  }

  /** @returns new group types, which the replicated file has as well */
  private async write(t: Transaction, lastSeq: number): Promise<NewGroupType[]> {
    const { lane, state } = this;
    const { cursor } = this.deps;
    await writeOtherRows(t, state);
    const newTypes = [...state.groups.newTypes];
    this.open.input.restartDeferred();
    const run: Run = (work) => work(t as unknown as Sql);
    for (const { deletion, part } of this.open.input.deferred) {
      await deletePerson(t, deletion);
      const later = this.owner.newState(newTypes, this.addedTypes);
      await this.applyTo(later, part, run);
      await writeRows(t, later);
      newTypes.push(...later.groups.newTypes);
    }
    await cursor.write(t, lane, lastSeq);
    return newTypes;
  }

  private async applyTo(state: RowState, part: StepPart, run: Run): Promise<void> {
    await state.load(part.planned, run);
    this.open.input.apply(state, part);
  }
}
