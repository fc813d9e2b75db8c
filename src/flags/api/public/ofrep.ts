/**
 * Flags in the words of OpenFeature: what a context asks for, and what an evaluated flag answers.
 *
 * The values of a flag are true or false, or the key of its variant; a flag with variants that is off is false, which
 * makes a client that wants text use its default. Payloads travel as JSON text in the metadata. Pure.
 * Source: OpenFeature Remote Evaluation Protocol 0.2; OpenFeature specification, types.
 */

import { HttpFailure } from "../../../http/failure.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import { clientValue } from "../../evaluate/evaluate.ts";
import type { CompiledFlag, FlagResult } from "../../evaluate/model.ts";

export type OfrepErrorCode =
  | "PARSE_ERROR"
  | "TARGETING_KEY_MISSING"
  | "INVALID_CONTEXT"
  | "FLAG_NOT_FOUND"
  | "GENERAL";

/** The reasons that the protocol's schema lists. */
export const ofrepReasons = ["STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "UNKNOWN"] as const;
export type OfrepReason = (typeof ofrepReasons)[number];

/** A request that cannot be answered; `status` is 400 or 404. */
export class OfrepRefusal extends HttpFailure {
  constructor(
    status: 400 | 404,
    readonly errorCode: OfrepErrorCode,
    message: string,
  ) {
    super(status, "validation_error", errorCode.toLowerCase(), message);
  }
}

/** Whom an evaluation context is about. */
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
 * Reads the body of a request.
 *
 * @throws {OfrepRefusal} no context, or nobody in it.
 */
export function readContext(body: unknown): OfrepContext {
  if (!isJsonObject(body)) throw new OfrepRefusal(400, "PARSE_ERROR", "The body must be a JSON object.");
  const context = body.context ?? {};
  if (!isJsonObject(context)) {
    throw new OfrepRefusal(400, "INVALID_CONTEXT", "`context` must be an object.");
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
    throw new OfrepRefusal(400, "TARGETING_KEY_MISSING", "`context.targetingKey` is missing.");
  }
  if (typeof targetingKey !== "string") {
    throw new OfrepRefusal(400, "INVALID_CONTEXT", "`context.targetingKey` must be a text.");
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
  throw new OfrepRefusal(400, "INVALID_CONTEXT", `\`context.${name}\` must be an object.`);
}

/** An evaluated flag; one that could not be computed is an error beside the others. */
export function renderResult(flag: CompiledFlag, result: FlagResult): JsonObject {
  const { key, reason, payload } = result;
  if (result.failed) return { key, errorCode: "GENERAL", errorDetails: reason.description };
  return {
    key,
    value: clientValue(result),
    reason: reasonOf(flag, result),
    variant: variantOf(clientValue(result)),
    metadata: {
      id: result.id,
      version: result.version,
      reason: reason.code,
      description: reason.description,
      ...(payload === null ? {} : { payload }),
    },
  };
}

/** A flag that is switched off. */
export function renderInactive({ id, key, version }: CompiledFlag): JsonObject {
  const metadata = { id, version, reason: "flag_disabled" };
  return { key, value: false, reason: "DISABLED", variant: variantOf(false), metadata };
}

/** Some providers take no answer without a variant: that of a flag that is only on or off is its value. */
function variantOf(value: boolean | string): string {
  return String(value);
}

/**
 * The reason in the protocol's vocabulary: only the values that its schema lists. `DEFAULT`, which OpenFeature's
 * specification has, is not among them; no matching condition set is `UNKNOWN` (contract, flag-evaluation 20.3).
 */
function reasonOf(flag: CompiledFlag, { reason, variant }: FlagResult): OfrepReason {
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
export function keyOf(headers: Headers): string | undefined {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.get("authorization") ?? "")?.[1];
  return bearer ?? (headers.get("x-api-key")?.trim() || undefined);
}

/**
 * The runtime of a caller: a browser is recognized only by a header that a browser adds to a cross-origin request.
 *
 * No `User-Agent` counts: providers on servers send those of their HTTP library, and Node's `fetch` adds
 * `Sec-Fetch-Mode` (contract, flag-evaluation 20.2).
 */
export function runtimeOf(headers: Headers): "client" | "server" {
  return ["origin", "referer", "sec-fetch-site"].some((name) => headers.has(name)) ? "client" : "server";
}

/** Whether a flag is meant for such a client. */
export function isForRuntime(flag: CompiledFlag, runtime: "client" | "server"): boolean {
  return flag.runtime === "all" || flag.runtime === runtime;
}
