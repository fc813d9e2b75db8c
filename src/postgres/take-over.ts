/**
 * Takes the stores of a data directory over into PostgreSQL, and back.
 *
 * What was taken over already is known in the file itself, so that a take-over that was broken off goes on where it was; and
 * what is changed meanwhile is noted by the same triggers as on a front.
 */

import type { Database } from "bun:sqlite";
import { type Lane, lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { CapturedTables, type SharedRow } from "./captured-tables.ts";
import { isKept, writeRows } from "./commits.ts";
import type { Postgres } from "./connection.ts";
import { markAsCopy } from "./copy-mark.ts";
import { deadAfterMs } from "./fronts.ts";
import type { CopiedStore } from "./store-copy.ts";

/** PostgreSQL holds the data of others, or a take-over that is not done. */
export class TakeOverRefused extends AppError {
  readonly code = "take_over_refused";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

/** The rows in PostgreSQL are not those of the file. */
class TakeOverDiffers extends AppError {
  readonly code = "take_over_differs";
  override readonly hint =
    "Nothing was switched over. Empty the schema `flagkeep` in PostgreSQL, and try again.";
}

/** Rows of one commit; a person may have half a megabyte. */
const rowsAtOnce = 500;
const [mark, commitMs, compareMs] = ["take-over", 60_000, 3_600_000];
/** When all of this became a data directory, which goes on loading into the same ClickHouse under the next numbers. */
const broughtBack = "brought back";

/** Begins to take a directory over, or goes on with it. @param id names it, the same for all of it. @throws {TakeOverRefused} */
export async function beginTakeOver(postgres: Postgres, id: string): Promise<void> {
  const begun = await takeOverUnderWay(postgres);
  if (begun === id) return;
  const [found] = await postgres.run(
    (sql) => sql`SELECT coalesce(sum(revision), 0)::int AS rows FROM flagkeep.store`,
  );
  if (begun !== undefined || found!.rows > 0)
    throw new TakeOverRefused(
      "The schema `flagkeep` in PostgreSQL holds the data of another Flagkeep.",
      "Name an empty database, or drop the schema.",
    );
  await postgres.run((sql) => sql`INSERT INTO flagkeep.secret VALUES (${mark}, ${id})`);
}

/** The take-over that was begun and is not done. */
export async function takeOverUnderWay(postgres: Postgres): Promise<string | undefined> {
  const [row] = await postgres.run((sql) => sql`SELECT value FROM flagkeep.secret WHERE name = ${mark}`);
  return row?.value;
}

/**
 * Sends all rows of a file that are not there yet, and compares.
 *
 * @param id of the take-over. @param onProgress told how many rows are left.
 * @throws {TakeOverDiffers} @throws {PostgresUnreachable}
 */
export async function sendStore(
  client: Database,
  { name, migrations }: CopiedStore,
  postgres: Postgres,
  { id, onProgress }: { id: string; onProgress: (left: number) => void },
): Promise<{ rows: number }> {
  const tables = new CapturedTables(client);
  client.run("CREATE TABLE IF NOT EXISTS copy_sent (id TEXT PRIMARY KEY)");
  if (client.query("SELECT 1 FROM copy_sent WHERE id = ?").get(id) === null) {
    client.run("DELETE FROM copy_sent");
    tables.markAll();
    client.run("INSERT INTO copy_sent VALUES (?)", [id]);
  }
  let revision = 0;
  let commitId: string | null = null;
  for (;;) {
    const changed = tables.changed(rowsAtOnce);
    const { rows } = changed;
    commitId = crypto.randomUUID();
    const commit = commitId;
    revision = await postgres.transaction(async (t) => {
      await t`INSERT INTO flagkeep.store (name, schema_version, revision) VALUES (${name}, ${migrations.length}, 0) ON CONFLICT DO NOTHING`;
      const [row] = await t`UPDATE flagkeep.store
        SET revision = revision + 1, folded = revision + 1, schema_version = ${migrations.length}
        WHERE name = ${name} RETURNING revision`;
      const next = Number(row!.revision);
      await writeRows(
        t,
        name,
        rows.filter(isKept).map((one: SharedRow) => ({ ...one, revision: next })),
      );
      await t`INSERT INTO flagkeep.commit (store, revision, id) VALUES (${name}, ${next}, ${commit})`;
      return next;
    }, commitMs);
    tables.forget(changed);
    if (rows.length === 0) break;
    const left = client.query("SELECT count(*) AS count FROM copy_changed").get() as { count: number };
    onProgress(left.count);
  }
  const count = await compare(tables, name, postgres);
  markAsCopy(client, revision, commitId);
  return { rows: count };
}

/** Says from where the lanes go on, and that the take-over is done: fronts may start. */
export async function endTakeOver(
  postgres: Postgres,
  { lastSeqs, secrets }: { lastSeqs: Record<Lane, number>; secrets: Record<string, string> },
): Promise<void> {
  await postgres.transaction(async (t) => {
    for (const lane of lanes)
      await t`UPDATE flagkeep.lane SET next_seq = ${lastSeqs[lane] + 1} WHERE name = ${lane}`;
    for (const [name, value] of Object.entries(secrets))
      await t`INSERT INTO flagkeep.secret VALUES (${name}, ${value}) ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    await t`DELETE FROM flagkeep.secret WHERE name = ${mark}`;
  });
}

/** A copy becomes a file of its own. */
export function endCopy(client: Database): void {
  new CapturedTables(client).drop();
}

/**
 * Says that a data directory is made of this: a front beside it would give the same numbers to other events.
 *
 * @throws {TakeOverRefused} a front was started meanwhile, which has changed something.
 */
export async function noteBroughtBack(postgres: Postgres, dataDir: string): Promise<void> {
  await postgres.run(
    (
      sql,
    ) => sql`INSERT INTO flagkeep.secret VALUES (${broughtBack}, ${`${dataDir}, ${new Date().toISOString()}`})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  );
  try {
    await requireAtRest(postgres);
  } catch (error) {
    await postgres.run((sql) => sql`DELETE FROM flagkeep.secret WHERE name = ${broughtBack}`);
    throw error;
  }
}

/** @throws {TakeOverRefused} a data directory was made of this, or a take-over is under way: no front may start. */
export async function requireFrontsMayStart(postgres: Postgres): Promise<void> {
  if ((await takeOverUnderWay(postgres)) !== undefined)
    throw new TakeOverRefused(
      "A data directory is being taken over into PostgreSQL.",
      "Wait until `flagkeep migrate-to-cluster` has finished.",
    );
  const [row] = await postgres.run(
    (sql) => sql`SELECT value FROM flagkeep.secret WHERE name = ${broughtBack}`,
  );
  if (row !== undefined)
    throw new TakeOverRefused(
      `What is in PostgreSQL became a data directory of its own (${row.value}): both would load into the same ClickHouse.`,
      `Go on with that directory; where it was never used: DELETE FROM flagkeep.secret WHERE name = '${broughtBack}'.`,
    );
}

/** @throws {TakeOverRefused} there is nothing, fronts run, or the journal holds what is not loaded. */
export async function requireAtRest(postgres: Postgres): Promise<void> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT (SELECT coalesce(sum(entries), 0) FROM flagkeep.journal)::float8 AS entries,
      (SELECT until > clock_timestamp() FROM flagkeep.lease)
        OR EXISTS (SELECT 1 FROM flagkeep.front WHERE seen_at > clock_timestamp() - ${deadAfterMs} * interval '1 millisecond') AS held,
      EXISTS (SELECT 1 FROM flagkeep.store WHERE name = 'metadata' AND revision > 0) AS whole`,
  );
  if (!row!.whole)
    throw new TakeOverRefused("There is nothing in PostgreSQL yet.", "Name the right database.");
  if (row!.held)
    throw new TakeOverRefused(
      "A front is running.",
      "Stop all fronts, and run the command again; one that was killed counts for ten seconds.",
    );
  if (row!.entries > 0)
    throw new TakeOverRefused(
      `The journal in PostgreSQL holds ${row!.entries} entries that are not loaded.`,
      "Start a front, wait until `flagkeep status` shows none waiting, stop it, and run the command again.",
    );
}

/** Compares all rows by their hashes. @returns how many there are. @throws {TakeOverDiffers} */
async function compare(tables: CapturedTables, name: string, postgres: Postgres): Promise<number> {
  const [there] = await postgres.run(
    (
      sql,
    ) => sql`SELECT count(*)::int AS rows, coalesce(sum(('x' || left(encode(sha256(convert_to(tbl || key || body, 'UTF8')), 'hex'), 15))::bit(60)::bigint::numeric), 0)::text AS sum
      FROM flagkeep.row WHERE store = ${name} AND body IS NOT NULL`,
    compareMs,
  );
  let rows = 0;
  let sum = 0n;
  for (const { tbl, key, body } of tables.all()) {
    if (!isKept({ tbl })) continue;
    rows += 1;
    const hash = new Bun.CryptoHasher("sha256").update(`${tbl}${key}${body}`).digest("hex");
    sum += BigInt(`0x${hash.slice(0, 15)}`);
  }
  if (rows !== there!.rows || String(sum) !== there!.sum)
    throw new TakeOverDiffers(
      `The store of ${name} has ${rows} rows here, and ${there!.rows} or others in PostgreSQL.`,
    );
  return rows;
}
