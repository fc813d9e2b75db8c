/** Objects of a project during an import: each kind is read once, and afterwards only what the import wrote. */

import type { Reading } from "../accounts/db.ts";
import type { JsonObject } from "../lib/json/value.ts";
import {
  getIdentity,
  type ObjectMember,
  objectSources,
  type StoredObject,
} from "../operations/flag-document.ts";

interface Entry {
  /** Of two objects with the same identity the one with the higher rank is found. */
  readonly rank: number;
  object: StoredObject;
}

interface ObjectIndex {
  /** By rank; entries of objects that were renamed since are removed when they are found. */
  byIdentity: Map<string, Entry[]>;
  byId: Map<StoredObject["id"], Entry>;
}

export class StoredObjects {
  private readonly sources: ReturnType<typeof objectSources>;
  private readonly indexes = new Map<ObjectMember, ObjectIndex>();

  constructor(db: Reading, projectId: number) {
    this.sources = objectSources(db, projectId);
  }

  /** The object that an item stands for: of surveys the one with its ID, else that with its identity. */
  find(member: ObjectMember, item: JsonObject): StoredObject | undefined {
    const { byIdentity, byId } = this.index(member);
    const withId = member === "surveys" ? byId.get(String(item.id)) : undefined;
    if (withId !== undefined) return withId.object;
    const identity = getIdentity(item);
    const entries = byIdentity.get(identity) ?? [];
    while (entries.length > 0 && getIdentity(entries.at(-1)!.object.item) !== identity) entries.pop();
    return entries.at(-1)?.object;
  }

  /** The object as it is stored now; `accept` makes it the known one. */
  read(member: ObjectMember, id: StoredObject["id"]): StoredObject | undefined {
    return this.sources[member].one(id);
  }

  /** After a write that was not rolled back. */
  accept(member: ObjectMember, written: StoredObject): void {
    add(this.index(member), written);
  }

  private index(member: ObjectMember): ObjectIndex {
    let index = this.indexes.get(member);
    if (index === undefined) {
      index = { byIdentity: new Map(), byId: new Map() };
      for (const object of this.sources[member].all().toReversed()) add(index, object);
      this.indexes.set(member, index);
    }
    return index;
  }
}

function add({ byIdentity, byId }: ObjectIndex, object: StoredObject): void {
  const identity = getIdentity(object.item);
  const entry = byId.get(object.id) ?? { rank: byId.size, object };
  const isListed = byId.has(object.id) && getIdentity(entry.object.item) === identity;
  entry.object = object;
  byId.set(object.id, entry);
  if (isListed) return;
  const entries = byIdentity.get(identity) ?? [];
  entries.splice(entries.findLastIndex(({ rank }) => rank < entry.rank) + 1, 0, entry);
  byIdentity.set(identity, entries);
}
