/**
 * Stores hash-key overrides for the answers that need them.
 *
 * Only the engine writes to the store of persons: overrides are queued here, are valid for the requests that follow, and are
 * sent again while the engine starts. An answer waits for a moment, so that a crash after it loses nothing, but never for an
 * engine that does not answer. Source: contract, flag-evaluation 10.
 */

import { forNoCaller } from "../../lib/caller.ts";
import { lapse } from "../../lib/time.ts";
import { storableText } from "../../lib/unicode.ts";
import type { NewOverrides } from "../../people/hash-key-overrides.ts";

/** Overrides of one request on their way into the store. */
export interface OverridesToStore extends NewOverrides {
  projectId: number;
}

export interface OverrideWriterDeps {
  /** Stores them; rejects when the engine cannot be reached. */
  store: (overrides: OverridesToStore) => Promise<unknown>;
  /** Called when overrides are discarded: users of these flags may see another value from now on. */
  onDiscarded: (error: unknown) => void;
}

interface Queued {
  overrides: OverridesToStore;
  attempts: number;
  /** Resolves when they are stored. */
  stored: PromiseWithResolvers<void>;
}

/** Longer IDs are nobody's. They count for their own request: stored, they would stand there once for every flag. */
const hashKeyLengthMax = 1_000;
/** Requests in the queue; beyond that the engine is down for long, and answers say that they are partial. */
const queuedMax = 10_000;
/** Former IDs of one ID that are joined to its place in the queue; those after them get no override of their own. */
const idsMax = 100;
/** How long an answer waits. */
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
   * Queues overrides. Hash keys and IDs that no stored ID can equal are left out.
   *
   * @returns false when the queue is full: these will not be stored.
   */
  add(overrides: OverridesToStore): boolean {
    const { projectId, hashKey } = overrides;
    if (hashKey.length > hashKeyLengthMax || hashKey !== storableText(hashKey)) return true;
    const distinctIds = overrides.distinctIds.filter((id) => id !== "").map(storableText);
    const [identified] = distinctIds;
    if (identified === undefined) return true;
    const key = keyOf(projectId, identified);
    const queued = this.queued.get(key);
    if (queued === undefined && this.queued.size >= queuedMax) return false;
    const before = queued?.overrides;
    this.queued.set(key, {
      overrides: {
        projectId,
        distinctIds: joined(before?.distinctIds, distinctIds).slice(0, idsMax),
        flagKeys: joined(before?.flagKeys, overrides.flagKeys),
        // The first request decides, as it would if it had been stored at once.
        hashKey: before?.hashKey ?? hashKey,
        requestedMicros: overrides.requestedMicros,
      },
      attempts: 0,
      stored: queued?.stored ?? Promise.withResolvers(),
    });
    // It goes on when the client of this request has disconnected.
    this.working ??= forNoCaller(() => this.work());
    return true;
  }

  /** What is queued for a distinct ID, by flag key. */
  queuedFor(projectId: number, distinctId: string): ReadonlyMap<string, string> | undefined {
    if (this.queued.size === 0) return undefined;
    const overrides = this.queued.get(keyOf(projectId, storableText(distinctId)))?.overrides;
    return overrides && new Map(overrides.flagKeys.map((flagKey) => [flagKey, overrides.hashKey]));
  }

  /** Resolves when what is queued for a distinct ID is stored, or soon when that takes long. */
  async stored(projectId: number, distinctId: string): Promise<void> {
    const queued = this.queued.get(keyOf(projectId, storableText(distinctId)));
    if (queued !== undefined && !this.isFailing)
      await Promise.race([queued.stored.promise, lapse(answerWaitMs)]);
  }

  /** Resolves when the queue is empty, or after a time in milliseconds. */
  async settle(withinMs: number): Promise<void> {
    await Promise.race([this.working, lapse(withinMs)]);
  }

  private async work(): Promise<void> {
    for (let waitMs = retryMs; this.queued.size > 0; waitMs = Math.min(waitMs * 2, retryMaxMs)) {
      if (await this.tryAll()) waitMs = retryMs;
      else await Bun.sleep(waitMs);
    }
    this.working = undefined;
  }

  /** @returns whether all were stored that were queued. */
  private async tryAll(): Promise<boolean> {
    for (const [key, queued] of [...this.queued]) {
      try {
        await this.deps.store(queued.overrides);
        this.isFailing = false;
        this.remove(key, queued);
      } catch (error) {
        this.isFailing = true;
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

  /** Unless a later request has joined meanwhile. */
  private remove(key: string, queued: Queued): void {
    if (this.queued.get(key) !== queued) return;
    this.queued.delete(key);
    queued.stored.resolve();
  }
}

/** Requests of a project have the same list of flags, as a rule the same array. */
function joined(before: readonly string[] | undefined, added: readonly string[]): readonly string[] {
  return before === undefined || before === added ? added : [...new Set([...before, ...added])];
}

function keyOf(projectId: number, distinctId: string): string {
  return `${projectId} ${distinctId}`;
}
