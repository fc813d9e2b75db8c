/**
 * Intermediate results that several queries read within a minute, as tables of a database in memory. DuckDB may move
 * them to its temporary folder. A table is only dropped when no query reads it.
 */

import type { DuckDBConnection } from "@duckdb/node-api";

/** The name of the database in memory; see `attachCachedTables`. */
const database = "cached";

export const cachedTableRules = {
  tablesMax: 4,
  /** Larger results are not cached. */
  bytesMax: 64 * 1024 * 1024,
  ageMaxMs: 60_000,
};

interface CachedTable {
  name: string;
  /** Resolves when it can be read. */
  ready: Promise<void>;
  /** Queries that read it. */
  readers: number;
  createdAt: number;
  /** It is not used by new queries, and dropped with its last reader. */
  isStale: boolean;
}

/** Called once, before access to other databases is disabled. */
export async function attachCachedTables(connection: DuckDBConnection): Promise<void> {
  await connection.run(`ATTACH ':memory:' AS ${database}`);
}

export class CachedTables {
  private readonly tables = new Map<string, CachedTable>();
  private count = 0;

  constructor(
    private readonly rules = cachedTableRules,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Tables for one query, which calls `end` when it no longer reads them.
   * @param stopSignal creates a signal that ends the wait for a table that another query makes: the interrupt of a connection does not
   */
  reader(
    connection: DuckDBConnection,
    stopSignal: () => AbortSignal | undefined = () => undefined,
  ): {
    table: (key: string, sql: string) => Promise<string>;
    end: () => Promise<void>;
  } {
    const read: CachedTable[] = [];
    return {
      table: async (key, sql) => {
        for (;;) {
          const known = this.usable(key);
          const stop = known === undefined ? undefined : stopSignal();
          const table = known ?? this.start(connection, key, sql);
          table.readers += 1;
          read.push(table);
          try {
            await (known === undefined ? table.ready : untilStopped(table.ready, stop));
            return table.name;
          } catch (error) {
            stop?.throwIfAborted();
            // Another query's error, such as its cancellation, is not this one's.
            if (known === undefined) throw error;
          }
        }
      },
      end: async () => {
        for (const table of read.splice(0)) table.readers -= 1;
        await this.dropUnused(connection);
      },
    };
  }

  /** Call it when data was deleted: row numbers may change. */
  clear(): void {
    for (const table of this.tables.values()) table.isStale = true;
  }

  private usable(key: string): CachedTable | undefined {
    const table = this.tables.get(key);
    const isUsable =
      table !== undefined && !table.isStale && this.now() - table.createdAt < this.rules.ageMaxMs;
    return isUsable ? table : undefined;
  }

  private start(connection: DuckDBConnection, key: string, sql: string): CachedTable {
    const replaced = this.tables.get(key);
    if (replaced !== undefined) {
      replaced.isStale = true;
      this.tables.delete(key);
      this.tables.set(`${key} ${replaced.name}`, replaced);
    }
    const name = `${database}.t${++this.count}`;
    const table: CachedTable = {
      name,
      readers: 0,
      createdAt: this.now(),
      isStale: false,
      ready: this.make(connection, name, sql).then((isSmall) => {
        if (!isSmall) table.isStale = true;
      }),
    };
    table.ready.catch(() => {
      table.isStale = true;
    });
    this.tables.set(key, table);
    return table;
  }

  /** @returns whether the table is small enough to be cached */
  private async make(connection: DuckDBConnection, name: string, sql: string): Promise<boolean> {
    await connection.run(`CREATE TABLE ${name} AS ${sql}`);
    const rows = await connection.runAndReadAll(`SELECT (count(*) * ${bytesPerRow})::DOUBLE FROM ${name}`);
    return (rows.getRows()[0]![0] as number) <= this.rules.bytesMax;
  }

  private async dropUnused(connection: DuckDBConnection): Promise<void> {
    const all = [...this.tables];
    const fresh = all.filter(([, { isStale }]) => !isStale);
    for (const [, table] of fresh.slice(0, Math.max(0, fresh.length - this.rules.tablesMax)))
      table.isStale = true;
    for (const [, table] of fresh) {
      if (this.now() - table.createdAt >= this.rules.ageMaxMs) table.isStale = true;
    }
    for (const [key, table] of all) {
      if (!table.isStale || table.readers > 0) continue;
      this.tables.delete(key);
      try {
        await connection.run(`DROP TABLE IF EXISTS ${table.name}`);
      } catch {
        // A cancelled query cannot; the next one does.
        this.tables.set(`${key} ${table.name}`, table);
      }
    }
  }
}

/** Rows consist of a few numbers. */
const bytesPerRow = 96;

async function untilStopped(work: Promise<void>, stop: AbortSignal | undefined): Promise<void> {
  if (stop === undefined) return await work;
  const stopped = Promise.withResolvers<never>();
  const onStop = () => stopped.reject(stop.reason);
  if (stop.aborted) onStop();
  stop.addEventListener("abort", onStop);
  try {
    await Promise.race([work, stopped.promise]);
  } finally {
    stop.removeEventListener("abort", onStop);
  }
}
