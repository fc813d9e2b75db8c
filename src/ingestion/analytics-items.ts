/** Events of the newer capture protocol: transport options per event, and the result per event. */

import { sanitizeJson } from "../lib/json/canonical.ts";
import type { RawItem } from "./item-table.ts";
import type { ItemOptions } from "./normalize.ts";
import type { Outcome } from "./outcome.ts";

const sdkInfoLengthMax = 200;
const uuidKeyLengthMax = 200;

/** Result of one event. */
interface EventResult {
  readonly result: "ok" | "warning" | "drop";
  /** Names of the warnings, comma-separated. */
  readonly details?: string;
}

/** Collects the results of a request's events. */
export class AnalyticsResults {
  private readonly results = new Map<string, EventResult>();
  private readonly library: readonly (readonly [string, string])[];

  /** @param sdkInfo `name/version` of the library. */
  constructor(sdkInfo: string | null) {
    this.library = libraryProperties(sdkInfo);
  }

  /** Transport options of an event. */
  getOptions(item: RawItem): ItemOptions {
    return itemOptions(item, this.library);
  }

  add(item: RawItem, outcome: Outcome): void {
    const key = outcome.kind === "event" ? (getKey(item) ?? outcome.event.uuid) : getKey(item);
    if (key !== undefined) this.results.set(key, getResult(outcome));
  }

  /** The response body. */
  text(): string {
    const members = [...this.results].map(
      ([key, result]) => `${JSON.stringify(key)}:${JSON.stringify(result)}`,
    );
    return `{"results":{${members.join(",")}}}`;
  }
}

/** The library looks for its own spelling of the UUID. */
function getKey(item: RawItem): string | undefined {
  const { uuid } = item.value;
  return typeof uuid === "string" && uuid !== "" ? uuid.slice(0, uuidKeyLengthMax).toWellFormed() : undefined;
}

function getResult(outcome: Outcome): EventResult {
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
  const { options: sent, session_id, window_id } = item.value;
  const isObject = typeof sent === "object" && sent !== null;
  const options = (isObject ? sent : {}) as Readonly<Record<string, unknown>>;
  const defaults = [...library];
  const addDefault = (name: string, value: unknown) => {
    // IDs and booleans; objects and lists are neither.
    if (value === undefined || typeof value === "object") return;
    defaults.push([name, sanitizeJson(JSON.stringify(value))]);
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
