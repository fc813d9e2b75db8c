/** Replaces a person store whose file cannot be opened, so that the server can serve requests that need no persons. */

import { Database } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { PersonsDb } from "./open.ts";
import * as schema from "./schema.ts";

/** Every statement fails with this error; SQLite's code makes it handled as corruption found by a read. */
class UnreadableStoreError extends Error {
  readonly code = "SQLITE_CORRUPT";
}

/** Statements can be prepared, which happens in advance; each fails when it runs. */
class UnreadableDatabase extends Database {
  private readonly fail = (): never => {
    throw new UnreadableStoreError("people.sqlite cannot be opened.");
  };

  private readonly statement = new Proxy({}, { get: () => this.fail }) as ReturnType<Database["query"]>;

  override query = (() => this.statement) as unknown as Database["query"];
  override prepare = (() => this.statement) as unknown as Database["prepare"];
  override run = (() => this.fail()) as unknown as Database["run"];
  override transaction = (() => this.fail) as unknown as Database["transaction"];
}

/** A person store whose statements all throw as if its file were corrupt. Nothing is written. */
export function unreadablePersons(): PersonsDb {
  const client = new UnreadableDatabase(":memory:");
  return drizzle({ client, schema }) as unknown as PersonsDb;
}
