/** A server for imports in memory: stored events by UUID, and the persons that they make. */

import type { StoredEvent } from "../../src/events/duckdb/known-uuids.ts";
import type { ImportClient } from "../../src/import/import-client.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";

export class MemoryTarget implements ImportClient {
  readonly events = new Map<string, JsonObject>();
  /** Each distinct ID and the next one on the way to the person's root. */
  private readonly parents = new Map<string, string>();
  private readonly identified = new Set<string>();

  async send(requests: Uint8Array): Promise<void> {
    for (const request of Buffer.from(requests).toString().trimEnd().split("\n"))
      for (const event of JSON.parse(request).batch as JsonObject[]) this.store(event);
  }

  async knownUuids(uuids: string[]): Promise<Set<string>> {
    return new Set(uuids.filter((uuid) => this.events.has(uuid)));
  }

  async storedEvents(uuids: string[]): Promise<StoredEvent[]> {
    return uuids.flatMap((uuid) => {
      const event = this.events.get(uuid);
      return event === undefined
        ? []
        : [{ uuid, event: String(event.event), distinctId: String(event.distinct_id) }];
    });
  }

  async personsOf(distinctIds: string[]) {
    return new Map(
      distinctIds
        .filter((id) => this.parents.has(id))
        .map((id) => [id, { uuid: this.personOf(id), isIdentified: this.identified.has(this.personOf(id)) }]),
    );
  }

  limits = async () => ({ eventBytesMax: 1_000_000 });
  hasHistory = async () => this.events.size > 0;
  importedPersons = async () => [];
  deletePerson = async () => undefined;
  settled = async () => undefined;
  lastSeq = async () => this.events.size;
  waitUntilLoaded = async () => undefined;

  /** One of the distinct IDs of a person, the same for all of them. */
  personOf(distinctId: string): string {
    let id = distinctId;
    for (let next = this.parents.get(id); next !== undefined && next !== id; next = this.parents.get(id))
      id = next;
    return id;
  }

  private store(event: JsonObject): void {
    const uuid = String(event.uuid);
    if (this.events.has(uuid)) return;
    this.events.set(uuid, event);
    const id = String(event.distinct_id);
    if (!this.parents.has(id)) this.parents.set(id, id);
    const { $anon_distinct_id, alias } = event.properties as JsonObject;
    if (event.event === "$identify") {
      if ($anon_distinct_id !== undefined) this.join(id, String($anon_distinct_id));
      this.identified.add(this.personOf(id));
    } else if (event.event === "$create_alias" || event.event === "$merge_dangerously")
      if (alias !== undefined) this.join(id, String(alias));
  }

  private join(id: string, other: string): void {
    const into = this.personOf(id);
    const from = this.personOf(other);
    this.parents.set(other, this.parents.get(other) ?? other);
    this.parents.set(from, into);
    if (this.identified.has(from)) this.identified.add(into);
  }
}
