/** PostHog's batch exports, plugin exports, tables and API (contract, import 2.1). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { eventFromColumns, identifiedEvent } from "./event-columns.ts";
import { getId, toJsonString, toList, toObject } from "./lenient-json.ts";
import { deletedReason, leaveOut, type MappedRecord } from "./mapped.ts";
import { isBlank, isEmpty, isTrue } from "./members.ts";

/** Columns that PostHog's stores derive: they are not part of an event. */
const omittedColumns = [
  "id",
  "person",
  "person_id",
  "person_properties",
  "person_mode",
  "person_created_at",
  "person_version",
  "elements_hash",
  "site_url",
  "team_id",
  "project_id",
  "created_at",
  "inserted_at",
  "_inserted_at",
  "bq_ingested_timestamp",
  "historical_migration",
  "consumer_breadcrumbs",
  "is_deleted",
  "_timestamp",
  "_offset",
  "_partition",
  ...[0, 1, 2, 3, 4].flatMap((at) => [`group_${at}`, `group${at}_properties`, `group${at}_created_at`]),
];
/** Columns that contain a part of the event under another name. */
const carriedColumns = [
  "elements_chain",
  "elements",
  "set",
  "people_set",
  "set_once",
  "people_set_once",
  "ip",
];
const omitted = new Set([...omittedColumns, ...carriedColumns]);
/** Materialized columns: copies of properties. */
const materializedForm = /^d?mat_/;
/** Additional members of Flagkeep's own API, which resembles PostHog's. */
const apiColumns = new Set(["seq", "historical"]);
const apiMarks = [...apiColumns, "elements"];

/** An event with one of these is PostHog's. */
export const posthogFields = [
  "person_id",
  "team_id",
  "elements_chain",
  "person_properties",
  "person",
  "inserted_at",
  "people_set",
  "people_set_once",
  "bq_ingested_timestamp",
  "person_mode",
  "elements_hash",
  "site_url",
  "consumer_breadcrumbs",
];

/** How the fast path copies typical records of `fromPostHog`. */
export const posthogMembers: RecordMembers = {
  leftOut: omittedColumns.filter((name) => name !== "is_deleted"),
  leftOutWithMarks: apiColumns,
  marks: apiMarks,
  isTimeFree: false,
  carried: carriedColumns.filter((name) => name !== "elements_chain"),
  chain: "elements_chain",
  otherUuid: "id",
};

export function fromPostHog(record: JsonObject): MappedRecord {
  if (isTrue(record.is_deleted)) return leaveOut(deletedReason);
  const isOwnApi = apiMarks.every((name) => Object.hasOwn(record, name));
  const isOmitted = (name: string) =>
    omitted.has(name) || materializedForm.test(name) || (isOwnApi && apiColumns.has(name));
  const more = carried(record);
  const { event, omitted: omittedMembers } = eventFromColumns(
    "posthog",
    record,
    isOmitted,
    more.map(({ property, value }) => [property, value]),
  );
  const properties = isJsonObject(event.properties) ? event.properties : {};
  const used = new Set(record.uuid === undefined ? ["id"] : []);
  // A column whose value the property bag replaces is reported.
  for (const { column, property, value } of more)
    if (JSON.stringify(properties[property]) === JSON.stringify(value)) used.add(column);
  // Columns with an empty object or list as text.
  for (const column of carriedColumns) if (isBlank(record[column])) used.add(column);
  return {
    events: [identifiedEvent(record, event, getId(record.uuid ?? record.id))],
    omitted: omittedMembers.filter((name) => !used.has(name)),
  };
}

interface Carried {
  column: string;
  property: string;
  value: Json;
}

/** Properties from separate columns, the first column of each. */
function carried(record: JsonObject): Carried[] {
  const found: Carried[] = [];
  const add = (column: string, property: string, value: Json | undefined) => {
    const present = found.find((each) => each.property === property);
    if (isEmpty(value) || (present !== undefined && JSON.stringify(present.value) !== JSON.stringify(value)))
      return;
    found.push({ column, property, value: value! });
  };
  if (typeof record.elements_chain === "string")
    add("elements_chain", "$elements_chain", record.elements_chain);
  add("elements", "$elements_chain", getElements(record.elements));
  for (const column of ["set", "people_set"]) add(column, "$set", toObject(record[column]));
  for (const column of ["set_once", "people_set_once"]) add(column, "$set_once", toObject(record[column]));
  add("ip", "$ip", record.ip);
  return found;
}

/** A chain, a chain as a JSON string (BigQuery), or a list of elements. */
function getElements(value: Json | undefined): Json | undefined {
  if (isEmpty(value)) return undefined;
  const list = toList(value);
  if (list.length > 0) return getChain(list);
  if (typeof value !== "string" || !value.startsWith('"'))
    return typeof value === "string" ? value : undefined;
  const parsed = toJsonString(value);
  if (typeof parsed === "string" && parsed !== value) return parsed;
  try {
    const text: unknown = JSON.parse(value);
    return typeof text === "string" ? text : undefined;
  } catch {
    return value;
  }
}

/** Converts a list of clicked elements to the chain that events store (contract, import 2.1). Pure. */

/** `a.btn:attr__href="/x"nth-child="1"text="Go";div:…`; undefined without elements. */
function getChain(elements: readonly Json[]): string | undefined {
  const listed = elements.filter(isJsonObject);
  const ordered = listed.every((element) => typeof element.order === "number")
    ? listed.toSorted((a, b) => (a.order as number) - (b.order as number))
    : listed;
  return ordered.length === 0 ? undefined : ordered.map(serializeElement).join(";");
}

function serializeElement(element: JsonObject): string {
  const classes = (toList(element.attr_class).length > 0 ? toList(element.attr_class) : splitClasses(element))
    .map((name) => String(name))
    .filter((name) => name !== "")
    .sort();
  const attributes = getAttributes(element);
  const names = [...attributes.keys()].sort();
  const tag = [getId(element.tag_name) ?? "", ...classes].join(".");
  const text = names.map((name) => `${name}="${escaped(attributes.get(name)!)}"`).join("");
  return text === "" ? tag : `${tag}:${text}`;
}

function splitClasses(element: JsonObject): string[] {
  return typeof element.attr_class === "string" ? element.attr_class.split(/\s+/) : [];
}

function getAttributes(element: JsonObject): Map<string, string> {
  const attributes = new Map<string, string>();
  const add = (name: string, value: Json | undefined) => {
    const text =
      value === undefined || value === null
        ? undefined
        : typeof value === "string"
          ? value
          : String(getId(value) ?? "");
    if (text !== undefined && text !== "" && !attributes.has(name)) attributes.set(name, text);
  };
  for (const [name, value] of Object.entries(isJsonObject(element.attributes) ? element.attributes : {})) {
    const known = name.startsWith("attr__") || name === "attr_id" ? name : `attr__${name}`;
    add(known, value);
  }
  add("attr__href", element.href);
  if (!attributes.has("attr_id")) add("attr__id", element.attr_id);
  add("nth-child", element.nth_child);
  add("nth-of-type", element.nth_of_type);
  add("text", element.text ?? element.$el_text);
  return attributes;
}

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
