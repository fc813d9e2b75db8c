/**
 * Converts evaluation contexts and results of OpenFeature.
 *
 * The value of a flag is true or false, or the key of its variant; a flag with variants that is off is false, so a
 * client that expects a string uses its default. Payloads are JSON strings in the metadata. Pure. Source: OpenFeature
 * Remote Evaluation Protocol 0.2; OpenFeature specification, types.
 */

import { HttpError } from "../../http/http-error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { clientValue } from "../evaluate/evaluate.ts";
import type { CompiledFlag, FlagResult } from "../evaluate/model.ts";

export type OfrepErrorCode =
  | "PARSE_ERROR"
  | "TARGETING_KEY_MISSING"
  | "INVALID_CONTEXT"
  | "FLAG_NOT_FOUND"
  | "GENERAL";

/** The reasons that the protocol's schema lists. */
export const ofrepReasons = ["STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "UNKNOWN"] as const;
export type OfrepReason = (typeof ofrepReasons)[number];

/** A request that cannot be evaluated; `status` is 400 or 404. */
export class OfrepError extends HttpError {
  constructor(
    status: 400 | 404,
    readonly errorCode: OfrepErrorCode,
    message: string,
  ) {
    super(status, "validation_error", errorCode.toLowerCase(), message);
  }
}

/** The subject of an evaluation context. */
export interface OfrepContext {
  distinctId: string;
  anonDistinctId: string | undefined;
  deviceId: string | undefined;
  groups: JsonObject | undefined;
  groupProperties: JsonObject | undefined;
  /** Every other member of the context. */
  personProperties: JsonObject;
}

/**
 * Parses the body of a request.
 *
 * @throws {OfrepError} the context or its targeting key is missing.
 */
export function readContext(body: unknown): OfrepContext {
  if (!isJsonObject(body)) throw new OfrepError(400, "PARSE_ERROR", "The body must be a JSON object.");
  const context = body.context ?? {};
  if (!isJsonObject(context)) {
    throw new OfrepError(400, "INVALID_CONTEXT", "`context` must be an object.");
  }
  const {
    targetingKey,
    groups,
    group_properties: groupProperties,
    $anon_distinct_id: anonDistinctId,
    $device_id: deviceId,
    ...personProperties
  } = context;
  if (targetingKey === undefined || targetingKey === null || targetingKey === "") {
    throw new OfrepError(400, "TARGETING_KEY_MISSING", "`context.targetingKey` is missing.");
  }
  if (typeof targetingKey !== "string") {
    throw new OfrepError(400, "INVALID_CONTEXT", "`context.targetingKey` must be a string.");
  }
  return {
    distinctId: targetingKey,
    anonDistinctId: textOrNone(anonDistinctId),
    deviceId: textOrNone(deviceId),
    groups: objectOrNone(groups, "groups"),
    groupProperties: objectOrNone(groupProperties, "group_properties"),
    personProperties,
  };
}

function textOrNone(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function objectOrNone(value: Json | undefined, name: string): JsonObject | undefined {
  if (value === undefined || value === null) return undefined;
  if (isJsonObject(value)) return value;
  throw new OfrepError(400, "INVALID_CONTEXT", `\`context.${name}\` must be an object.`);
}

/** An evaluated flag; one that could not be computed is an error among the others. */
export function renderResult(flag: CompiledFlag, result: FlagResult): JsonObject {
  const { key, reason, payload } = result;
  if (result.failed) return { key, errorCode: "GENERAL", errorDetails: reason.description };
  return {
    key,
    value: clientValue(result),
    reason: getReason(flag, result),
    variant: getVariant(clientValue(result)),
    metadata: {
      id: result.id,
      version: result.version,
      reason: reason.code,
      description: reason.description,
      ...(payload === null ? {} : { payload }),
    },
  };
}

/** An inactive flag. */
export function renderInactive({ id, key, version }: CompiledFlag): JsonObject {
  const metadata = { id, version, reason: "flag_disabled" };
  return { key, value: false, reason: "DISABLED", variant: getVariant(false), metadata };
}

/** Some providers reject results without a variant: the variant of a boolean flag is its value. */
function getVariant(value: boolean | string): string {
  return String(value);
}

/**
 * The reason in the protocol's vocabulary: only the values in its schema. `DEFAULT`, which OpenFeature's specification
 * has, is not among them; no matching condition set is `UNKNOWN` (contract, flag-evaluation 20.3).
 */
function getReason(flag: CompiledFlag, { reason, variant }: FlagResult): OfrepReason {
  switch (reason.code) {
    case "condition_match": {
      const condition = flag.conditions[reason.conditionIndex ?? -1];
      if (condition !== undefined && condition.filters.length > 0) return "TARGETING_MATCH";
      const percentage = condition?.rolloutPercentage ?? 100;
      const isChosenByHash = variant !== null && condition?.variant === null && flag.variants.length > 1;
      return percentage < 100 || isChosenByHash ? "SPLIT" : "STATIC";
    }
    case "super_condition_value":
      return "TARGETING_MATCH";
    case "holdout_condition_value":
    case "out_of_rollout_bound":
      return "SPLIT";
    default:
      return "UNKNOWN";
  }
}

/** The project key of a request: `Authorization: Bearer` or `X-API-Key`. */
export function getKey(headers: Headers): string | undefined {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.get("authorization") ?? "")?.[1];
  return bearer ?? (headers.get("x-api-key")?.trim() || undefined);
}

/**
 * The runtime of a client: a browser is recognized only by a header that a browser adds to a cross-origin request.
 *
 * `User-Agent` is ignored: providers on servers send that of their HTTP library, and Node's `fetch` adds
 * `Sec-Fetch-Mode` (contract, flag-evaluation 20.2).
 */
export function getRuntime(headers: Headers): "client" | "server" {
  return ["origin", "referer", "sec-fetch-site"].some((name) => headers.has(name)) ? "client" : "server";
}

/** Whether a flag is available to this runtime. */
export function isForRuntime(flag: CompiledFlag, runtime: "client" | "server"): boolean {
  return flag.runtime === "all" || flag.runtime === runtime;
}
