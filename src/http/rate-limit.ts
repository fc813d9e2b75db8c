/**
 * Rate limits of personal keys: fixed windows in memory, reset by a restart. Off by default.
 *
 * Source: contract, management-api 1.6.
 */

import { TooManyAttemptsError } from "../lib/errors.ts";
import type { Route } from "./route.ts";

/** Requests per window. */
export interface RateLimit {
  name: string;
  requestsMax: number;
  windowMs: number;
}

type Bucket = Exclude<Route["bucket"], "none">;
export type RateLimits = Record<Bucket, readonly RateLimit[]>;

/** The limits of the contract. */
export const defaultRateLimits: RateLimits = {
  management: [
    { name: "burst", requestsMax: 480, windowMs: 60_000 },
    { name: "sustained", requestsMax: 4_800, windowMs: 3_600_000 },
  ],
  local_evaluation: [{ name: "feature_flag_evaluations", requestsMax: 600, windowMs: 60_000 }],
  remote_config: [{ name: "feature_flag_remote_config", requestsMax: 600, windowMs: 60_000 }],
};

interface Window {
  endsAt: number;
  count: number;
}

export class RateLimiter {
  private readonly windows = new Map<string, Window>();

  /** @param nodes number of nodes that the limits are divided among: each counts its own requests. */
  constructor(
    private readonly limits: RateLimits,
    private readonly nodes: () => number = () => 1,
  ) {}

  /**
   * Counts a request.
   *
   * @param keyId one counter per key; only existing keys get here, so their number is bounded.
   * @throws {TooManyAttemptsError} with the seconds to wait; the rejected request is not counted.
   */
  count(keyId: string, bucket: Bucket, now: number): void {
    const open = this.limits[bucket].map((limit) => this.window(keyId, limit, now));
    for (const [index, window] of open.entries()) {
      if (window.count < this.limits[bucket][index]!.requestsMax / this.nodes()) continue;
      throw new TooManyAttemptsError(Math.max(1, Math.ceil((window.endsAt - now) / 1_000)));
    }
    for (const window of open) window.count++;
  }

  private window(keyId: string, limit: RateLimit, now: number): Window {
    const name = `${limit.name} ${keyId}`;
    const known = this.windows.get(name);
    if (known && known.endsAt > now) return known;
    const fresh = { endsAt: now + limit.windowMs, count: 0 };
    this.windows.set(name, fresh);
    return fresh;
  }
}
