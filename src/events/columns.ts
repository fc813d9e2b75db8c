/**
 * The columns of the table `events`: source, storage and presentation of each. Loading, lists, realtime events,
 * exports, views and migration use this table. A new column requires a line here and a migration per engine. No
 * imports: the console's page includes this file.
 */

/** JavaScript type by kind: `instant` as epoch microseconds, `json` as its exact source. */
interface ColumnValues {
  integer: number;
  bigint: number;
  boolean: boolean;
  uuid: string;
  text: string;
  instant: number;
  json: string;
}

export type EventColumnKind = keyof ColumnValues;

/** Metadata of a column; the table's keys are the public names. */
interface Column<Member extends string = string> {
  kind: EventColumnKind;
  /** The stored member of a `StorableEvent`; if absent, `getValue` computes the value. */
  member?: Member;
  getValue?: (event: { uuid: string }) => number | null;
  /** For columns of the kinds `bigint`, `text`, `instant` and `json`. */
  isNullable?: true;
  /** Public value for null. */
  forNull?: string;
  /** Name in ClickHouse, if it differs. */
  clickhouse?: string;
  /** Description in the documentation. */
  about?: string;
  example?: unknown;
}

const table = {
  project_id: { kind: "integer", member: "projectId" },
  historical: {
    kind: "boolean",
    member: "historical",
    about: "True if sent with `historical_migration`.",
    example: false,
  },
  seq: { kind: "bigint", member: "seq", about: "Order of arrival within the project and lane.", example: 1 },
  uuid: { kind: "uuid", member: "uuid", example: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d" },
  uuid_time: { kind: "bigint", getValue: ({ uuid }) => uuidTime(uuid), isNullable: true },
  event: { kind: "text", member: "event", example: "order paid" },
  distinct_id: { kind: "text", member: "distinctId", example: "kim" },
  timestamp: {
    kind: "instant",
    member: "timeMicros",
    clickhouse: "time",
    about: "Time of the event.",
    example: "2026-03-04T16:00:01.007000Z",
  },
  received_at: { kind: "instant", member: "receivedMicros", clickhouse: "received" },
  mode: { kind: "text", member: "mode" },
  elements_chain: { kind: "text", member: "elementsChain", isNullable: true, forNull: "", example: "" },
  properties: {
    kind: "json",
    member: "propertiesText",
    clickhouse: "properties_text",
    about: "Properties as sent, with those added by ingestion.",
    example: { amount: 12.5, $groups: { company: "acme" }, $group_0: "acme" },
  },
} as const satisfies Record<string, Column>;

type Table = typeof table;
type Member = Extract<Table[keyof Table], { member: string }>["member"];
export type EventColumn = Column<Member>;
export type EventColumnName = keyof Table;
export const eventColumns: Readonly<Record<EventColumnName, EventColumn>> = table;
export const eventColumnNames = Object.keys(table) as EventColumnName[];

/** Members of lists that are not columns, as documented. */
export const computedMembers = {
  id: "Same as `uuid`.",
  person: "Current person of the distinct id.",
  elements: "Parsed `elements_chain`, first 500 elements.",
} as const;
export type ComputedMember = keyof typeof computedMembers;

/** The members of an event in lists, in order. */
export const listedMembers = [
  "id",
  "uuid",
  "event",
  "distinct_id",
  "timestamp",
  "properties",
  "person",
  "elements",
  "elements_chain",
  "seq",
  "historical",
] as const satisfies (EventColumnName | ComputedMember)[];
export const listedColumns = listedMembers.filter((name) => name in table) as ListedColumn[];
type ListedColumn = Exclude<(typeof listedMembers)[number], ComputedMember>;

/** The columns of exports and of the SQL view, in order, followed by the person. */
export const exportedColumns = [
  "uuid",
  "event",
  "distinct_id",
  "timestamp",
  "received_at",
  "properties",
  "elements_chain",
  "historical",
  "seq",
] as const satisfies EventColumnName[];

/** The columns that are migrated: the others are derived, or constant per lane. */
export const movedColumns = eventColumnNames.filter(
  (name) => eventColumns[name].member !== undefined && name !== "historical",
);

/** The stored members of an event. */
type Stored = Readonly<Record<Member, unknown>> & { readonly uuid: string };

/** The function that computes a column's value from an event. */
export function valueFor<Value>({ member, getValue: of }: EventColumn): (event: Stored) => Value {
  return (of ?? ((event: Stored) => event[member!])) as (event: Stored) => Value;
}

/** An event in a list, by column. */
export type StoredEvent = { [Name in ListedColumn]: ColumnValues[Table[Name]["kind"]] };

/**
 * Milliseconds since 1970 in the first 48 bits of a version 7 UUID; null for other versions. Duplicate checks only read
 * row groups of that time.
 */
export function uuidTime(uuid: string): number | null {
  if (uuid.charCodeAt(14) !== digitSeven) return null;
  return (fourDigits(uuid, 0) * two16 + fourDigits(uuid, 4)) * two16 + fourDigits(uuid, 9);
}

const two16 = 2 ** 16;
const digitSeven = 0x37;
/** Values of hexadecimal digits by character code. */
const digitValues = Uint8Array.from({ length: 128 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(value) ? 0 : value;
});

/** Parses four hexadecimal digits of a string; much faster than parsing a substring. */
export function fourDigits(text: string, at: number): number {
  return (
    (digitValues[text.charCodeAt(at)]! << 12) |
    (digitValues[text.charCodeAt(at + 1)]! << 8) |
    (digitValues[text.charCodeAt(at + 2)]! << 4) |
    digitValues[text.charCodeAt(at + 3)]!
  );
}
