/**
 * Definitions of events and properties with sample values, for selection in the console. Most batches contain nothing
 * new and only cost a lookup in memory. Sizes are limited because clients may invent names.
 */

import type { JournalItem } from "../journal/entry.ts";
import { formatNumber } from "../lib/json/exact.ts";
import { isJsonObject } from "../lib/json/value.ts";
import { microsPerDay } from "../lib/time.ts";
import { type Members, ParsedMembers, type ValueNumbers, valueNumbersMax } from "../scan/members.ts";
import { isGroupIdentify } from "./identity/event-names.ts";
import type { PersonsDb } from "./open.ts";

export type PropertyType = "String" | "Numeric" | "Boolean" | "DateTime";

export interface EventDefinition {
  name: string;
  firstSeenMicros: number;
  lastSeenMicros: number;
}

export interface PropertyDefinition {
  name: string;
  type: PropertyType | null;
  lastSeenMicros: number;
}

/** Event names per project. */
const eventNamesMax = 5_000;
/** Property names per owner, and of all owners of a project. */
const propertyNamesMax = 10_000;
export const projectPropertyDefinitionsMax = 40_000;
/** Values per property, and of all properties of a project; the first ones are kept. */
const valuesMax = 50;
export const projectValuesMax = 200_000;
const valueLengthMax = 100;
const nameLengthMax = 200;
/** Positions of properties that are cached; later ones are looked up by name. */
const cachedIndexesMax = 100;
/** Owners of properties per project: events, persons, and group types. */
const ownersMax = 32;
const dateTime = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

interface KnownProperty {
  type: PropertyType | null;
  day: number;
  /** As JSON. */
  values: Set<string>;
}
/** The properties of one owner. */
class KnownProperties {
  readonly byName = new Map<string, KnownProperty>();
  /** By position in the last object: most objects have the same names in the same order. */
  private readonly positions: { name: string; found: KnownProperty }[] = [];
  private learned: LearnedValues | undefined;

  get(name: string, index: number): KnownProperty | undefined {
    const expected = this.positions[index];
    if (expected?.name === name) return expected.found;
    const found = this.byName.get(name);
    if (found !== undefined && index < cachedIndexesMax) this.positions[index] = { name, found };
    return found;
  }

  /** Values already recorded on a day, most of which repeat; undefined if values are not numbered. */
  learnedOn(day: number, { numbers }: Members): LearnedValues | undefined {
    if (numbers === undefined) return undefined;
    const { learned } = this;
    if (learned !== undefined && learned.numbers === numbers && learned.day >= day) return learned;
    this.learned = new LearnedValues(day, numbers);
    return this.learned;
  }
}
/** A bitmap over the numbers of values. */
class LearnedValues {
  private readonly bits = new Uint8Array((valueNumbersMax >>> 3) + 1);

  constructor(
    readonly day: number,
    readonly numbers: ValueNumbers,
  ) {}

  has(number: number): boolean {
    return (this.bits[number >>> 3]! & (1 << (number & 7))) !== 0;
  }

  /** A value recorded on an earlier day has to be checked again. */
  add(number: number, day: number): void {
    if (number !== 0 && day === this.day) this.bits[number >>> 3]! |= 1 << (number & 7);
  }
}
interface KnownDefinitions {
  /** Day of the last occurrence by event name. */
  events: Map<string, number>;
  owners: Map<string, KnownProperties>;
  /** Property names of all owners. */
  propertyNames: number;
  /** Values of all properties. */
  values: number;
}

/** Collects definitions from events while they are loaded. */
export class DefinitionRecorder {
  private readonly projects = new Map<number, KnownDefinitions>();
  private writes: (() => void)[] = [];

  /** @param db opened for writing */
  constructor(private readonly db: PersonsDb) {}

  /** Collects new definitions, which `store` writes; idempotent. */
  collect(items: readonly JournalItem[]): void {
    for (const item of items) {
      if (item.kind === "person_deleted") {
        this.store();
        this.forgetValues(item.projectId);
      }
      if (item.kind !== "event") continue;
      const known = this.knownOf(item.projectId);
      this.takeEvent(known, item);
      const { projectId, properties, receivedMicros: at } = item;
      this.takeProperties(known, { projectId, owner: "event", at }, properties);
      for (const name of ["$set", "$set_once"]) {
        const set = getMembers(properties.valueOf(name));
        if (set !== undefined) this.takeProperties(known, { projectId, owner: "person", at }, set);
      }
      if (!isGroupIdentify(item.event)) continue;
      const type = properties.valueOf("$group_type");
      const set = getMembers(properties.valueOf("$group_set"));
      if (typeof type !== "string" || set === undefined) continue;
      this.takeProperties(known, { projectId, owner: `group:${type.slice(0, nameLengthMax)}`, at }, set);
    }
  }

  /**
   * The event properties among these names that no event of the project has, including events that are being loaded.
   * Empty if some names may not have been recorded.
   */
  absentProperties(projectId: number, names: readonly string[]): string[] {
    const known = this.knownOf(projectId);
    const recorded = known.owners.get("event")?.byName;
    const isComplete =
      recorded !== undefined &&
      recorded.size < propertyNamesMax &&
      known.propertyNames < projectPropertyDefinitionsMax;
    return isComplete ? names.filter((name) => !recorded.has(name)) : [];
  }

