/**
 * Keeps the answers of computed queries. One is right as long as no event and no person has changed and the clock has not
 * come to another hour, in whichever zone: ranges begin and end at hours.
 */

import { InvalidField } from "../../lib/errors.ts";
import { Recent } from "../../lib/recent.ts";
import type { InsightResults, TrendsRequest } from "./found-events.ts";

/**
 * What may be taken of what was computed before; PostHog's names. `blocking`: what is still right. `force_blocking`: nothing.
 * `force_cache`: whatever there is, and nothing is computed.
 */
export type Refresh = "blocking" | "force_blocking" | "force_cache";

/** Nothing is computed behind the asker's back: those who would wait elsewhere get the answer at once. */
const meanings: Readonly<Record<string, Refresh>> = {
  ...{ blocking: "blocking", async: "blocking", lazy_async: "blocking" },
  async_except_on_cache_miss: "blocking",
  ...{ force_blocking: "force_blocking", force_async: "force_blocking", true: "force_blocking" },
  ...{ force_cache: "force_cache", false: "force_cache" },
};
export const refreshNames = Object.keys(meanings);
export const refreshWords =
  "What was computed before is taken where it is still right (`blocking`, the default), whatever its age (`force_cache`; null " +
  "where there is none, also called `false`), or not at all (`force_blocking`, also called `true`). `async` and the like wait for the answer, too.";

/** @throws {InvalidField} no such name. */
export function refreshOf(name: unknown): Refresh {
  if (name === undefined || name === null || name === "") return "blocking";
  const meaning = Object.hasOwn(meanings, String(name)) ? meanings[String(name)] : undefined;
  if (meaning !== undefined) return meaning;
  throw new InvalidField("refresh", "invalid_choice", `${JSON.stringify(name)} is not a valid choice.`);
}

export interface ComputedInsight {
  /** Null where nothing is kept and nothing was to be computed. */
  results: InsightResults | null;
  /** Milliseconds since 1970. */
  computedAt: number | null;
  isCached: boolean;
}

interface Kept {
  /** JSON of the results. */
  text: string;
  computedAt: number;
  revision: string;
}

const keptBytesMax = 16 * 1024 * 1024;
const oneBytesMax = 2 * 1024 * 1024;
/** Zones differ by quarters of an hour. */
const quarterMs = 900_000;

export class InsightCache {
  private owner = {};
  private readonly kept = new Recent<object, Kept>(keptBytesMax, (key, { text }) => key.length + text.length);

  /** What is kept for a query, whether it is still right or not. */
  find(request: TrendsRequest): ComputedInsight {
    const kept = this.kept.get(this.owner, keyOf(request));
    if (kept === undefined) return { results: null, computedAt: null, isCached: false };
    return { results: JSON.parse(kept.text), computedAt: kept.computedAt, isCached: true };
  }

  /**
   * Answers from what is kept, or computes and keeps it.
   *
   * @param revision of everything that queries read; of before it is read.
   */
  async answer(
    request: TrendsRequest,
    { revision, refresh }: { revision: string; refresh: Refresh },
    compute: () => Promise<InsightResults>,
  ): Promise<ComputedInsight> {
    const key = keyOf(request);
    const current = `${revision} ${Math.floor(request.now / quarterMs)}`;
    if (refresh !== "force_blocking" && this.kept.get(this.owner, key)?.revision === current) {
      return this.find(request);
    }
    const results = await compute();
    const text = JSON.stringify(results);
    if (key.length + text.length <= oneBytesMax)
      this.kept.set(this.owner, key, { text, computedAt: request.now, revision: current });
    return { results, computedAt: request.now, isCached: false };
  }

  /** Data have gone that no revision counts. */
  clear(): void {
    this.owner = {};
  }
}

function keyOf({ projectId, timezone, weekStartDay, query }: TrendsRequest): string {
  return JSON.stringify([projectId, timezone, weekStartDay ?? null, query]);
}
