/**
 * Writes persons, groups, warnings, usage and spikes: one transaction per step of the pipeline. Only the engine has an
 * instance. Batches of a step are applied in memory, so that each person is read and written once; a step is committed
 * with the lane's cursor, or not at all.
 */

import { eq } from "drizzle-orm";
import type { Lane } from "../journal/segment.ts";
import { tx } from "../lib/sqlite.ts";
import { microsPerDay } from "../lib/time.ts";
import type { IdentityStep, IdentityStore, PersonBatch } from "./batch.ts";
import { BatchState } from "./batch-state.ts";
import { writeState } from "./batch-write.ts";
import { applyDeletion } from "./deletion.ts";
import { sweepPendingOverrides } from "./hash-key-overrides.ts";
import { KeySetCollector } from "./key-set-gc.ts";
import type { PersonsDb } from "./open.ts";
import { laneCursors } from "./reader.ts";
import { laneCursor } from "./schema.ts";
import type { SpikeDetector, SpikeOptions, SpikeSignal } from "./spike-detector.ts";
import { pruneSpikes, restoreDetector, saveDetector, spikeRetentionDays } from "./spike-store.ts";
import { StepInput, type StepPart } from "./step-input.ts";
import { pruneWarnings, warningRetentionDays } from "./warnings.ts";

const housekeepingMicros = 3_600_000_000;
/** Persons in memory above which a step has to be committed; each can have 0.5 MB of properties. */
export const stepPersonsMax = 30_000;
/** Same for characters of their properties. */
export const stepCharactersMax = 64 * 1024 * 1024;

export class PersonStore implements IdentityStore {
  private readonly cursors: Record<Lane, number>;
  private detector: SpikeDetector | undefined;
  private housekeptMicros = 0;
  private readonly unusedLists: KeySetCollector;
  private isStepOpen = false;
  /** Set if other engines load other projects. */
  private share: ProjectShare | undefined;
  /** State of the last step, reusable because no other process writes persons. */
  private cachedState: CachedState | undefined;

  constructor(
    readonly db: PersonsDb,
    private readonly spikeSettings: SpikeOptions,
  ) {
    this.cursors = laneCursors(db);
    this.unusedLists = new KeySetCollector(db.$client);
  }

  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  start(lane: Lane): PersonStep {
    // Before reading: changes by another process from now on are detected by the next step.
    const version = this.version();
    const state = this.takeCached(version) ?? new BatchState(this.db.$client);
    return new PersonStep(this.db, state, this.startStep(lane), () => {
      if (state.settle()) this.cachedState = { state, version, isIdle: false };
    });
  }

  /** Restricts the store to the projects that this engine loads; call it again whenever they change. */
  useShare(share: ProjectShare): void {
    this.share = share;
    this.forgetCounts();
  }

  /**
   * Starts a step whose persons are stored elsewhere: usage, warnings and spikes are stored here.
   * @param cursor how far this engine has applied the lane, which is then stored elsewhere; default: the one stored here
   */
  startStep(lane: Lane, cursor?: number): OpenStep {
    this.isStepOpen = true;
    const applied = cursor ?? this.cursors[lane];
    const input = new StepInput(applied, (event) => {
      if (lane !== "realtime") return;
      const { projectId, receivedMicros, event: name, distinctId } = event;
      this.knownDetector().feed(projectId, receivedMicros, name, distinctId);
    });
    return {
      input,
      commit: (lastSeq, write) => {
        if (lastSeq <= applied) {
          this.isStepOpen = false;
          return [];
        }
        const spikes = this.change(() => {
          write();
          input.write(this.db, this.share?.idStep);
          if (cursor === undefined)
            this.db.update(laneCursor).set({ seq: lastSeq }).where(eq(laneCursor.lane, lane)).run();
          return lane === "realtime" ? this.saveDetector() : [];
        });
        if (cursor === undefined) this.cursors[lane] = lastSeq;
        this.isStepOpen = false;
        return spikes;
      },
      abandon: () => {
        this.forgetCounts();
        this.isStepOpen = false;
      },
    };
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
      return this.saveDetector();
    });
    if (isHousekeepingDue) this.housekeptMicros = nowMicros;
    return signals;
  }

  private knownDetector(): SpikeDetector {
    this.detector ??= restoreDetector(this.db, this.spikeSettings, this.share?.includes);
    return this.detector;
  }

  private saveDetector(): SpikeSignal[] {
    return saveDetector(this.db, this.knownDetector(), this.share?.idStep);
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

/** The projects that one of several engines loads. */
export interface ProjectShare {
  includes(projectId: number): boolean;
  /** New rows of a project get ids that are equal to the project's modulo this, so that engines never assign the same. */
  readonly idStep: number;
}

interface CachedState {
  state: BatchState;
  /** Version of the file when the step started. */
  version: number;
  /** Whether no step ran for some seconds. */
  isIdle: boolean;
}

/** A step of which the store knows everything but the persons. */
export interface OpenStep {
  readonly input: StepInput;
  /** Runs `write`, and stores usage, warnings, spikes and the cursor in the same transaction. */
  commit(lastSeq: number, write: () => void): SpikeSignal[];
  abandon(): void;
}

class PersonStep implements IdentityStep {
  /** @param keep lets the next step reuse the state of this one */
  constructor(
    private readonly db: PersonsDb,
    private readonly state: BatchState,
    private readonly open: OpenStep,
    private readonly keep: () => void,
  ) {}

  add(batch: PersonBatch): void {
    this.applyTo(this.state, this.open.input.accept(batch));
  }

  get isFull(): boolean {
    const { people } = this.state;
    return people.touched.size >= stepPersonsMax || this.state.loadedCharacters >= stepCharactersMax;
  }

  commit(lastSeq: number): SpikeSignal[] {
    const { deferred } = this.open.input;
    const spikes = this.open.commit(lastSeq, () => {
      writeState(this.db.$client, this.state);
      for (const { deletion, part } of deferred) {
        applyDeletion(this.db.$client, deletion);
        const state = new BatchState(this.db.$client);
        this.applyTo(state, part);
        writeState(this.db.$client, state);
      }
    });
    // The state does not reflect deletions.
    if (deferred.length === 0) this.keep();
    return spikes;
  }

  abandon(): void {
    this.open.abandon();
  }

  private applyTo(state: BatchState, part: StepPart): void {
    state.load(part.planned);
    this.open.input.apply(state, part);
  }
}
