/** Finds the one project key of a request and checks its shape. Source: contract, ingestion 4. */

import { KeyRefused } from "../http/decode/failures.ts";
import { type Payload, presentToken } from "./payload.ts";

const tokenBytesMax = 64;
const personalKeyPrefix = "phx_";
const notAscii = /[^\0-\x7f]/;

/**
 * The project key of a request.
 *
 * @param lastResort keys from the form and the query, for clients that put them nowhere else.
 * @throws {KeyRefused} there is none, several differ, or its shape is not that of a project key.
 */
export function findToken(payload: Payload, lastResort: readonly (string | undefined)[]): string {
  // A key beside the batch settles it: those of the items are not even compared.
  if (payload.batchToken !== undefined) return checkedToken(payload.batchToken);
  let found: unknown;
  for (const item of payload.items.values) {
    const token = itemToken(item as Record<string, unknown>);
    if (token === undefined) continue;
    if (found === undefined) found = token;
    else if (found !== token) {
      throw new KeyRefused("invalid_api_key", "batch submitted with inconsistent api_key values");
    }
  }
  return chosenToken(found, lastResort);
}

/**
 * The key that was found in a body, checked; without one, that from the form or the query.
 *
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
