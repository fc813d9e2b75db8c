/** Running nodes; each sends a heartbeat every few seconds. */

import type { Postgres } from "./connection.ts";

export const heartbeatMs = 2_000;
/** A node without a heartbeat for this long is dead. */
export const nodeTimeoutMs = 10_000;
/** Retention of the rows of dead nodes. */
const pruneAfter = "7 days";

export interface NodeInfo {
  id: string;
  /** Displayed to users: host and port, or the configured name. */
  name: string;
  version: string;
}

/** Records that a node is alive. @returns all live nodes, including this one @throws {PostgresUnreachableError} */
export async function sendHeartbeat(
  postgres: Postgres,
  { id, name, version }: NodeInfo,
): Promise<NodeInfo[]> {
  const rows = await postgres.run(
    (sql) => sql`
      WITH seen AS (
        INSERT INTO flagkeep.front VALUES (${id}, ${name}, ${version}, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, seen_at = excluded.seen_at
      ), forgotten AS (
        DELETE FROM flagkeep.front WHERE seen_at < clock_timestamp() - ${pruneAfter}::interval
      )
      SELECT id, name, version FROM flagkeep.front
      WHERE id <> ${id} AND seen_at > clock_timestamp() - ${nodeTimeoutMs} * interval '1 millisecond' ORDER BY name`,
  );
  return [{ id, name, version }, ...(rows as unknown as NodeInfo[])];
}

/** Deletes the last blocks of pruned nodes, and keeps the last number. A node sends a heartbeat before it appends. */
export async function pruneStoppedNodes(postgres: Postgres): Promise<void> {
  await postgres.transaction(async (t) => {
    await t`
      WITH pruned AS (
        DELETE FROM flagkeep.front_block b WHERE NOT EXISTS (SELECT 1 FROM flagkeep.front f WHERE f.id = b.front)
        RETURNING lane, last_seq
      )
      UPDATE flagkeep.lane SET last_seq = greatest(last_seq, (SELECT max(p.last_seq) FROM pruned p WHERE p.lane = name))
      WHERE name IN (SELECT lane FROM pruned)`;
    // Of nodes of version 0.2.
    await t`DELETE FROM flagkeep.front_number n WHERE NOT EXISTS (SELECT 1 FROM flagkeep.front_block b WHERE b.front = n.front)`;
  });
}

/** Removes a node that has stopped. */
export async function markStopped(postgres: Postgres, id: string): Promise<void> {
  await postgres.run((sql) => sql`DELETE FROM flagkeep.front WHERE id = ${id}`);
}

/** A string shared by all nodes; the first caller's value wins. @throws {PostgresUnreachableError} */
export async function sharedSecret(postgres: Postgres, name: string, value: string): Promise<string> {
  return await postgres.transaction(async (t) => {
    await t`INSERT INTO flagkeep.secret VALUES (${name}, ${value}) ON CONFLICT DO NOTHING`;
    const [row] = await t`SELECT value FROM flagkeep.secret WHERE name = ${name}`;
    return row!.value;
  });
}
