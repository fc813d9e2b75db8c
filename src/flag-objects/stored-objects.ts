/** Objects of a project during an import: each kind is read once, and afterwards only what the import wrote. */

import type { Reading } from "../accounts/db.ts";
import type { JsonObject } from "../lib/json/value.ts";
import {
  getIdentity,
  type ObjectMember,
  objectSources,
  type StoredObject,
} from "../operations/flag-document.ts";

interface ObjectIndex {
  byIdentity: Map<string, StoredObject>;
  byId: Map<StoredObject["id"], StoredObject>;
}

export class StoredObjects {
  private readonly sources: ReturnType<typeof objectSources>;
  private readonly indexes = new Map<ObjectMember, ObjectIndex>();

  constructor(db: Reading, projectId: number) {
    this.sources = objectSources(db, projectId);
  }

  /** The object that an item stands for. */
  find(member: ObjectMember, item: JsonObject): StoredObject | undefined {
    return this.index(member).byIdentity.get(getIdentity(item));
  }

  findById(member: ObjectMember, id: StoredObject["id"]): StoredObject | undefined {
    return this.index(member).byId.get(id);
  }

  /** The object as it is stored now; `accept` makes it the known one. */
  read(member: ObjectMember, id: StoredObject["id"]): StoredObject | undefined {
    return this.sources[member].one(id);
  }

  /** After a write that was not rolled back. */
  accept(member: ObjectMember, written: StoredObject): void {
    const { byIdentity, byId } = this.index(member);
    const former = byId.get(written.id);
    // A renamed object is no longer found by its former name.
    if (former !== undefined && byIdentity.get(getIdentity(former.item)) === former)
      byIdentity.delete(getIdentity(former.item));
    byId.set(written.id, written);
    byIdentity.set(getIdentity(written.item), written);
  }

  private index(member: ObjectMember): ObjectIndex {
    let index = this.indexes.get(member);
    if (index === undefined) {
      index = { byIdentity: new Map(), byId: new Map() };
      for (const object of this.sources[member].all()) {
        const identity = getIdentity(object.item);
        if (!index.byIdentity.has(identity)) index.byIdentity.set(identity, object);
        index.byId.set(object.id, object);
      }
      this.indexes.set(member, index);
    }
    return index;
  }
}
