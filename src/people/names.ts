/**
 * Names of events and properties, and some of their values, for people who choose from them.
 *
 * Most batches bring nothing new and cost a look into memory. What is kept is bounded: clients may invent names.
 */

import type { JournalItem } from "../journal/entry.ts";
import { numberText } from "../lib/exact-json.ts";
import { isJsonObject } from "../lib/json.ts";
import { microsPerDay } from "../lib/time.ts";
import { type Members, ParsedMembers, type ValueNumbers, valueNumbersMax } from "../scan/members.ts";
import { isGroupIdentify } from "./identity/event-names.ts";
import type { PeopleDb } from "./open.ts";

export type PropertyType = "String" | "Numeric" | "Boolean" | "DateTime";

export interface EventName {
  name: string;
  firstSeenMicros: number;
  lastSeenMicros: number;
}

export interface PropertyName {
  name: string;
  type: PropertyType | null;
  lastSeenMicros: number;
}

/** Names of events of one project. */
const eventNamesMax = 5_000;
/** Names of properties of one owner, and of all owners of one project. */
const propertyNamesMax = 10_000;
export const projectPropertyNamesMax = 40_000;
/** Values of one property, and of all properties of one project; the first ones. */
const valuesMax = 50;
export const projectValuesMax = 200_000;
const valueLengthMax = 100;
const nameLengthMax = 200;
/** Places of properties that are remembered; those behind are looked up by name. */
const placesMax = 100;
/** Owners of properties of one project: events, persons, and group types. */
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
  /** By their place in the last object: most objects have the same names in the same order. */
  private readonly places: { name: string; found: KnownProperty }[] = [];
  private learned: LearnedValues | undefined;

  get(name: string, place: number): KnownProperty | undefined {
    const expected = this.places[place];
    if (expected?.name === name) return expected.found;
    const found = this.byName.get(name);
    if (found !== undefined && place < placesMax) this.places[place] = { name, found };
    return found;
  }

  /** The values that tell nothing new on a day, most of which come again and again; undefined where none has a number. */
  learnedOn(day: number, { numbers }: Members): LearnedValues | undefined {
    if (numbers === undefined) return undefined;
    const { learned } = this;
    if (learned !== undefined && learned.numbers === numbers && learned.day >= day) return learned;
    this.learned = new LearnedValues(day, numbers);
    return this.learned;
  }
}
/** A bit for each number of a value. */
class LearnedValues {
  private readonly bits = new Uint8Array((valueNumbersMax >>> 3) + 1);

  constructor(
    readonly day: number,
    readonly numbers: ValueNumbers,
  ) {}

  has(number: number): boolean {
    return (this.bits[number >>> 3]! & (1 << (number & 7))) !== 0;
  }

  /** What came on an earlier day has to be looked at again. */
  add(number: number, day: number): void {
    if (number !== 0 && day === this.day) this.bits[number >>> 3]! |= 1 << (number & 7);
  }
}
interface KnownNames {
  /** The day each was last seen. */
  events: Map<string, number>;
  owners: Map<string, KnownProperties>;
  /** Names of properties of all owners. */
  propertyNames: number;
  /** Values of all properties. */
  values: number;
}

/** Takes names out of events as they are loaded. */
export class NameRegister {
  private readonly projects = new Map<number, KnownNames>();
  private writes: (() => void)[] = [];

  /** @param db the store, opened for writing. */
  constructor(private readonly db: PeopleDb) {}

