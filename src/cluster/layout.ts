/** Where a cluster stores persons: in a replica on every node, or as rows in PostgreSQL alone. */

import { OperatorActionError } from "../lib/errors.ts";
import type { Postgres } from "./connection.ts";

export type PersonsLayout = "replica" | "rows";

/** A cluster stores persons in another way than the setting says. */
class PersonsLayoutError extends OperatorActionError {
  readonly code = "persons_layout";
  override readonly hint =
    "Remove --cluster-persons: it is for new clusters. `migrate-from-cluster` and `migrate-to-cluster` change an existing one.";
  constructor(found: PersonsLayout, wanted: PersonsLayout) {
    super(`The cluster stores persons as "${found}", not as "${wanted}".`);
  }
}

/** @throws {PostgresUnreachableError} */
export async function readPersonsLayout(postgres: Postgres): Promise<PersonsLayout> {
  const [row] = await postgres.run((sql) => sql`SELECT persons FROM flagkeep.layout`);
  return row!.persons;
}

/**
 * Chooses the layout of a new cluster, which has no store of persons yet.
 * @param wanted undefined: any @throws {PersonsLayoutError} @throws {PostgresUnreachableError}
 */
export async function choosePersonsLayout(
  postgres: Postgres,
  wanted: PersonsLayout | undefined,
): Promise<PersonsLayout> {
  if (wanted === undefined) return await readPersonsLayout(postgres);
  const found = await postgres.transaction(async (t) => {
    const [row] = await t`SELECT persons FROM flagkeep.layout FOR UPDATE`;
    const [store] = await t`SELECT 1 FROM flagkeep.store WHERE name = 'people'`;
    if (store !== undefined) return row!.persons as PersonsLayout;
    await t`UPDATE flagkeep.layout SET persons = ${wanted}`;
    return wanted;
  });
  if (found !== wanted) throw new PersonsLayoutError(found, wanted);
  return found;
}
