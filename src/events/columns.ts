/**
 * The columns of the table `events`, each told once: what an event gives for it, how it is stored, what readers see.
 *
 * Loading, lists, live events, exports, the view of statements and moves to another store follow from this table. A new
 * column is a line here and a migration for each engine. Nothing is imported: the console's page has it, too.
 */

/** What JavaScript reads of each kind: an `instant` as epoch microseconds, `json` as its exact text. */
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

/** What is known about a column; the table's keys are the names that readers see. */
interface Column<Member extends string = string> {
  kind: EventColumnKind;
  /** The member of a `StorableEvent` that is stored; absent: it is computed by `of`. */
  member?: Member;
  of?: (event: { uuid: string }) => number | null;
  /** For columns of the kinds `bigint`, `text`, `instant` and `json`. */
  isNullable?: true;
  /** What readers see instead of null. */
  forNull?: string;
  /** Its name in ClickHouse, where another one is an alias. */
  clickhouse?: string;
  /** In the documentation. */
  about?: string;
  example?: unknown;
}

const table = {
  project_id: { kind: "integer", member: "projectId" },
  historical: {
    kind: "boolean",
    member: "historical",
    about: "Whether it was sent with `historical_migration`.",
    example: false,
  },
  seq: { kind: "bigint", member: "seq", about: "Order of arrival within the project and lane.", example: 1 },
  uuid: { kind: "uuid", member: "uuid", example: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d" },
  uuid_time: { kind: "bigint", of: ({ uuid }) => uuidTime(uuid), isNullable: true },
  event: { kind: "text", member: "event", example: "order paid" },
  distinct_id: { kind: "text", member: "distinctId", example: "kim" },
  timestamp: {
    kind: "instant",
    member: "timeMicros",
    clickhouse: "time",
    about: "When it happened.",
    example: "2026-03-04T16:00:01.007000Z",
  },
  received_at: { kind: "instant", member: "receivedMicros", clickhouse: "received" },
  mode: { kind: "text", member: "mode" },
  elements_chain: { kind: "text", member: "elementsChain", isNullable: true, forNull: "", example: "" },
  properties: {
    kind: "json",
    member: "propertiesText",
    clickhouse: "properties_text",
    about: "As they were sent, with what ingestion adds.",
    example: { amount: 12.5, $groups: { company: "acme" }, $group_0: "acme" },
  },
} as const satisfies Record<string, Column>;

type Table = typeof table;
type Member = Extract<Table[keyof Table], { member: string }>["member"];
export type EventColumn = Column<Member>;
export type EventColumnName = keyof Table;
export const eventColumns: Readonly<Record<EventColumnName, EventColumn>> = table;
export const eventColumnNames = Object.keys(table) as EventColumnName[];

/** What lists show beside columns, in the words of the documentation. */
export const computedMembers = {
  id: "Same as `uuid`.",
  person: "The person the distinct id belongs to now.",
  elements: "`elements_chain` taken apart, the first 500 elements of it.",
} as const;
export type ComputedMember = keyof typeof computedMembers;

/** The members of an event in lists, in their order. */
export const listedMembers = [
  ...(["id", "uuid", "event", "distinct_id", "timestamp", "properties"] as const),
  ...(["person", "elements", "elements_chain", "seq", "historical"] as const),
] satisfies (EventColumnName | ComputedMember)[];
export const listedColumns = listedMembers.filter((name) => name in table) as ListedColumn[];
type ListedColumn = Exclude<(typeof listedMembers)[number], ComputedMember>;

/** The columns of exports and of the view of statements, in their order; the person comes behind them. */
export const exportedColumns = [
  ...(["uuid", "event", "distinct_id", "timestamp", "received_at", "properties", "elements_chain"] as const),
  ...(["historical", "seq"] as const),
] satisfies EventColumnName[];

/** The columns from which an event is made again: the others follow from these, or are the same for a whole lane. */
export const movedColumns = eventColumnNames.filter(
  (name) => eventColumns[name].member !== undefined && name !== "historical",
);

/** What is stored of an event. */
type Stored = Readonly<Record<Member, unknown>> & { readonly uuid: string };

/** What an event gives for a column: a value of its kind. */
export function valueFor<Value>({ member, of }: EventColumn): (event: Stored) => Value {
  return (of ?? ((event: Stored) => event[member!])) as (event: Stored) => Value;
}

/** What an event in a list holds, by column. */
export type StoredEvent = { [Name in ListedColumn]: ColumnValues[Table[Name]["kind"]] };

/**
 * The milliseconds since 1970 inside a version 7 uuid, its first 48 bits; null for uuids of other versions.
 *
 * The search for duplicates reads only row groups of that time.
 */
export function uuidTime(uuid: string): number | null {
  if (uuid.charCodeAt(14) !== digitSeven) return null;
  return (fourDigits(uuid, 0) * two16 + fourDigits(uuid, 4)) * two16 + fourDigits(uuid, 9);
}

const two16 = 2 ** 16;
const digitSeven = 0x37;
/** Values of hexadecimal digits, by their character codes. */
const digitValues = Uint8Array.from({ length: 128 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(value) ? 0 : value;
});

/** The number that four hexadecimal digits of a text are. Much faster than parsing a text of its own. */
export function fourDigits(text: string, at: number): number {
  return (
    (digitValues[text.charCodeAt(at)]! << 12) |
    (digitValues[text.charCodeAt(at + 1)]! << 8) |
    (digitValues[text.charCodeAt(at + 2)]! << 4) |
    digitValues[text.charCodeAt(at + 3)]!
  );
}
