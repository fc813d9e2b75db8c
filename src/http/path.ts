/** Path parameters. */

import { canonicalUuid } from "../lib/ids.ts";

/** Parses a path parameter as a positive integer; invalid values match no record. */
export function readId(params: Record<string, string | undefined>, name: string): number {
  const text = params[name] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : -1;
}

/** A path parameter as a UUID in the stored spelling; other values are returned unchanged, for example `@current`. */
export function readUuid(params: Record<string, string | undefined>, name: string): string {
  const text = params[name] ?? "";
  return canonicalUuid(text) ?? text;
}

/** Path prefix of client URLs behind a reverse proxy; empty or without a trailing slash. */
export function prefixIn(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, "");
}