  store(): void {
    const { writes } = this;
    if (writes.length === 0) return;
    this.writes = [];
    this.db.$client.transaction(() => {
      for (const write of writes) write();
    })();
  }

  /** Discards what is in memory: another engine may have recorded definitions. */
  reload(): void {
    this.store();
    this.projects.clear();
  }

  /**
   * Deletes the values of a project, because they may belong to a deleted person; later events restore those of others.
   */
  private forgetValues(projectId: number): void {
    this.db.$client.query("DELETE FROM property_value WHERE project_id = ?").run(projectId);
    this.projects.delete(projectId);
  }

  private takeEvent(known: KnownDefinitions, item: JournalItem & { kind: "event" }): void {
    const { projectId, event, receivedMicros } = item;
    const day = Math.floor(receivedMicros / microsPerDay);
    const before = known.events.get(event);
    if (before !== undefined && before >= day) return;
    if (before === undefined && (known.events.size >= eventNamesMax || event.length > nameLengthMax)) return;
    known.events.set(event, day);
    this.writes.push(() =>
      this.db.$client
        .query(
          `INSERT INTO event_name VALUES (?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET last_seen = max(last_seen, excluded.last_seen)`,
        )
        .run(projectId, event, receivedMicros, receivedMicros),
    );
  }

  private takeProperties(
    known: KnownDefinitions,
    { projectId, owner, at }: { projectId: number; owner: string; at: number },
    properties: Members,
  ): void {
    let names = known.owners.get(owner);
    if (names === undefined) {
      if (known.owners.size >= ownersMax) return;
      names = new KnownProperties();
      known.owners.set(owner, names);
    }
    const day = Math.floor(at / microsPerDay);
    const learned = names.learnedOn(day, properties);
    for (let index = 0; index < properties.names.length; index++) {
      const number = properties.number(index);
      if (learned?.has(number)) continue;
      this.takeProperty(known, names, { projectId, owner, at, day }, properties, index);
      learned?.add(number, day);
    }
  }

  private takeProperty(
    known: KnownDefinitions,
    names: KnownProperties,
    { projectId, owner, at, day }: { projectId: number; owner: string; at: number; day: number },
    properties: Members,
    index: number,
  ): void {
    const name = properties.names[index]!;
    let found = names.get(name, index);
    if (found !== undefined && found.day >= day && isUnchanged(found, properties, index)) return;
    const isNew = found === undefined;
    const text = properties.text(index);
    if (found !== undefined && found.day >= day && found.values.has(text)) return;
    const value = properties.value(index);
    if (found === undefined) {
      if (names.byName.size >= propertyNamesMax || name.length > nameLengthMax) return;
      if (known.propertyNames >= projectPropertyDefinitionsMax) return;
      found = { type: null, day, values: new Set() };
      names.byName.set(name, found);
      known.propertyNames += 1;
    }
    const type = found.type === "String" ? found.type : widened(found.type, getType(value));
    if (isNew || type !== found.type || day > found.day) {
      found.type = type;
      found.day = Math.max(found.day, day);
      this.writes.push(() =>
        this.db.$client
          .query(
            `INSERT INTO property_name VALUES (?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET type = excluded.type, last_seen = max(last_seen, excluded.last_seen)`,
          )
          .run(projectId, owner, name, type, at),
      );
    }
    if (found.values.size >= valuesMax || known.values >= projectValuesMax || !isRetained(value, text))
      return;
    found.values.add(text);
    known.values += 1;
    this.writes.push(() =>
      this.db.$client
        .query("INSERT OR IGNORE INTO property_value VALUES (?, ?, ?, ?)")
        .run(projectId, owner, name, text),
    );
  }

  private knownOf(projectId: number): KnownDefinitions {
    const known = this.projects.get(projectId);
    if (known !== undefined) return known;
    const read: KnownDefinitions = { events: new Map(), owners: new Map(), propertyNames: 0, values: 0 };
    this.projects.set(projectId, read);
    const client = this.db.$client;
    for (const [name, last] of client
      .query("SELECT name, last_seen FROM event_name WHERE project_id = ?")
      .values(projectId) as [string, number][]) {
      read.events.set(name, Math.floor(last / microsPerDay));
    }
    for (const [owner, name, type, last] of client
      .query("SELECT owner, name, type, last_seen FROM property_name WHERE project_id = ?")
      .values(projectId) as [string, string, PropertyType | null, number][]) {
      const names = read.owners.get(owner) ?? new KnownProperties();
      read.owners.set(owner, names);
      names.byName.set(name, {
        type,
        day: Math.floor(last / microsPerDay),
        values: new Set(),
      });
      read.propertyNames += 1;
    }
    for (const [owner, name, value] of client
      .query("SELECT owner, name, value FROM property_value WHERE project_id = ?")
      .values(projectId) as [string, string, string][]) {
      const values = read.owners.get(owner)?.byName.get(name)?.values;
      if (values === undefined) continue;
      values.add(value);
      read.values += 1;
    }
    return read;
  }
}