  /** Looks at what is going to be loaded, and stores what is new at the next `store`; repeating it changes nothing. */
  look(items: readonly JournalItem[]): void {
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
        const set = membersOf(properties.valueOf(name));
        if (set !== undefined) this.takeProperties(known, { projectId, owner: "person", at }, set);
      }
      if (!isGroupIdentify(item.event)) continue;
      const type = properties.valueOf("$group_type");
      const set = membersOf(properties.valueOf("$group_set"));
      if (typeof type !== "string" || set === undefined) continue;
      this.takeProperties(known, { projectId, owner: `group:${type.slice(0, nameLengthMax)}`, at }, set);
    }
  }

  /** Stores what was found. */
  store(): void {
    const { writes } = this;
    if (writes.length === 0) return;
    this.writes = [];
    this.db.$client.transaction(() => {
      for (const write of writes) write();
    })();
  }

  /** Values of somebody who is deleted have to go; later events bring those of others back. */
  private forgetValues(projectId: number): void {
    this.db.$client.query("DELETE FROM property_value WHERE project_id = ?").run(projectId);
    this.projects.delete(projectId);
  }

  private takeEvent(known: KnownNames, item: JournalItem & { kind: "event" }): void {
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
    known: KnownNames,
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
    for (let place = 0; place < properties.names.length; place++) {
      const number = properties.number(place);
      if (learned?.has(number)) continue;
      this.takeProperty(known, names, { projectId, owner, at, day }, properties, place);
      learned?.add(number, day);
    }
  }

  private takeProperty(
    known: KnownNames,
    names: KnownProperties,
    { projectId, owner, at, day }: { projectId: number; owner: string; at: number; day: number },
    properties: Members,
    place: number,
  ): void {
    const name = properties.names[place]!;
    let found = names.get(name, place);
    if (found !== undefined && found.day >= day && tellsNothingNew(found, properties, place)) return;
    const isNew = found === undefined;
    const text = properties.text(place);
    if (found !== undefined && found.day >= day && found.values.has(text)) return;
    const value = properties.value(place);
    if (found === undefined) {
      if (names.byName.size >= propertyNamesMax || name.length > nameLengthMax) return;
      if (known.propertyNames >= projectPropertyNamesMax) return;
      found = { type: null, day, values: new Set() };
      names.byName.set(name, found);
      known.propertyNames += 1;
    }
    const type = found.type === "String" ? found.type : widened(found.type, typeOf(value));
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
    if (found.values.size >= valuesMax || known.values >= projectValuesMax || !isKept(value, text)) return;
    found.values.add(text);
    known.values += 1;
    this.writes.push(() =>
      this.db.$client
        .query("INSERT OR IGNORE INTO property_value VALUES (?, ?, ?, ?)")
        .run(projectId, owner, name, text),
    );
  }

  private knownOf(projectId: number): KnownNames {
    const known = this.projects.get(projectId);
    if (known !== undefined) return known;
    const read: KnownNames = { events: new Map(), owners: new Map(), propertyNames: 0, values: 0 };
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

/** Names of events that contain a text, in any case, by name; and how many there are. */
export function listEventNames(
  db: PeopleDb,
  projectId: number,
  search: string,
  page: { limit: number; offset: number },
): { names: EventName[]; count: number } {
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

/** The same for properties of one owner. */
export function listPropertyNames(
  db: PeopleDb,
  of: { projectId: number; owner: string; search: string },
  page: { limit: number; offset: number },
): { names: PropertyName[]; count: number } {
  const rows = db.$client
    .query("SELECT name, type, last_seen FROM property_name WHERE project_id = ? AND owner = ? ORDER BY name")
    .values(of.projectId, of.owner) as [string, PropertyType | null, number][];
  const { found, count } = pageOfNames(rows, of.search, page);
  return { names: found.map(([name, type, lastSeenMicros]) => ({ name, type, lastSeenMicros })), count };
}

/** The rows whose name contains a text. SQLite folds the case of ASCII only, and there are a few thousand at most. */
function pageOfNames<Row extends readonly [name: string, ...unknown[]]>(
  rows: readonly Row[],
  search: string,
  { limit, offset }: { limit: number; offset: number },
): { found: Row[]; count: number } {
  const wanted = search.toLowerCase();
  const all = rows.filter(([name]) => name.toLowerCase().includes(wanted));
  return { found: all.slice(offset, offset + limit), count: all.length };
}

/** Values of a property that contain a text, in any case. */
export function listPropertyValues(
  db: PeopleDb,
  of: { projectId: number; owner: string; name: string; search: string },
): (string | number | boolean)[] {
  const rows = db.$client
    .query("SELECT value FROM property_value WHERE project_id = ? AND owner = ? AND name = ? ORDER BY value")
    .values(of.projectId, of.owner, of.name) as [string][];
  const wanted = of.search.toLowerCase();
  return rows
    .map(([text]) => JSON.parse(text) as string | number | boolean)
    .filter((value) => String(value).toLowerCase().includes(wanted));
}

/** Whether there is nothing left to learn of such values. */
function tellsNothingNew({ type, values }: KnownProperty, of: Members, place: number): boolean {
  const isFull = values.size >= valuesMax;
  if (isFull && type === "String") return true;
  const kind = of.kind(place);
  if (kind === "null" || kind === "object") return true;
  return isFull && type === "Numeric" && kind === "number";
}

/** The members of a value that is an object. */
function membersOf(value: unknown): Members | undefined {
  if (!isJsonObject(value)) return undefined;
  return new ParsedMembers(value);
}

function typeOf(value: unknown): PropertyType | null {
  if (typeof value === "number" || numberText(value) !== undefined) return "Numeric";
  if (typeof value === "boolean") return "Boolean";
  if (typeof value !== "string") return null;
  return dateTime.test(value) ? "DateTime" : "String";
}

/** What has been seen as two kinds is text. */
function widened(known: PropertyType | null, seen: PropertyType | null): PropertyType | null {
  if (known === null || seen === null) return known ?? seen;
  return known === seen ? known : "String";
}

/** Whether people may choose from a value. */
function isKept(value: unknown, text: string): boolean {
  if (typeof value === "string") return value !== "" && value.length <= valueLengthMax;
  return (typeof value === "number" || typeof value === "boolean") && text !== "null";
}
