/**
 * Stores hash-key overrides for the responses that need them.
 *
 * Only the engine writes to the persons store: overrides are queued here, apply to later requests, and are retried
 * while the engine starts. A response waits briefly, so that a crash after it loses nothing, but not for an engine that
 * does not respond. Source: contract, flag-evaluation 10.
 */

import { forNoCaller } from "../../lib/cancellation.ts";
import { sanitizeString } from "../../lib/json/canonical.ts";
import { sleep } from "../../lib/time.ts";
import type { NewOverrides } from "../../persons/hash-key-overrides.ts";

/** Overrides of one request that are to be stored. */
export interface OverridesToStore extends NewOverrides {
  projectId: number;
}

export interface OverrideWriterDeps {
  /** Stores them; rejects when the engine is unreachable. */
  store: (overrides: OverridesToStore) => Promise<unknown>;
  /** Called when overrides are discarded: users of these flags may see another value from now on. */
  onDiscarded: (error: unknown) => void;
  /** Receives overrides that cannot be stored now, for the queues of other processes of this server. */
  share?: (overrides: OverridesToStore) => void;
}

interface Queued {
  overrides: OverridesToStore;
  attempts: number;
  /** Whether other processes have them, or need not know. */
  isShared: boolean;
  /** Resolves when they are stored. */
  stored: PromiseWithResolvers<void>;
}

/**
 * Longer IDs belong to no person. They apply only to their own request: stored, they would be repeated for every flag.
 */
const hashKeyLengthMax = 1_000;
/** Queued requests; beyond this the engine has been down for long, and responses are marked as partial. */
const queuedMax = 10_000;
/** Former IDs that share one ID's queue entry; further ones get no override. */
const idsMax = 100;
/** How long a response waits. */
const answerWaitMs = 200;
const retryMs = 200;
const retryMaxMs = 5_000;
/** About ten minutes. */
const attemptsMax = 130;

export class OverrideWriter {
  private readonly queued = new Map<string, Queued>();
  private working: Promise<void> | undefined;
  /** Whether the last attempt failed. */
  private isFailing = false;

  constructor(private readonly deps: OverrideWriterDeps) {}

  /**
   * Queues overrides. Hash keys and IDs that no stored ID can equal are skipped.
   *
   * @param isShared whether another process has passed them on; storing them twice has no effect.
   * @returns false when the queue is full: these will not be stored.
   */
  add(overrides: OverridesToStore, isShared = false): boolean {
    const { projectId, hashKey } = overrides;
    if (hashKey.length > hashKeyLengthMax || hashKey !== sanitizeString(hashKey)) return true;
    const distinctIds = overrides.distinctIds.filter((id) => id !== "").map(sanitizeString);
    const [identified] = distinctIds;
    if (identified === undefined) return true;
    const key = getKey(projectId, identified);
    const queued = this.queued.get(key);
    if (queued === undefined && this.queued.size >= queuedMax) return false;
    const before = queued?.overrides;
    const merged: OverridesToStore = {
      projectId,
      distinctIds: joined(before?.distinctIds, distinctIds).slice(0, idsMax),
      flagKeys: joined(before?.flagKeys, overrides.flagKeys),
      // The first request decides, as if it had been stored immediately.
      hashKey: before?.hashKey ?? hashKey,
      requestedMicros: overrides.requestedMicros,
    };
    const isKnown = queued?.isShared === true && before !== undefined && isSameSize(before, merged);
    const next: Queued = {
      overrides: merged,
      attempts: 0,
      isShared: isShared || isKnown,
      stored: queued?.stored ?? Promise.withResolvers(),
    };
    this.queued.set(key, next);
    if (this.isFailing) this.share(next);
    // It continues when the client of this request has disconnected.
    this.working ??= forNoCaller(() => this.work());
    return true;
  }

  /** Queued overrides of a distinct ID, by flag key. */
  queuedFor(projectId: number, distinctId: string): ReadonlyMap<string, string> | undefined {
    if (this.queued.size === 0) return undefined;
    const overrides = this.queued.get(getKey(projectId, sanitizeString(distinctId)))?.overrides;
    return overrides && new Map(overrides.flagKeys.map((flagKey) => [flagKey, overrides.hashKey]));
  }

  /** Resolves when the queued overrides of a distinct ID are stored, or after a short timeout. */
  async stored(projectId: number, distinctId: string): Promise<void> {
    const key = getKey(projectId, sanitizeString(distinctId));
    const queued = this.queued.get(key);
    if (queued === undefined || this.isFailing) return;
    await Promise.race([queued.stored.promise, sleep(answerWaitMs)]);
    const waiting = this.queued.get(key);
    if (waiting !== undefined) this.share(waiting);
  }

  /** Resolves when the queue is empty, or after a time in milliseconds. */
  async settle(withinMs: number): Promise<void> {
    await Promise.race([this.working, sleep(withinMs)]);
  }

  private async work(): Promise<void> {
    for (let waitMs = retryMs; this.queued.size > 0; waitMs = Math.min(waitMs * 2, retryMaxMs)) {
      if (await this.tryAll()) waitMs = retryMs;
      else await Bun.sleep(waitMs);
    }
    this.working = undefined;
  }

  /** @returns whether all queued overrides were stored. */
  private async tryAll(): Promise<boolean> {
    for (const [key, queued] of [...this.queued]) {
      try {
        await this.deps.store(queued.overrides);
        this.isFailing = false;
        this.remove(key, queued);
      } catch (error) {
        this.isFailing = true;
        for (const each of this.queued.values()) this.share(each);
        queued.attempts += 1;
        if (queued.attempts >= attemptsMax) {
          this.remove(key, queued);
          this.deps.onDiscarded(error);
        }
        // The engine is unavailable for all of them.
        return false;
      }
    }
    return true;
  }

  private share(queued: Queued): void {
    if (queued.isShared) return;
    queued.isShared = true;
    this.deps.share?.(queued.overrides);
  }

  /** Removes an entry unless a later request has joined it meanwhile. */
  private remove(key: string, queued: Queued): void {
    if (this.queued.get(key) !== queued) return;
    this.queued.delete(key);
    queued.stored.resolve();
  }
}

/** Requests of a project have the same list of flags, usually the same array. */
function joined(before: readonly string[] | undefined, added: readonly string[]): readonly string[] {
  return before === undefined || before === added ? added : [...new Set([...before, ...added])];
}

/** Joined lists only grow. */
function isSameSize(a: OverridesToStore, b: OverridesToStore): boolean {
  return a.distinctIds.length === b.distinctIds.length && a.flagKeys.length === b.flagKeys.length;
}

function getKey(projectId: number, distinctId: string): string {
  return `${projectId} ${distinctId}`;
}
