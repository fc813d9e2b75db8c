/**
 * Encoding of persons' properties in rows: the values, and the ID of their list of names. A third of the space and time
 * of JSON objects, in which names are half of the text and many values occur twice.
 */

import type { Database } from "bun:sqlite";
import { BoundedCache } from "../lib/bounded-cache.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import { PropertyNames } from "./identity/property-names.ts";
import type { PropertyStateData } from "./identity/property-state.ts";

/** Maximum number of lists: clients may invent names, and another order is another list. */
export const keySetsMax = 4_000;
/** Longer lists, and lists of long names, are not stored. */
const listedNamesMax = 200;
const listLengthMax = 8_000;
/** Maximum memory of cached lists. */
const readBytesMax = 8 * 1024 * 1024;

const idBytes = 12;
/** Never occurs in a value: JSON strings escape it, and our serializers write no other whitespace. */
const lineBreak = "\n";

const readLists = new BoundedCache<Database, PropertyNames>(readBytesMax, (_, { names }) =>
  names.reduce((sum, name) => sum + 2 * name.length + bytesPerName, 0),
);
/** Overhead in the list, its map and its prefixes. */
const bytesPerName = 150;

const written = new WeakMap<Database, Set<string>>();

/** Lists used by writes since `clearRecentKeySets`, new or not; at most `keySetsMax`. */
export function recentKeySets(client: Database): ReadonlySet<string> {
  return written.get(client) ?? new Set();
}

/** Starts recording used lists from scratch. */
export function clearRecentKeySets(client: Database): void {
  written.set(client, new Set());
}

/** Decodes the compact properties of a row. @throws the list of names does not exist */
export function readProperties(client: Database, stored: string): Pick<PropertyStateData, "names" | "texts"> {
  const end = stored.indexOf(lineBreak);
  const names = toList(client, stored.slice(0, end));
  const texts = stored.slice(end + 1).split(lineBreak);
  const { twins } = names;
  for (let slot = 0; slot < texts.length; slot++) {
    if (texts[slot] === "") texts[slot] = texts[twins[slot]!]!;
  }
  return { names, texts };
}

/** Whether stored properties are compact, not a JSON object. */
export function isCompact(stored: string): boolean {
  return !stored.startsWith("{");
}

/** Stored properties as a JSON object. @throws the list of names does not exist */
export function propertiesJson(client: Database, stored: string): string {
  return isCompact(stored) ? serializeObject(readProperties(client, stored)) : stored;
}

/**
 * Stored properties as a JSON object, and some of their values (undefined if absent).
 * @throws the list of names does not exist
 */
export function propertiesWith(
  client: Database,
  stored: string,
  names: readonly string[],
): { json: string; values: unknown[] } {
  if (!isCompact(stored)) return { json: stored, values: getValues(stored, names) };
  const content = readProperties(client, stored);
  const slots = content.names.slotsOf(names);
  const values = slots.map((slot) => (slot === -1 ? undefined : parseExactJson(content.texts[slot]!)));
  return { json: serializeObject(content), values };
}

/** Some values of properties as a JSON object; undefined if absent. */
export function getValues(json: string, names: readonly string[]): unknown[] {
  const all = new Map(Object.entries(parseExactJson(json) as Record<string, unknown>));
  return names.map((name) => all.get(name));
}

/** Serializes properties as a JSON object. */
export function serializeObject({ names, texts }: Pick<PropertyStateData, "names" | "texts">): string {
  let members = "";
  for (let slot = 0; slot < texts.length; slot++)
    members += (slot === 0 ? "" : ",") + names.prefixes[slot]! + texts[slot]!;
  return `{${members}}`;
}

/** Encodes properties and writes new lists, in one transaction. */
export class KeySetWriter {
  private readonly ids = new Map<PropertyNames, string | undefined>();
  private readonly idsByText = new Map<string, string | undefined>();

  constructor(private readonly client: Database) {}

  /** The encoding that `readProperties` decodes. */
  toJson(content: Pick<PropertyStateData, "names" | "texts">): string {
    const id = this.idOf(content.names);
    if (id === undefined) return serializeObject(content);
    const { texts } = content;
    const { twins } = content.names;
    const lines = [id];
    for (let slot = 0; slot < texts.length; slot++) {
      const twin = twins[slot]!;
      lines.push(twin === -1 || texts[twin] !== texts[slot] ? texts[slot]! : "");
    }
    return lines.join(lineBreak);
  }

  /** Undefined for a list that is not stored. */
  private idOf(names: PropertyNames): string | undefined {
    if (names.count === 0 || names.count > listedNamesMax) return undefined;
    if (this.ids.has(names)) return this.ids.get(names);
    const text = JSON.stringify(names.names);
    const id = this.idsByText.has(text) ? this.idsByText.get(text) : this.keep(text);
    this.idsByText.set(text, id);
    if (id !== undefined) written.get(this.client)?.add(id);
    // There may be as many unshared lists as persons.
    if (names.isShared) this.ids.set(names, id);
    return id;
  }

  private keep(text: string): string | undefined {
    if (text.length > listLengthMax) return undefined;
    const id = new Bun.CryptoHasher("sha256")
      .update(text)
      .digest()
      .subarray(0, idBytes)
      .toString("base64url");
    const known = getNames(this.client, id);
    if (known !== null) return known === text ? id : undefined;
    const { count } = this.client
      .query<{ count: number }, []>("SELECT count(*) AS count FROM property_list")
      .get()!;
    if (count >= keySetsMax) return undefined;
    this.client.query("INSERT INTO property_list VALUES (?, ?)").run(id, text);
    return id;
  }
}

function toList(client: Database, id: string): PropertyNames {
  const read = readLists.get(client, id);
  if (read !== undefined) return read;
  const text = getNames(client, id);
  if (text === null) throw new Error(`Property list ${id} does not exist.`);
  const names = PropertyNames.from(JSON.parse(text) as string[]);
  readLists.set(client, id, names);
  return names;
}

function getNames(client: Database, id: string): string | null {
  const found = client
    .query<{ names: string }, [string]>("SELECT names FROM property_list WHERE id = ?")
    .get(id);
  return found?.names ?? null;
}
