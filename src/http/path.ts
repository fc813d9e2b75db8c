/** Parts of a path. */

import { canonicalUuid } from "../lib/uuid.ts";

/** A part as a positive integer; one that is none is the id of nothing. */
export function readId(params: Record<string, string | undefined>, name: string): number {
  const text = params[name] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : -1;
}

/** A part as a uuid in the spelling of the stores; one that is none comes as it is, for `@current` and the like. */
export function readUuid(params: Record<string, string | undefined>, name: string): string {
  const text = params[name] ?? "";
  return canonicalUuid(text) ?? text;
}

/** What stands before every path that clients see, behind a reverse proxy; empty or without a slash at the end. */
export function prefixIn(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, "");
}
