/** Rate limit of sign-in attempts: in memory only, and bounded however many addresses try. */

import ipaddr from "ipaddr.js";
import { setNewest } from "../../lib/bounded-cache.ts";
import { TooManyAttemptsError } from "../../lib/errors.ts";

/** Failures of one address and e-mail before delays start. */
const freeFailures = 5;
const waitSecondsMax = 900;
/** Failures expire after this time without another. */
const forgottenMs = 3_600_000;
/** Failed or unfinished attempts of one address in a minute. */
const perAddressMax = 20;
const minuteMs = 60_000;
/** Entries of each table; the oldest is evicted first. */
const entriesMax = 10_000;

interface Failures {
  count: number;
  at: number;
  waitUntil: number;
}
interface Window {
  endsAt: number;
  count: number;
}

export class SignInLimiter {
  private readonly failures = new Map<string, Failures>();
  private readonly windows = new Map<string, Window>();
  /** Failures of a user since the last success. */
  private readonly ofUser = new Map<number, number>();

  /** @param nodes number of servers that share the attempts: each multiplies its own count by it. */
  constructor(private readonly nodes: () => number = () => 1) {}

  /**
   * Starts an attempt.
   *
   * @throws {TooManyAttemptsError} with the seconds to wait.
   */
  start(address: string | undefined, email: string, now: number): SignInAttempt {
    const network = getNetwork(address);
    const pair = `${network} ${email.trim().toLowerCase().slice(0, 320)}`;
    const failed = this.failures.get(pair);
    if (failed !== undefined && failed.waitUntil > now)
      throw new TooManyAttemptsError(secondsUntil(failed.waitUntil, now));
    let window = this.windows.get(network);
    if (window === undefined || window.endsAt <= now) {
      window = { endsAt: now + minuteMs, count: 0 };
      setNewest(this.windows, network, window, entriesMax);
    }
    if (window.count * this.nodes() >= perAddressMax)
      throw new TooManyAttemptsError(secondsUntil(window.endsAt, now));
    window.count += 1;
    return {
      failed: (userId) => {
        const before = this.failures.get(pair);
        const count = before !== undefined && now - before.at < forgottenMs ? before.count + 1 : 1;
        const all = count * this.nodes();
        const wait = all < freeFailures ? 0 : Math.min(waitSecondsMax, 2 ** (all - freeFailures));
        setNewest(this.failures, pair, { count, at: now, waitUntil: now + wait * 1_000 }, entriesMax);
        if (userId !== undefined)
          setNewest(this.ofUser, userId, (this.ofUser.get(userId) ?? 0) + 1, entriesMax);
      },
      succeeded: (userId) => {
        window.count -= 1;
        this.failures.delete(pair);
        const count = this.ofUser.get(userId) ?? 0;
        this.ofUser.delete(userId);
        return count;
      },
    };
  }
}

export interface SignInAttempt {
  /** @param userId the user whose password was tried; undefined for an unknown user. */
  failed(userId: number | undefined): void;
  /** Returns how many attempts for this user failed before. */
  succeeded(userId: number): number;
}

/** IPv6 clients have a whole /64 network, so it is limited as one address. */
function getNetwork(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return address ?? "";
  const parsed = ipaddr.process(address);
  return parsed.kind() === "ipv4" ? parsed.toString() : parsed.toByteArray().slice(0, 8).join(".");
}

function secondsUntil(end: number, now: number): number {
  return Math.max(1, Math.ceil((end - now) / 1_000));
}
