/** PostHog's batch exports, plugin exports, tables and API (contract, import 2.1). Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { chainOf } from "./elements-chain.ts";
import { eventFromColumns, identifiedEvent } from "./event-columns.ts";
import { idOf, jsonText, listOf, objectOf } from "./loose-json.ts";
import { deletedReason, leaveOut, type MappedRecord } from "./mapped.ts";
import { isEmpty, isTrue } from "./members.ts";

/** Columns that PostHog's stores derive: they are not part of an event. */
const omittedColumns = [
  ...["id", "person", "person_id", "person_properties", "person_mode", "person_created_at", "person_version"],
  ...["elements_hash", "site_url", "team_id", "project_id", "created_at", "inserted_at", "_inserted_at"],
  ...["bq_ingested_timestamp", "historical_migration", "consumer_breadcrumbs", "is_deleted"],
  ...["_timestamp", "_offset", "_partition"],
  ...[0, 1, 2, 3, 4].flatMap((at) => [`group_${at}`, `group${at}_properties`, `group${at}_created_at`]),
];
/** Columns that carry something of the event under another name. */
const carriedColumns = [
  ...["elements_chain", "elements", "set", "people_set", "set_once", "people_set_once", "ip"],
];
const omitted = new Set([...omittedColumns, ...carriedColumns]);
/** Materialized columns: copies of properties. */
const materializedForm = /^d?mat_/;
/** Members of an own API answer, which is like PostHog's and says more. */
const ownApiColumns = new Set(["seq", "historical"]);
const ownApiMarks = [...ownApiColumns, "elements"];

/** An event with one of these is PostHog's. */
export const posthogMarks = [
  ...["person_id", "team_id", "elements_chain", "person_properties", "person", "inserted_at"],
];

/** How the fast path copies usual records of `fromPostHog`. */
export const posthogMembers: RecordMembers = {
  leftOut: omittedColumns.filter((name) => name !== "is_deleted"),
  ...{ leftOutWithMarks: ownApiColumns, marks: ownApiMarks, isTimeFree: false },
  carried: carriedColumns.filter((name) => name !== "elements_chain"),
  ...{ chain: "elements_chain", otherUuid: "id" },
};

export function fromPostHog(record: JsonObject): MappedRecord {
  if (isTrue(record.is_deleted)) return leaveOut(deletedReason);
  const isOwnApi = ownApiMarks.every((name) => Object.hasOwn(record, name));
  const isOmitted = (name: string) =>
    omitted.has(name) || materializedForm.test(name) || (isOwnApi && ownApiColumns.has(name));
  const { event, notTaken } = eventFromColumns(record, isOmitted, carried(record));
  const mapped = identifiedEvent(record, event, idOf(record.uuid ?? record.id));
  const used = new Set([...carriedColumns, ...(record.uuid === undefined ? ["id"] : [])]);
  return {
    events: [mapped],
    notTaken: notTaken.filter((name) => !used.has(name) && !(name === "is_deleted" && !isTrue(record[name]))),
  };
}

/** What columns of their own add to the properties. */
function carried(record: JsonObject): (readonly [string, Json])[] {
  const more: [string, Json][] = [];
  const chain = isEmpty(record.elements_chain) ? elementsOf(record.elements) : record.elements_chain!;
  if (typeof chain === "string" && chain !== "") more.push(["$elements_chain", chain]);
  const add = (name: string, value: Json | undefined) => {
    const object = objectOf(value);
    if (Object.keys(object).length > 0) more.push([name, object]);
  };
  add("$set", firstFilled(record.set, record.people_set));
  add("$set_once", firstFilled(record.set_once, record.people_set_once));
  if (!isEmpty(record.ip)) more.push(["$ip", record.ip!]);
  return more;
}

function firstFilled(...values: (Json | undefined)[]): Json | undefined {
  return values.find((value) => Object.keys(objectOf(value)).length > 0);
}

/** A chain, a chain as a JSON string (BigQuery), or a list of elements. */
function elementsOf(value: Json | undefined): Json | undefined {
  if (isEmpty(value)) return undefined;
  const list = listOf(value);
  if (list.length > 0) return chainOf(list);
  if (typeof value !== "string" || !value.startsWith('"'))
    return typeof value === "string" ? value : undefined;
  const parsed = jsonText(value);
  if (typeof parsed === "string" && parsed !== value) return parsed;
  try {
    const text: unknown = JSON.parse(value);
    return typeof text === "string" ? text : undefined;
  } catch {
    return value;
  }
}
