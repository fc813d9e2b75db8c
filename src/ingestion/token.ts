/** Finds the project key of a request and validates its shape. Source: contract, ingestion 4. */

import { InvalidApiKeyError } from "../http/decode/errors.ts";
import { type Payload, presentToken } from "./payload.ts";

const tokenBytesMax = 64;
const personalKeyPrefix = "phx_";
const notAscii = /[^\0-\x7f]/;

/**
 * The project key claimed by a request, of any type; undefined without one.
 *
 * @throws {InvalidApiKeyError} its events have different keys.
 */
export function claimedToken(payload: Payload): unknown {
  // A key next to the batch takes precedence: those of the items are not even compared.
  if (payload.batchToken !== undefined) return payload.batchToken;
  let found: unknown;
  for (const item of payload.items.values) {
    const token = itemToken(item as Record<string, unknown>);
    if (token === undefined) continue;
    found = agreedToken(found, token);
  }
  return found;
}

/** One of two keys of a request, of which the first may be absent. @throws {InvalidApiKeyError} they differ. */
export function agreedToken(found: unknown, token: unknown): unknown {
  if (found !== undefined && found !== token)
    throw new InvalidApiKeyError("invalid_api_key", "batch submitted with inconsistent api_key values");
  return token;
}

/**
 * The validated key of a body; without one, that of the form or the query.
 *
 * @param lastResort keys from the form and the query, for clients that put them nowhere else.
 * @throws {InvalidApiKeyError} the key is missing, or does not have the shape of a project key.
 */
export function chosenToken(found: unknown, lastResort: readonly (string | undefined)[]): string {
  const token = found ?? lastResort.find((token) => token !== undefined && token !== "");
  if (token === undefined)
    throw new InvalidApiKeyError("missing_api_key", "event submitted without an api_key");
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
 * The key without surrounding whitespace.
 *
 * @throws {InvalidApiKeyError} it cannot be the key of any project.
 */
export function checkedToken(token: unknown): string {
  if (typeof token !== "string") throw rejected("not_a_string");
  const trimmed = token.trim();
  if (trimmed === "") throw rejected("empty");
  if (Buffer.byteLength(trimmed) > tokenBytesMax) throw rejected("too_long");
  if (notAscii.test(trimmed)) throw rejected("not_ascii");
  if (trimmed.startsWith(personalKeyPrefix)) throw rejected("personal_api_key");
  if (trimmed.includes("\0")) throw rejected("null_byte");
  return trimmed;
}

/** The key has the right shape, but belongs to no project. */
export function unknownToken(): InvalidApiKeyError {
  return rejected("no project has this key");
}

function rejected(reason: string): InvalidApiKeyError {
  return new InvalidApiKeyError("invalid_api_key", `API key is not valid: ${reason}`);
}
