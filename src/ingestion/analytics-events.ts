/**
 * The newer capture protocol: key in a header, facts about the library in headers, an answer per event.
 *
 * Source: contract, ingestion 16; sdk-compat 4.9.
 */

import { KeyRefused } from "../http/decode/failures.ts";
import { captureDialect, type Dialect } from "../http/dialect.ts";
import { type Call, Reply } from "../http/route.ts";
import { storableJson } from "../lib/unicode.ts";
import { sendTime } from "./event-time.ts";
import type { Intake } from "./intake.ts";
import type { RawItem } from "./item-table.ts";
import type { ItemOptions } from "./normalize.ts";
import type { Outcome } from "./outcome.ts";
import { checkedToken } from "./token.ts";

const sdkInfoLengthMax = 200;
const uuidKeyLengthMax = 200;

/** What the library is told about one of its events. */
interface EventResult {
  readonly result: "ok" | "warning" | "drop";
  /** Names of the warnings, comma-separated. */
  readonly details?: string;
}

/** The library looks for its own id of the request, or ours, in every answer. */
function withRequestId(reply: Reply, request: Request): Reply {
  const id = request.headers.get("posthog-request-id") ?? Bun.randomUUIDv7();
  return new Reply(reply.status, reply.body, { ...reply.headers, "PostHog-Request-Id": id });
}

/** The words of this protocol. */
export const analyticsDialect: Dialect = {
  ...captureDialect,
  refuse({ status, code, message, headers }, _, { request }) {
    const body = { error: code, error_description: message, error_uri: null };
    return withRequestId(new Reply(status, body, headers), request);
  },
};

/** Stores the events of a request and tells what became of each. */
export async function analyticsEvents(intake: Intake, call: Call): Promise<Reply> {
  const { headers } = call.request;
  const project = intake.projectOf(bearerToken(headers.get("authorization")));
  const opened = await intake.open(call, "refuse a lone one");
  const facts = intake.factsOf(opened, project, sendTime([headers.get("posthog-request-timestamp")]));
  const library = libraryProperties(headers.get("posthog-sdk-info"));
  const results = new Map<string, EventResult>();
  await intake.append(
    project,
    opened.payload,
    facts,
    (item) => itemOptions(item, library),
    (item, outcome) => {
      const key = outcome.kind === "event" ? (keyOf(item) ?? outcome.event.uuid) : keyOf(item);
      if (key !== undefined) results.set(key, resultOf(outcome));
    },
  );
  const members = [...results].map(([key, result]) => `${JSON.stringify(key)}:${JSON.stringify(result)}`);
  return withRequestId(Reply.json(`{"results":{${members.join(",")}}}`), call.request);
}

function bearerToken(header: string | null): string {
  if (header === null) throw new KeyRefused("missing_api_key", "the Authorization header is missing");
  const [, token] = /^bearer\s+(.*)$/i.exec(header.trim()) ?? [];
  if (token === undefined)
    throw new KeyRefused("missing_api_key", "the Authorization header holds no bearer token");
  return checkedToken(token);
}

/** The library looks for its own spelling of the uuid. */
function keyOf(item: RawItem): string | undefined {
  const { uuid } = item.value;
  return typeof uuid === "string" && uuid !== "" ? uuid.slice(0, uuidKeyLengthMax).toWellFormed() : undefined;
}

function resultOf(outcome: Outcome): EventResult {
  if (outcome.kind === "dropped") return { result: "drop", details: outcome.reason.type };
  if (outcome.kind === "notice" || outcome.warnings.length === 0) return { result: "ok" };
  return { result: "warning", details: outcome.warnings.map(({ type }) => type).join(",") };
}

/** `name/version` of the library, which the events do not repeat. */
function libraryProperties(sdkInfo: string | null): readonly (readonly [string, string])[] {
  if (sdkInfo === null || sdkInfo === "") return [];
  const [, name = "", version] =
    /^([^/]*)(?:\/(.*))?$/.exec(sdkInfo.slice(0, sdkInfoLengthMax).toWellFormed()) ?? [];
  const library: [string, string][] = [["$lib", JSON.stringify(name)]];
  if (version !== undefined) library.push(["$lib_version", JSON.stringify(version)]);
  return library;
}

function itemOptions(item: RawItem, library: readonly (readonly [string, string])[]): ItemOptions {
  const { options: given, session_id, window_id } = item.value;
  const isObject = typeof given === "object" && given !== null;
  const options = (isObject ? given : {}) as Readonly<Record<string, unknown>>;
  const defaults = [...library];
  const addDefault = (name: string, value: unknown) => {
    // Ids and switches; anything with parts is none of them.
    if (value === undefined || typeof value === "object") return;
    defaults.push([name, storableJson(JSON.stringify(value))]);
  };
  addDefault("$session_id", session_id);
  addDefault("$window_id", window_id);
  addDefault("$cookieless_mode", options.cookieless_mode);
  addDefault("$product_tour_id", options.product_tour_id);
  return {
    processPersonProfile: options.process_person_profile ?? undefined,
    ignoresSentAt: options.disable_skew_correction === true,
    defaults,
  };
}
