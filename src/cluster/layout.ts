/** Where a cluster stores persons: in a replica on every node, or as rows in PostgreSQL alone. */

import type { Sql } from "postgres";
import { OperatorActionError } from "../lib/errors.ts";
import type { Postgres, Transaction } from "./connection.ts";

export type PersonsLayout = "replica" | "rows";

/** A cluster stores persons in another way than the setting says. */
class PersonsLayoutError extends OperatorActionError {
  readonly code = "persons_layout";
  override readonly hint: string;
  constructor(found: PersonsLayout, wanted: PersonsLayout) {
    super(`The cluster stores persons as "${found}", not as "${wanted}".`);
    this.hint = `Remove --cluster-persons, or stop all nodes and run \`flagkeep cluster convert-persons --to ${wanted}\`.`;
  }
}

/** A conversion of persons between both layouts has not finished. */
export class ConversionPendingError extends OperatorActionError {
  readonly code = "persons_conversion";
  override readonly hint: string;
  constructor(to: PersonsLayout) {
    super(`The conversion of persons to "${to}" has not finished.`);
    this.hint = `Run \`flagkeep cluster convert-persons --to ${to}\` again; it continues where it was.`;
  }
}

/** A conversion of persons, recorded until it has finished. */
export interface Conversion {
  id: string;
  to: PersonsLayout;
  /** The state of what is copied: if it has changed since, the copy starts again. */
  source: string;
  /** See `copyToRows`. */
  position: { table: string; key: string[] } | null;
}

const conversionName = "persons conversion";

export async function readConversion(postgres: Postgres): Promise<Conversion | undefined> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT value FROM flagkeep.secret WHERE name = ${conversionName}`,
  );
  return row && JSON.parse(row.value);
}

/** @param conversion undefined: it has finished */
export async function recordConversion(
  t: Transaction | Sql,
  conversion: Conversion | undefined,
): Promise<void> {
  if (conversion === undefined) await t`DELETE FROM flagkeep.secret WHERE name = ${conversionName}`;
  else
    await t`INSERT INTO flagkeep.secret VALUES (${conversionName}, ${JSON.stringify(conversion)})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
}

/** @throws {ConversionPendingError} */
export async function assertNoConversion(postgres: Postgres): Promise<void> {
  const conversion = await readConversion(postgres);
  if (conversion !== undefined) throw new ConversionPendingError(conversion.to);
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
