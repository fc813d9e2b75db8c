/** Events of the newer capture protocol: what the transport says about each, and what the library is told of each. */

import { storableJson } from "../lib/unicode.ts";
import type { RawItem } from "./item-table.ts";
import type { ItemOptions } from "./normalize.ts";
import type { Outcome } from "./outcome.ts";

const sdkInfoLengthMax = 200;
const uuidKeyLengthMax = 200;

/** What the library is told about one of its events. */
interface EventResult {
  readonly result: "ok" | "warning" | "drop";
  /** Names of the warnings, comma-separated. */
  readonly details?: string;
}

/** Collects what became of each event of a request. */
export class AnalyticsResults {
  private readonly results = new Map<string, EventResult>();
  private readonly library: readonly (readonly [string, string])[];

  /** @param sdkInfo `name/version` of the library. */
  constructor(sdkInfo: string | null) {
    this.library = libraryProperties(sdkInfo);
  }

  /** What the transport says about an event. */
  optionsOf(item: RawItem): ItemOptions {
    return itemOptions(item, this.library);
  }

  add(item: RawItem, outcome: Outcome): void {
    const key = outcome.kind === "event" ? (keyOf(item) ?? outcome.event.uuid) : keyOf(item);
    if (key !== undefined) this.results.set(key, resultOf(outcome));
  }

  /** The body of the answer. */
  text(): string {
    const members = [...this.results].map(
      ([key, result]) => `${JSON.stringify(key)}:${JSON.stringify(result)}`,
    );
    return `{"results":{${members.join(",")}}}`;
  }
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
