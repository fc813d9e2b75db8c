/**
 * What a client asks of `/flags` and `/decide`, read out of its JSON.
 *
 * Forgiving, because a client that is refused shows no flags at all: null and values of the wrong type count as
 * absent, and unknown fields are ignored. Source: contract, flag-evaluation 2.2; sdk-compat 2.2.
 */

import { NestedTooDeep, parserWords, TooManyContainers } from "../../../http/json.ts";
import { memberSource, skipSpace } from "../../../ingestion/json-spans.ts";
import { isJsonObject, type JsonObject, ownMember } from "../../../lib/json.ts";
import { Undecodable } from "./dialects.ts";
import { parseTolerantJson } from "./tolerant-json.ts";

export interface FlagsRequest {
  /** The project's key, without white space around it; undefined when none was sent. */
  token: string | undefined;
  /** Of any length; may be empty. Undefined when none was sent. */
  distinctId: string | undefined;
  anonDistinctId: string | undefined;
  deviceId: string | undefined;
  personProperties: JsonObject | undefined;
  /** Group keys by the name of the group type. */
  groups: JsonObject | undefined;
  groupProperties: JsonObject | undefined;
  /** The client wants the configuration only. */
  areFlagsDisabled: boolean;
  flagKeys: string[] | undefined;
  contexts: string[] | undefined;
  /** `evaluation_runtime` as sent; anything but the three known words means nothing. */
  statedRuntime: unknown;
}

const contextsMax = 50;
const contextLengthMax = 255;

/**
 * Reads a request.
 *
 * @param text the body with all wrappings taken off.
 * @throws {Undecodable} not a JSON object.
 */
export function readFlagsRequest(text: string): FlagsRequest {
  const body = parseObject(text);
  const first = (...names: string[]) => {
    for (const name of names) {
      const value = ownMember(body, name);
      if (value !== undefined && value !== null) return value;
    }
    return undefined;
  };
  const objectOf = (...names: string[]) => {
    const value = first(...names);
    return isJsonObject(value) ? value : undefined;
  };
  return {
    token: tokenOf(first("token", "api_key", "$token")),
    distinctId: idOf(text, body, "distinct_id") ?? idOf(text, body, "$distinct_id"),
    anonDistinctId: idOf(text, body, "$anon_distinct_id") ?? idOf(text, body, "anon_distinct_id"),
    deviceId: idOf(text, body, "$device_id") ?? idOf(text, body, "device_id"),
    personProperties: objectOf("person_properties", "$properties"),
    groups: objectOf("groups", "$groups"),
    groupProperties: objectOf("group_properties", "$group_properties"),
    areFlagsDisabled: isSwitchedOn(first("disable_flags")),
    flagKeys: textsOf(first("flag_keys", "flag_keys_to_evaluate")),
    // As they are stored (`rules/tags.ts`).
    contexts: textsOf(first("evaluation_contexts", "evaluation_environments"))
      ?.filter((name) => name.length <= contextLengthMax)
      .slice(0, contextsMax)
      .map((name) => name.trim().toLowerCase()),
    statedRuntime: first("evaluation_runtime"),
  };
}

/** The JSON of a body, as lenient clients write it. @throws {Undecodable} it is none. */
export function parsedBody(text: string): unknown {
  try {
    return parseTolerantJson(text);
  } catch (error) {
    const isJson = error instanceof NestedTooDeep || error instanceof TooManyContainers;
    throw new Undecodable(isJson ? error.message : `the body is not JSON: ${parserWords(error)}`);
  }
}

function parseObject(text: string): JsonObject {
  const body = parsedBody(text);
  if (!isJsonObject(body)) throw new Undecodable("expected a JSON object");
  return body;
}

function tokenOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** Strings as they are, numbers in the client's own spelling as capture reads them, everything else as JSON. */
function idOf(text: string, body: JsonObject, name: string): string | undefined {
  const value = ownMember(body, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  return (typeof value === "number" ? spellingOf(text, name) : undefined) ?? JSON.stringify(value);
}

/** 12345678901234567890 is not what JSON.parse makes of it. */
function spellingOf(text: string, name: string): string | undefined {
  try {
    return memberSource(text, skipSpace(text, 0), name);
  } catch {
    // Only tolerated JSON comes here; the parsed number will do.
    return undefined;
  }
}

function isSwitchedOn(value: unknown): boolean {
  return value === true || value === 1 || value === "true" || value === "1";
}

function textsOf(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : undefined;
}

const contentTypes = new Set(["application/json", "text/plain", "application/x-www-form-urlencoded"]);

/** @throws {Undecodable} the body is said to be of a kind that is not read. */
export function requireContentType(headers: Headers): void {
  const mediaType = (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (mediaType !== "" && !contentTypes.has(mediaType)) {
    throw new Undecodable(`unsupported content type: ${mediaType}`);
  }
}

/** Whether a request carries a header that only browsers send. */
export function hasBrowserHeaders(headers: Headers): boolean {
  return (
    headers.has("origin") ||
    headers.has("referer") ||
    headers.has("sec-fetch-mode") ||
    headers.has("sec-fetch-site") ||
    headers.has("sec-fetch-dest") ||
    headers.has("sec-fetch-user")
  );
}
