/** What the event store replicates of persons as rows in PostgreSQL. */

import { formatList, type Postgres } from "../../cluster/connection.ts";
import type { PersonChange } from "../changes.ts";
import {
  type DistinctIdKey,
  type DistinctIdRow,
  ownersAtOnce,
  type PersonKey,
  type PersonRow,
  personsAtOnce,
} from "../replica-rows.ts";
import type { PersonSource } from "../replica-source.ts";
import { firstHash, hashList, numberList } from "./hashes.ts";

/** Changes per batch. */
const changesAtOnce = 20_000;
/** How long nodes can learn of a change. */
const retainedFor = "5 minutes";
const pruneEveryMs = 60_000;

/** Of `flagkeep.person AS p`. */
const personColumns = `p.id::float8 AS id, p.project_id AS "projectId", p.uuid, p.created_at::float8 AS "createdMicros",
  p.main_distinct_id AS "mainDistinctId", p.properties`;
/** Of `flagkeep.distinct_id AS d` and `flagkeep.person AS p`. */
const ownerColumns = `d.project_id AS "projectId", d.distinct_id AS "distinctId", p.uuid AS "personUuid", d.joined`;

interface ChangeRow {
  changeId: number;
  projectId: number;
  personUuid: string;
  distinctId: string | null;
  isDeleted: boolean;
  isCachedOnly: boolean;
}

export class PostgresPersonSource implements PersonSource {
  private prunedAt = performance.now();

  constructor(private readonly postgres: Postgres) {}

  async range(): Promise<{ oldest: number; last: number }> {
    const [row] = await this.postgres.run(
      (sql) => sql<{ oldest: number; last: number }[]>`
        SELECT coalesce(min(change_id), 1)::float8 AS oldest, coalesce(max(change_id), 0)::float8 AS last
        FROM flagkeep.person_change`,
    );
    return row!;
  }

  async changesAfter(changeId: number): Promise<{ changes: PersonChange[]; last: number }> {
    const rows = await this.postgres.run(
      (sql) => sql<ChangeRow[]>`
        SELECT change_id::float8 AS "changeId", project_id AS "projectId", person_uuid AS "personUuid",
          distinct_id AS "distinctId", is_deleted AS "isDeleted", is_cached_only AS "isCachedOnly"
        FROM flagkeep.person_change WHERE change_id > ${changeId} ORDER BY change_id LIMIT ${changesAtOnce}`,
    );
    const changes = rows.filter(({ isCachedOnly }) => !isCachedOnly).map(toChange);
    return { changes, last: rows.at(-1)?.changeId ?? changeId };
  }

  /** Later than asked for: nodes read them as well. The last replicated one stays, because numbers have gaps. */
  async prune(changeId: number): Promise<void> {
    if (performance.now() - this.prunedAt < pruneEveryMs) return;
    this.prunedAt = performance.now();
    await this.postgres.run(
      (sql) => sql`DELETE FROM flagkeep.person_change
        WHERE change_id < ${changeId} AND at < clock_timestamp() - ${retainedFor}::interval`,
    );
  }

  async *persons(keys: readonly PersonKey[]): AsyncGenerator<PersonRow[]> {
    for (let start = 0; start < keys.length; start += personsAtOnce) {
      const some = keys.slice(start, start + personsAtOnce);
      yield await this.postgres.run(
        (sql) => sql<PersonRow[]>`
          SELECT ${sql.unsafe(personColumns)}
          FROM unnest(${numberList(some.map(({ projectId }) => projectId))}::text::int[],
            ${formatList(some.map(({ uuid }) => uuid))}::text::uuid[]) AS w(project_id, uuid)
          JOIN flagkeep.person p ON p.project_id = w.project_id AND p.uuid = w.uuid`,
      );
    }
  }

  async *distinctIds(keys: readonly DistinctIdKey[]): AsyncGenerator<DistinctIdRow[]> {
    for (let start = 0; start < keys.length; start += ownersAtOnce) {
      const some = keys.slice(start, start + ownersAtOnce);
      yield await this.postgres.run(
        (sql) => sql<DistinctIdRow[]>`
          SELECT ${sql.unsafe(ownerColumns)}
          FROM unnest(${numberList(some.map(({ projectId }) => projectId))}::text::int[],
            ${hashList(some.map(({ distinctId }) => distinctId))}::text::uuid[]) AS w(project_id, hash)
          JOIN flagkeep.distinct_id d ON d.project_id = w.project_id AND d.id_hash = w.hash
          JOIN flagkeep.person p ON p.id = d.person_id`,
      );
    }
  }

  async *allPersons(): AsyncGenerator<PersonRow[]> {
    for (let afterId = 0; ; ) {
      const page = await this.postgres.run(
        (sql) => sql<PersonRow[]>`
          SELECT ${sql.unsafe(personColumns)} FROM flagkeep.person p WHERE p.id > ${afterId}
          ORDER BY p.id LIMIT ${personsAtOnce}`,
      );
      if (page.length === 0) return;
      yield page;
      afterId = page.at(-1)!.id;
    }
  }

  async *allDistinctIds(): AsyncGenerator<DistinctIdRow[]> {
    let after = { projectId: -1, hash: firstHash };
    for (;;) {
      const page = await this.postgres.run(
        (sql) => sql<(DistinctIdRow & { hash: string })[]>`
          SELECT ${sql.unsafe(ownerColumns)}, d.id_hash AS hash
          FROM flagkeep.distinct_id d JOIN flagkeep.person p ON p.id = d.person_id
          WHERE (d.project_id, d.id_hash) > (${after.projectId}, ${after.hash}::uuid)
          ORDER BY d.project_id, d.id_hash LIMIT ${ownersAtOnce}`,
      );
      if (page.length === 0) return;
      yield page;
      const { projectId, hash } = page.at(-1)!;
      after = { projectId, hash };
    }
  }
}

function toChange({ changeId, projectId, personUuid, distinctId, isDeleted }: ChangeRow): PersonChange {
  const change = { changeId, projectId, personUuid };
  if (distinctId !== null) return { ...change, kind: "distinct_id", distinctId };
  return { ...change, kind: isDeleted ? "person_deleted" : "person" };
}
