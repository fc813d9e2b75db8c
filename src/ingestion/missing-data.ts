/**
 * Special events without their essential data: they are stored, and a warning names what is missing.
 *
 * Pure. The scanner (`src/scan/assembly/`) leaves every event that could get one of these warnings to this file.
 * Source: contract, ingestion 15.4.
 */

import { isTime } from "./event-time.ts";
import type { WarningType } from "./outcome.ts";

type Members = Readonly<Record<string, unknown>>;

const surveyEvents = new Set(["survey sent", "survey shown", "survey dismissed", "survey abandoned"]);
const groupEvents = new Set(["$groupidentify", "$group_identify"]);

/**
 * The warnings about one event.
 *
 * @param name       its stored name.
 * @param item       the event as sent.
 * @param properties its properties.
 */
export function missingData(name: string, item: Members, properties: Members): readonly WarningType[] {
  const types: WarningType[] = [];
  if (groupEvents.has(name)) {
    if (isBlank(properties.$group_type) || isBlank(properties.$group_key))
      types.push("groupidentify_without_group");
    if (!isObjectOrAbsent(properties.$group_set)) types.push("invalid_group_set");
  } else if (name === "$create_alias") {
    if (isBlank(properties.alias)) types.push("create_alias_without_alias");
  } else if (name === "$merge_dangerously") {
    if (isBlank(properties.alias)) types.push("merge_without_alias");
  } else if (name === "$screen") {
    if (isBlank(properties.$screen_name)) types.push("screen_without_name");
  } else if (surveyEvents.has(name) && isBlank(properties.$survey_id)) types.push("survey_without_id");
  if (!hasValidSet(name, item, properties)) types.push("invalid_set");
  const { $unset: unset = null } = properties;
  if (unset !== null && typeof unset !== "object") types.push("invalid_unset");
  if (!isObjectOrAbsent(properties.$groups)) types.push("invalid_groups");
  if (!isAbsent(item.offset) && typeof item.offset !== "number") types.push("invalid_offset");
  const hasOwnTime = !isAbsent(item.timestamp) || typeof item.offset === "number";
  if (!hasOwnTime && isTime(properties.timestamp)) types.push("timestamp_in_properties");
  return types;
}

/** Only `$set` requires properties to set or to remove. */
function hasValidSet(name: string, item: Members, properties: Members): boolean {
  const sent = [item.$set, item.$set_once, properties.$set, properties.$set_once];
  if (!sent.every(isObjectOrAbsent)) return false;
  return name !== "$set" || !isAbsent(properties.$unset) || !sent.every(isAbsent);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isObjectOrAbsent(value: unknown): boolean {
  return isAbsent(value) || (typeof value === "object" && !Array.isArray(value));
}

/** Whether a value names nothing: absent, whitespace, or an object or list. */
function isBlank(value: unknown): boolean {
  return typeof value === "string" ? value.trim() === "" : isAbsent(value) || typeof value === "object";
}
