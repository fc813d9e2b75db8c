/**
 * Caches results of computed queries. A result is valid until events or persons change, or a new hour starts in any
 * time zone, because ranges start and end at hours.
 */

import { BoundedCache } from "../../lib/bounded-cache.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { InsightResults, TrendsRequest } from "./event-source.ts";

/**
 * Use of cached results; PostHog's names. `blocking`: if valid. `force_blocking`: never. `force_cache`: in any case,
 * without computing.
 */
export type Refresh = "blocking" | "force_blocking" | "force_cache";

/** There are no background computations: the asynchronous modes return the result directly. */
const meanings: Readonly<Record<string, Refresh>> = {
  blocking: "blocking",
  async: "blocking",
  lazy_async: "blocking",
  async_except_on_cache_miss: "blocking",
  force_blocking: "force_blocking",
  force_async: "force_blocking",
  true: "force_blocking",
  force_cache: "force_cache",
  false: "force_cache",
};
export const refreshNames = Object.keys(meanings);
export const refreshDescription =
  "Cache policy: use a current cached result (`blocking`, default), one of any age (`force_cache`; null " +
  "if none is cached, alias `false`), or none (`force_blocking`, alias `true`). `async` modes also wait for the result.";

/** @throws {InvalidFieldError} unknown name */
export function getRefresh(name: unknown): Refresh {
  if (name === undefined || name === null || name === "") return "blocking";
  const meaning = Object.hasOwn(meanings, String(name)) ? meanings[String(name)] : undefined;
  if (meaning !== undefined) return meaning;
  throw new InvalidFieldError("refresh", "invalid_choice", `${JSON.stringify(name)} is not a valid choice.`);
}

export interface ComputedInsight {
  /** Null if nothing is cached and computing was not allowed. */
  results: InsightResults | null;
  /** Milliseconds since 1970. */
  computedAt: number | null;
  isCached: boolean;
}

interface CacheEntry {
  /** JSON of the results. */
  text: string;
  computedAt: number;
  revision: string;
}

const cacheBytesMax = 16 * 1024 * 1024;
const oneBytesMax = 2 * 1024 * 1024;
/** Time zones differ by multiples of 15 minutes. */
const quarterMs = 900_000;

export class InsightCache {
  private owner = {};
  private readonly cachedEntries = new BoundedCache<object, CacheEntry>(
    cacheBytesMax,
    (key, { text }) => key.length + text.length,
  );

  /** The cached result of a query, valid or not. */
  find(request: TrendsRequest): ComputedInsight {
    const cachedEntries = this.cachedEntries.get(this.owner, getKey(request));
    if (cachedEntries === undefined) return { results: null, computedAt: null, isCached: false };
    return { results: JSON.parse(cachedEntries.text), computedAt: cachedEntries.computedAt, isCached: true };
  }

  /**
   * Returns a valid cached result, or computes and caches it.
   * @param revision of all data that queries read, obtained before reading
   */
  async answer(
    request: TrendsRequest,
    { revision, refresh }: { revision: string; refresh: Refresh },
    compute: () => Promise<InsightResults>,
  ): Promise<ComputedInsight> {
    const key = getKey(request);
    const current = `${revision} ${Math.floor(request.now / quarterMs)}`;
    if (refresh !== "force_blocking" && this.cachedEntries.get(this.owner, key)?.revision === current) {
      return this.find(request);
    }
    const results = await compute();
    const text = JSON.stringify(results);
    if (key.length + text.length <= oneBytesMax)
      this.cachedEntries.set(this.owner, key, { text, computedAt: request.now, revision: current });
    return { results, computedAt: request.now, isCached: false };
  }

  /** Call it when data was deleted without a new revision. */
  clear(): void {
    this.owner = {};
  }
}

function getKey({ projectId, timezone, weekStartDay, query, web }: TrendsRequest): string {
  return JSON.stringify([projectId, timezone, weekStartDay ?? null, query, web ?? null]);
}
