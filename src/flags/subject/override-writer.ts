/**
 * Stores hash-key overrides behind the answers that need them.
 *
 * Only the engine writes to the store of persons, and an answer does not wait for it: what is on its way is kept here,
 * counts for the requests that follow, and is tried again while the engine starts. Source: contract, flag-evaluation 10.
 */

/** Overrides of one request on their way into the store. */
export interface OverridesToStore {
  projectId: number;
  /** The ids whose persons get the overrides; the first is the identified one. */
  distinctIds: readonly string[];
  flagKeys: readonly string[];
  hashKey: string;
}

/** Positions in the realtime lane of the journal. */
export interface Positions {
  /** Number of the last event that was accepted. */
  accepted: number;
  /** Number of the last event whose effect on persons can be seen. */
  applied: number;
}

export interface OverrideWriterDeps {
  /** Stores them and answers how many were stored; rejects when the engine cannot be reached. */
  store: (overrides: OverridesToStore) => Promise<number>;
  positions: () => Positions;
  /** Told when overrides are given up: people of these flags may see another value from now on. */
  onGivenUp: (error: unknown) => void;
}

interface Pending extends OverridesToStore {
  /** Events accepted before the request may still be about to make its persons. */
  readonly acceptedBefore: number;
  /** Whether there was somebody to store them for, so that they count already. */
  readonly isCounting: boolean;
  attempts: number;
}

/** Longer ids are nobody's. They count for their own request: stored, they would stand there once for every flag. */
const hashKeyLengthMax = 1_000;
/** Requests that may wait; beyond that the engine is down for long, and answers say that they are partial. */
const pendingMax = 10_000;
const retryMs = 200;
const retryMaxMs = 5_000;
/** About ten minutes. */
const attemptsMax = 130;

export class OverrideWriter {
  private readonly pending = new Map<string, Pending>();
  private isWorking = false;

  constructor(private readonly deps: OverrideWriterDeps) {}

  /**
   * Takes overrides to store.
   *
   * @param hasPerson whether one of the distinct ids has a person already. If not, they are stored only when an event
   *                  that was accepted before makes one. Very long hash keys are not stored.
   * @returns false when too many wait already: these will not be stored.
   */
  add(overrides: OverridesToStore, hasPerson: boolean): boolean {
    const { accepted, applied } = this.deps.positions();
    if (!hasPerson && applied >= accepted) return true;
    if (overrides.hashKey.length > hashKeyLengthMax) return true;
    const key = keyOf(overrides.projectId, overrides.distinctIds[0] ?? "");
    if (!this.pending.has(key) && this.pending.size >= pendingMax) return false;
    const before = this.pending.get(key);
    this.pending.set(key, {
      ...overrides,
      distinctIds: [...new Set([...(before?.distinctIds ?? []), ...overrides.distinctIds])],
      flagKeys: [...new Set([...(before?.flagKeys ?? []), ...overrides.flagKeys])],
      // The first request decides, as it would if it had been stored at once.
      hashKey: before?.hashKey ?? overrides.hashKey,
      acceptedBefore: accepted,
      isCounting: hasPerson || before?.isCounting === true,
      attempts: 0,
    });
    if (!this.isWorking) {
      this.isWorking = true;
      void this.work();
    }
    return true;
  }

  /** What is on its way for a distinct id, by flag key. */
  pendingFor(projectId: number, distinctId: string): ReadonlyMap<string, string> | undefined {
    if (this.pending.size === 0) return undefined;
    const pending = this.pending.get(keyOf(projectId, distinctId));
    if (pending?.isCounting !== true) return undefined;
    return new Map(pending.flagKeys.map((flagKey) => [flagKey, pending.hashKey]));
  }

  private async work(): Promise<void> {
    let waitMs = retryMs;
    while (this.pending.size > 0) {
      const { hasFailed, isWaiting } = await this.tryAll();
      if (!hasFailed && !isWaiting) continue;
      await Bun.sleep(waitMs);
      waitMs = hasFailed ? Math.min(waitMs * 2, retryMaxMs) : retryMs;
    }
    this.isWorking = false;
  }

  private async tryAll() {
    let hasFailed = false;
    let isWaiting = false;
    for (const [key, pending] of [...this.pending]) {
      try {
        const { applied } = this.deps.positions();
        await this.deps.store(pending);
        // Stored for the persons that exist; an event accepted before may make the other one.
        if (applied >= pending.acceptedBefore) this.forget(key, pending);
        else isWaiting = true;
      } catch (error) {
        pending.attempts += 1;
        if (pending.attempts >= attemptsMax) {
          this.forget(key, pending);
          this.deps.onGivenUp(error);
        }
        hasFailed = true;
        // The engine is away for all of them.
        break;
      }
    }
    return { hasFailed, isWaiting };
  }

  /** Unless a later request has joined meanwhile. */
  private forget(key: string, pending: Pending): void {
    if (this.pending.get(key) === pending) this.pending.delete(key);
  }
}

function keyOf(projectId: number, distinctId: string): string {
  return `${projectId} ${distinctId}`;
}
