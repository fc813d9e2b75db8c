/**
 * Parses a request of `/flags` and `/decide`.
 *
 * Lenient, because a rejected client shows no flags at all: null and values of the wrong type count as absent, and
 * unknown fields are ignored. Source: contract, flag-evaluation 2.2; sdk-compat 2.2.
 */

import { parseExactJson } from "../../lib/json/exact.ts";
import { checkJson, JsonTooComplexError, NestingTooDeepError, parserMessage } from "../../lib/json/limits.ts";
import { closingQuote, memberSource, skipSpace } from "../../lib/json/spans.ts";
import { getOwnProperty, isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { UndecodableBodyError } from "./route-profiles.ts";

export interface FlagsRequest {
  /** The project's key, without surrounding whitespace; undefined when absent. */
  token: string | undefined;
  /** Of any length; may be empty. Undefined when absent. */
  distinctId: string | undefined;
  anonDistinctId: string | undefined;
  deviceId: string | undefined;
  personProperties: JsonObject | undefined;
  /** Group keys by the name of the group type. */
  groups: JsonObject | undefined;
  groupProperties: JsonObject | undefined;
  /** The client requests only the configuration. */
  areFlagsDisabled: boolean;
  flagKeys: string[] | undefined;
  contexts: string[] | undefined;
  /** `evaluation_runtime` as sent; values other than the three known ones are ignored. */
  statedRuntime: unknown;
}

const contextsMax = 50;
const contextLengthMax = 255;

/**
 * Parses a request.
 *
 * @param text the decoded body.
 * @throws {UndecodableBodyError} not a JSON object.
 */
export function readFlagsRequest(text: string): FlagsRequest {
  const body = parseObject(text);
  const first = (...names: string[]) => {
    for (const name of names) {
      const value = getOwnProperty(body, name);
      if (value !== undefined && value !== null) return value;
    }
    return undefined;
  };
  const getObject = (...names: string[]) => {
    const value = first(...names);
    return isJsonObject(value) ? value : undefined;
  };
  return {
    token: getToken(first("token", "api_key", "$token")),
    distinctId: getId(text, body, "distinct_id") ?? getId(text, body, "$distinct_id"),
    anonDistinctId: getId(text, body, "$anon_distinct_id") ?? getId(text, body, "anon_distinct_id"),
    deviceId: getId(text, body, "$device_id") ?? getId(text, body, "device_id"),
    personProperties: getObject("person_properties", "$properties"),
    groups: getObject("groups", "$groups"),
    groupProperties: getObject("group_properties", "$group_properties"),
    areFlagsDisabled: isSwitchedOn(first("disable_flags")),
    flagKeys: toStrings(first("flag_keys", "flag_keys_to_evaluate")),
    // Normalized like stored tags (`rules/tags.ts`).
    contexts: toStrings(first("evaluation_contexts", "evaluation_environments"))
      ?.filter((name) => name.length <= contextLengthMax)
      .slice(0, contextsMax)
      .map((name) => name.trim().toLowerCase()),
    statedRuntime: first("evaluation_runtime"),
  };
}

/** Parses the JSON of lenient clients. @throws {UndecodableBodyError} it is not JSON. */
export function parsedBody(text: string): unknown {
  try {
    return parseTolerantJson(text);
  } catch (error) {
    const isJson = error instanceof NestingTooDeepError || error instanceof JsonTooComplexError;
    throw new UndecodableBodyError(isJson ? error.message : `the body is not JSON: ${parserMessage(error)}`);
  }
}

function parseObject(text: string): JsonObject {
  const body = parsedBody(text);
  if (!isJsonObject(body)) throw new UndecodableBodyError("expected a JSON object");
  return body;
}

function getToken(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** Strings unchanged, numbers in the client's spelling like in capture, everything else as JSON. */
function getId(text: string, body: JsonObject, name: string): string | undefined {
  const value = getOwnProperty(body, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  return (typeof value === "number" ? getSpelling(text, name) : undefined) ?? JSON.stringify(value);
}

/** JSON.parse would change 12345678901234567890. */
function getSpelling(text: string, name: string): string | undefined {
  try {
    return memberSource(text, skipSpace(text, 0), name);
  } catch {
    // Only lenient JSON gets here; the parsed number is sufficient.
    return undefined;
  }
}

function isSwitchedOn(value: unknown): boolean {
  return value === true || value === 1 || value === "true" || value === "1";
}

function toStrings(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : undefined;
}

const contentTypes = new Set(["application/json", "text/plain", "application/x-www-form-urlencoded"]);

/** @throws {UndecodableBodyError} the declared content type is not supported. */
export function assertContentType(headers: Headers): void {
  const mediaType = (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (mediaType !== "" && !contentTypes.has(mediaType)) {
    throw new UndecodableBodyError(`unsupported content type: ${mediaType}`);
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

/**
 * Parses JSON of lenient clients: `NaN`, `Infinity` and `-Infinity` in place of a value count as null.
 *
 * Source: contract, flag-evaluation 2.1.
 */

const quoteByte = 34;
const minus = 45;
const upperI = 73;
const upperN = 78;

/** A request about one person is small. */
const jsonLimits = { levels: 500, containers: 100_000 };

/**
 * Parses JSON, long integers like `parseExactJson`; strict JSON has no extra cost.
 *
 * @throws {SyntaxError} it is not even lenient JSON.
 * @throws {NestingTooDeepError} @throws {JsonTooComplexError}
 */
export function parseTolerantJson(text: string): unknown {
  checkJson(text, jsonLimits);
  try {
    return parseExactJson(text);
  } catch (error) {
    const corrected = withNullsForNumbers(text);
    if (corrected === text) throw error;
    return parseExactJson(corrected);
  }
}

/** The text with every bare `NaN` and `Infinity` replaced; strings are unchanged. Reads every character once. */
function withNullsForNumbers(text: string): string {
  let repaired = "";
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quoteByte) {
      const close = closingQuote(text, at);
      if (close === -1) break;
      at = close;
      continue;
    }
    if (code !== upperN && code !== upperI) continue;
    const word = code === upperN ? "NaN" : "Infinity";
    if (!text.startsWith(word, at)) continue;
    const start = text.charCodeAt(at - 1) === minus ? at - 1 : at;
    repaired += `${text.slice(copied, start)}null`;
    at += word.length - 1;
    copied = at + 1;
  }
  return copied === 0 ? text : repaired + text.slice(copied);
}
