/**
 * Persons' properties as rows hold them: the values, and which list of names they have.
 *
 * A third of the room and time of JSON objects, in which names are half of the text and many values stand twice.
 */

import type { Database } from "bun:sqlite";
import { parseExactJson } from "../lib/exact-json.ts";
import { Recent } from "../lib/recent.ts";
import type { BagContent } from "./identity/property-bag.ts";
import { PropertyNames } from "./identity/property-names.ts";

/** Further lists are not kept: clients may invent names, and properties in another order are another list. */
export const listsMax = 4_000;
/** Longer lists are not kept either, nor those of longer names. */
const listedNamesMax = 200;
const listLengthMax = 8_000;
/** What lists that were read take in memory. */
const readBytesMax = 8 * 1024 * 1024;

const idBytes = 12;
/** No value has one: JSON text escapes it in strings, and nothing else of ours writes any. */
const lineBreak = "\n";

const readLists = new Recent<Database, PropertyNames>(readBytesMax, (_, { names }) =>
  names.reduce((sum, name) => sum + 2 * name.length + bytesPerName, 0),
);
/** In the list, its map and its prefixes. */
const bytesPerName = 150;

const written = new WeakMap<Database, Set<string>>();

/** Lists that were written since `forgetWrittenLists`, whether or not they were new; at most as many as there may be. */
export function writtenLists(client: Database): ReadonlySet<string> {
  return written.get(client) ?? new Set();
}

/** Begins to note anew which lists are written. */
export function forgetWrittenLists(client: Database): void {
  written.set(client, new Set());
}

/** The properties of a row, which may be a JSON object. @throws nobody knows its list. */
export function readProperties(client: Database, stored: string): Pick<BagContent, "names" | "texts"> {
  const end = stored.indexOf(lineBreak);
  const names = listOf(client, stored.slice(0, end));
  const texts = stored.slice(end + 1).split(lineBreak);
  const { twins } = names;
  for (let slot = 0; slot < texts.length; slot++) {
    if (texts[slot] === "") texts[slot] = texts[twins[slot]!]!;
  }
  return { names, texts };
}

/** Whether properties are only the values. */
export function isListed(stored: string): boolean {
  return !stored.startsWith("{");
}

/** The properties of a row as a JSON object. @throws nobody knows its list. */
export function propertiesJson(client: Database, stored: string): string {
  return isListed(stored) ? objectText(readProperties(client, stored)) : stored;
}

/** The properties of a row as a JSON object, and the values of some of them, undefined for those it lacks. @throws as above. */
export function propertiesWith(
  client: Database,
  stored: string,
  names: readonly string[],
): { json: string; values: unknown[] } {
  if (!isListed(stored)) {
    const all = new Map(Object.entries(parseExactJson(stored) as Record<string, unknown>));
    return { json: stored, values: names.map((name) => all.get(name)) };
  }
  const content = readProperties(client, stored);
  const slots = content.names.slotsOf(names);
  const values = slots.map((slot) => (slot === -1 ? undefined : parseExactJson(content.texts[slot]!)));
  return { json: objectText(content), values };
}

/** Properties as a JSON object. */
export function objectText({ names, texts }: Pick<BagContent, "names" | "texts">): string {
  let members = "";
  for (let slot = 0; slot < texts.length; slot++)
    members += (slot === 0 ? "" : ",") + names.prefixes[slot]! + texts[slot]!;
  return `{${members}}`;
}

/** Writes properties, and their lists where they are new; for one transaction. */
export class PropertyListWriter {
  private readonly ids = new Map<PropertyNames, string | undefined>();
  private readonly idsByText = new Map<string, string | undefined>();

  constructor(private readonly client: Database) {}

  /** As `readProperties` reads them. */
  textOf(content: Pick<BagContent, "names" | "texts">): string {
    const id = this.idOf(content.names);
    if (id === undefined) return objectText(content);
    const { texts } = content;
    const { twins } = content.names;
    const lines = [id];
    for (let slot = 0; slot < texts.length; slot++) {
      const twin = twins[slot]!;
      lines.push(twin === -1 || texts[twin] !== texts[slot] ? texts[slot]! : "");
    }
    return lines.join(lineBreak);
  }

  /** Undefined for a list that is not kept. */
  private idOf(names: PropertyNames): string | undefined {
    if (names.count === 0 || names.count > listedNamesMax) return undefined;
    if (this.ids.has(names)) return this.ids.get(names);
    const text = JSON.stringify(names.names);
    const id = this.idsByText.has(text) ? this.idsByText.get(text) : this.keep(text);
    this.idsByText.set(text, id);
    if (id !== undefined) written.get(this.client)?.add(id);
    // Of others there may be as many as persons.
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
    const known = namesOf(this.client, id);
    if (known !== null) return known === text ? id : undefined;
    const { count } = this.client
      .query<{ count: number }, []>("SELECT count(*) AS count FROM property_list")
      .get()!;
    if (count >= listsMax) return undefined;
    this.client.query("INSERT INTO property_list VALUES (?, ?)").run(id, text);
    return id;
  }
}

function listOf(client: Database, id: string): PropertyNames {
  const read = readLists.get(client, id);
  if (read !== undefined) return read;
  const text = namesOf(client, id);
  if (text === null) throw new Error(`The list of properties ${id} is not there.`);
  const names = PropertyNames.of(JSON.parse(text) as string[]);
  readLists.set(client, id, names);
  return names;
}

function namesOf(client: Database, id: string): string | null {
  const found = client
    .query<{ names: string }, [string]>("SELECT names FROM property_list WHERE id = ?")
    .get(id);
  return found?.names ?? null;
}
