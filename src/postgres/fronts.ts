/** The fronts that live: each says so every few seconds. */

import type { Postgres } from "./connection.ts";

export const seenEveryMs = 2_000;
/** A front that was not seen for so long is dead. */
export const deadAfterMs = 10_000;
/** Rows of dead fronts are kept for so long. */
const forgetAfter = "7 days";

export interface Front {
  id: string;
  /** As people know it: its host and port, or what it was given. */
  name: string;
  version: string;
}

/** Says that a front lives. @returns all that do, this one among them. @throws {PostgresUnreachable} */
export async function noteFront(postgres: Postgres, { id, name, version }: Front): Promise<Front[]> {
  const rows = await postgres.run(
    (sql) => sql`
      WITH seen AS (
        INSERT INTO flagkeep.front VALUES (${id}, ${name}, ${version}, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, seen_at = excluded.seen_at
      ), forgotten AS (
        DELETE FROM flagkeep.front WHERE seen_at < clock_timestamp() - ${forgetAfter}::interval
      )
      SELECT id, name, version FROM flagkeep.front
      WHERE id <> ${id} AND seen_at > clock_timestamp() - ${deadAfterMs} * interval '1 millisecond' ORDER BY name`,
  );
  return [{ id, name, version }, ...(rows as unknown as Front[])];
}

/** Forgets the last blocks of fronts that are no more; a front is known here before it appends. */
export async function forgetDeadFronts(postgres: Postgres): Promise<void> {
  await postgres.transaction(async (t) => {
    await t`DELETE FROM flagkeep.front_block b WHERE NOT EXISTS (SELECT 1 FROM flagkeep.front f WHERE f.id = b.front)`;
    await t`DELETE FROM flagkeep.front_number n WHERE NOT EXISTS (SELECT 1 FROM flagkeep.front_block b WHERE b.front = n.front)`;
  });
}

/** Says that a front has ended. */
export async function noteEnd(postgres: Postgres, id: string): Promise<void> {
  await postgres.run((sql) => sql`DELETE FROM flagkeep.front WHERE id = ${id}`);
}

/** A text that all fronts share; the first one that comes gives it. @throws {PostgresUnreachable} */
export async function sharedSecret(postgres: Postgres, name: string, value: string): Promise<string> {
  return await postgres.transaction(async (t) => {
    await t`INSERT INTO flagkeep.secret VALUES (${name}, ${value}) ON CONFLICT DO NOTHING`;
    const [row] = await t`SELECT value FROM flagkeep.secret WHERE name = ${name}`;
    return row!.value;
  });
}
