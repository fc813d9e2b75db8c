/** Distinct IDs that had anonymous events (contract: ingestion 13.3, item 2). */

import type { Database } from "bun:sqlite";
import type { PlannedEvent } from "./batch.ts";

/** The IDs that a batch adds or needs to check. */
export class AnonymousIds {
  private readonly known = new Map<number, Set<bigint>>();
  private readonly added = new Map<number, Set<bigint>>();

  constructor(private readonly client: Database) {}

  /** Reads the state of IDs that are to be merged. */
  load(planned: readonly PlannedEvent[]): void {
    const wanted = new Map<number, Set<bigint>>();
    for (const { event, operations } of planned) {
      if (operations.merge === undefined) continue;
      const hashes = getSet(wanted, event.projectId);
      for (const id of [operations.distinctId, operations.merge.otherId]) hashes.add(anonymousIdHash(id));
    }
    const query = this.client.query<[string], [number, string]>(`
      SELECT CAST(p.id_hash AS TEXT) FROM json_each(?2) AS wanted
      CROSS JOIN personless_id AS p ON p.project_id = ?1 AND p.id_hash = wanted.value`);
    for (const [projectId, hashes] of wanted) {
      const known = getSet(this.known, projectId);
      for (const [hash] of query.values(projectId, toJson(hashes)) as [string][]) known.add(BigInt(hash));
    }
  }

  add(projectId: number, distinctId: string): void {
    getSet(this.added, projectId).add(anonymousIdHash(distinctId));
  }

  has(projectId: number, distinctId: string): boolean {
    const hash = anonymousIdHash(distinctId);
    return [this.known, this.added].some((ids) => ids.get(projectId)?.has(hash) === true);
  }

  /** Writes added IDs, in the batch's transaction. */
  write(): void {
    const insert = this.client.query(
      "INSERT OR IGNORE INTO personless_id (project_id, id_hash) SELECT ?1, value FROM json_each(?2)",
    );
    for (const [projectId, hashes] of this.added) insert.run(projectId, toJson(hashes));
  }

  /** Called when the batch is stored. */
  settle(): void {
    this.known.clear();
    this.added.clear();
  }
}

/** Deletes IDs, in a transaction. */
export function pruneAnonymousIds(client: Database, projectId: number, distinctIds: readonly string[]): void {
  client
    .query("DELETE FROM personless_id WHERE project_id = ?1 AND id_hash IN (SELECT value FROM json_each(?2))")
    .run(projectId, toJson(new Set(distinctIds.map(anonymousIdHash))));
}

/** Identifies a distinct ID among those that had anonymous events. */
export const anonymousIdHash = (distinctId: string): bigint =>
  BigInt.asIntN(64, Bun.hash.xxHash64(distinctId));

const toJson = (hashes: ReadonlySet<bigint>): string => `[${[...hashes].join(",")}]`;

function getSet(sets: Map<number, Set<bigint>>, projectId: number): Set<bigint> {
  const known = sets.get(projectId);
  if (known !== undefined) return known;
  const created = new Set<bigint>();
  sets.set(projectId, created);
  return created;
}
