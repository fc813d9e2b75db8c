/**
 * Response bodies of `/flags` and `/decide`, by route and version. Source: contract, flag-evaluation 3; sdk-compat 4.3.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import { clientValue, type Evaluation } from "../evaluate/evaluate.ts";
import type { FlagResult } from "../evaluate/model.ts";

/** `details`: v2 with reasons. `values`: all flags and payloads. `on`: the enabled ones. `keys`: a list of those. */
export type ReplyShape = "details" | "values" | "on" | "keys";

export interface ReplyForm {
  shape: ReplyShape;
  /** Whether the client configuration is part of the same object. */
  withConfig: boolean;
}

/** Query parameters as sent; undefined when absent. */
export interface VersionParameters {
  /** `v`, or its alias `version`. */
  v?: string | undefined;
  config?: string | undefined;
}

/** The body form that a client of a route expects. */
export function getReplyForm(route: "flags" | "decide", { v, config }: VersionParameters): ReplyForm {
  const version = v !== undefined && /^\s*\d+\s*$/.test(v) ? Number(v) : undefined;
  if (route === "decide") {
    const shapes: ReplyShape[] = ["keys", "keys", "on", "values"];
    return { shape: shapes[version ?? 1] ?? "details", withConfig: config !== "false" && config !== "0" };
  }
  if (v === undefined && config === undefined) return { shape: "details", withConfig: true };
  const withConfig = config === "true" || config === "1";
  return { shape: (version ?? 1) >= 2 ? "details" : "values", withConfig };
}

export interface ReplyStamp {
  /** A UUID. */
  requestId: string;
  /** When the flags were computed. */
  evaluatedAt: Date;
}

/** The flags part of a response; the caller adds configuration fields when the form requires them. */
export function renderFlags(evaluation: Evaluation, shape: ReplyShape, stamp: ReplyStamp): JsonObject {
  const common: JsonObject = {
    errorsWhileComputingFlags: evaluation.errorsWhileComputing,
    requestId: stamp.requestId,
    evaluatedAt: stamp.evaluatedAt.getTime(),
  };
  const results = evaluation.list;
  switch (shape) {
    case "details":
      return { ...common, flags: byKey(results, renderFlag) };
    case "values": {
      // A failed flag is omitted: the client merges and keeps the value it has, as with the detailed form.
      const known = results.filter(({ failed }) => !failed);
      const withPayload = known.filter(({ payload }) => payload !== null);
      return {
        ...common,
        featureFlags: byKey(known, clientValue),
        featureFlagPayloads: byKey(withPayload, ({ payload }) => payload),
      };
    }
    case "on":
      return { ...common, featureFlags: byKey(results.filter(isOn), clientValue) };
    case "keys":
      return { ...common, featureFlags: results.filter(isOn).map(({ key }) => key) };
  }
}

function isOn({ enabled }: FlagResult): boolean {
  return enabled;
}

/** One flag of the detailed form. */
export function renderFlag(result: FlagResult): JsonObject {
  const { key, enabled, variant, reason } = result;
  const details: JsonObject = {
    key,
    enabled,
    variant,
    reason: { code: reason.code, condition_index: reason.conditionIndex, description: reason.description },
    metadata: { id: result.id, version: result.version, description: null, payload: result.payload },
  };
  return result.failed ? { ...details, failed: true } : details;
}

function byKey(
  results: readonly FlagResult[],
  render: (result: FlagResult) => JsonObject[string],
): JsonObject {
  return Object.fromEntries(results.map((result) => [result.key, render(result)]));
}