/** Event names that contain a string, ignoring case, ordered by name; and their number. */
export function listEventDefinitions(
  db: PersonsDb,
  projectId: number,
  search: string,
  page: { limit: number; offset: number },
): { names: EventDefinition[]; count: number } {
  const rows = db.$client
    .query("SELECT name, first_seen, last_seen FROM event_name WHERE project_id = ? ORDER BY name")
    .values(projectId) as [string, number, number][];
  const { found, count } = pageOfNames(rows, search, page);
  const names = found.map(([name, firstSeenMicros, lastSeenMicros]) => ({
    name,
    firstSeenMicros,
    lastSeenMicros,
  }));
  return { names, count };
}

/** Like `listEventDefinitions`, for the properties of one owner. */
export function listPropertyDefinitions(
  db: PersonsDb,
  filter: { projectId: number; owner: string; search: string },
  page: { limit: number; offset: number },
): { names: PropertyDefinition[]; count: number } {
  const rows = db.$client
    .query("SELECT name, type, last_seen FROM property_name WHERE project_id = ? AND owner = ? ORDER BY name")
    .values(filter.projectId, filter.owner) as [string, PropertyType | null, number][];
  const { found, count } = pageOfNames(rows, filter.search, page);
  return { names: found.map(([name, type, lastSeenMicros]) => ({ name, type, lastSeenMicros })), count };
}

/** The type of all values of a property so far; null if they differ or there are none. */
export function findPropertyType(
  db: PersonsDb,
  { projectId, owner, name }: { projectId: number; owner: string; name: string },
): PropertyType | null {
  const row = db.$client
    .query("SELECT type FROM property_name WHERE project_id = ? AND owner = ? AND name = ?")
    .get(projectId, owner, name) as { type: PropertyType | null } | null;
  return row?.type ?? null;
}

/**
 * Rows whose name contains a string. Filtered here, because SQLite ignores case for ASCII only; there are a few
 * thousand.
 */
function pageOfNames<Row extends readonly [name: string, ...unknown[]]>(
  rows: readonly Row[],
  search: string,
  { limit, offset }: { limit: number; offset: number },
): { found: Row[]; count: number } {
  const wanted = search.toLowerCase();
  const all = rows.filter(([name]) => name.toLowerCase().includes(wanted));
  return { found: all.slice(offset, offset + limit), count: all.length };
}

/** Values of a property that contain a string, ignoring case. */
export function listPropertyValues(
  db: PersonsDb,
  filter: { projectId: number; owner: string; name: string; search: string },
): (string | number | boolean)[] {
  const rows = db.$client
    .query("SELECT value FROM property_value WHERE project_id = ? AND owner = ? AND name = ? ORDER BY value")
    .values(filter.projectId, filter.owner, filter.name) as [string][];
  const wanted = filter.search.toLowerCase();
  return rows
    .map(([text]) => JSON.parse(text) as string | number | boolean)
    .filter((value) => String(value).toLowerCase().includes(wanted));
}

/** Whether type and values of the property are complete for this value. */
function isUnchanged({ type, values }: KnownProperty, members: Members, index: number): boolean {
  const isFull = values.size >= valuesMax;
  if (isFull && type === "String") return true;
  const kind = members.kind(index);
  if (kind === "null" || kind === "object") return true;
  return isFull && type === "Numeric" && kind === "number";
}

/** The members of an object value. */
function getMembers(value: unknown): Members | undefined {
  if (!isJsonObject(value)) return undefined;
  return new ParsedMembers(value);
}

function getType(value: unknown): PropertyType | null {
  if (typeof value === "number" || formatNumber(value) !== undefined) return "Numeric";
  if (typeof value === "boolean") return "Boolean";
  if (typeof value !== "string") return null;
  return dateTime.test(value) ? "DateTime" : "String";
}

/** Properties with values of different types are strings. */
function widened(known: PropertyType | null, seen: PropertyType | null): PropertyType | null {
  if (known === null || seen === null) return known ?? seen;
  return known === seen ? known : "String";
}

/** Whether a value is offered for selection. */
function isRetained(value: unknown, text: string): boolean {
  if (typeof value === "string") return value !== "" && value.length <= valueLengthMax;
  return (typeof value === "number" || typeof value === "boolean") && text !== "null";
}

/** The event properties among these names that have occurred in projects with one of the events. */
export function occurringProperties(
  people: PersonsDb,
  events: readonly string[],
  names: readonly string[],
): string[] {
  const found = people.$client
    .query(
      `SELECT DISTINCT name FROM property_name WHERE owner = 'event' AND name IN (${names.map(() => "?").join(", ")})
       AND project_id IN (SELECT project_id FROM event_name WHERE name IN (${events.map(() => "?").join(", ")}))`,
    )
    .all(...names, ...events) as { name: string }[];
  const occurring = new Set(found.map(({ name }) => name));
  return names.filter((name) => occurring.has(name));
}
