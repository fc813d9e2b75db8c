/** Finds the one project key of a request and checks its shape. Source: contract, ingestion 4. */

import { KeyRefused } from "../http/decode/failures.ts";
import { type Payload, presentToken } from "./payload.ts";

const tokenBytesMax = 64;
const personalKeyPrefix = "phx_";
const notAscii = /[^\0-\x7f]/;

/**
 * What a request gives as its project key, of any type; undefined where it gives none.
 *
 * @throws {KeyRefused} its events give different ones.
 */
export function claimedToken(payload: Payload): unknown {
  // A key beside the batch settles it: those of the items are not even compared.
  if (payload.batchToken !== undefined) return payload.batchToken;
  let found: unknown;
  for (const item of payload.items.values) {
    const token = itemToken(item as Record<string, unknown>);
    if (token === undefined) continue;
    found = agreedToken(found, token);
  }
  return found;
}

/** One of two keys of a request, of which the first may be absent. @throws {KeyRefused} they differ. */
export function agreedToken(found: unknown, token: unknown): unknown {
  if (found !== undefined && found !== token)
    throw new KeyRefused("invalid_api_key", "batch submitted with inconsistent api_key values");
  return token;
}

/**
 * The key that was found in a body, checked; without one, that from the form or the query.
 *
 * @param lastResort keys from the form and the query, for clients that put them nowhere else.
 * @throws {KeyRefused} there is none, or its shape is not that of a project key.
 */
export function chosenToken(found: unknown, lastResort: readonly (string | undefined)[]): string {
  const token = found ?? lastResort.find((token) => token !== undefined && token !== "");
  if (token === undefined) throw new KeyRefused("missing_api_key", "event submitted without an api_key");
  return checkedToken(token);
}

function itemToken(value: Readonly<Record<string, unknown>>): unknown {
  const token = presentToken(value) ?? value.$token ?? undefined;
  if (token !== undefined) return token;
  const properties = value.properties as { token?: unknown } | null | undefined;
  const inside = properties?.token;
  return typeof inside === "string" ? inside : undefined;
}

/**
 * The key without surrounding white space.
 *
 * @throws {KeyRefused} it cannot be the key of any project.
 */
export function checkedToken(token: unknown): string {
  if (typeof token !== "string") throw refused("not_a_string");
  const trimmed = token.trim();
  if (trimmed === "") throw refused("empty");
  if (Buffer.byteLength(trimmed) > tokenBytesMax) throw refused("too_long");
  if (notAscii.test(trimmed)) throw refused("not_ascii");
  if (trimmed.startsWith(personalKeyPrefix)) throw refused("personal_api_key");
  if (trimmed.includes("\0")) throw refused("null_byte");
  return trimmed;
}

/** The key has the right shape and belongs to no project. */
export function unknownToken(): KeyRefused {
  return refused("no project has this key");
}

function refused(reason: string): KeyRefused {
  return new KeyRefused("invalid_api_key", `API key is not valid: ${reason}`);
}
