/**
 * Materialized property columns in ClickHouse (`MATERIALIZED`): new rows are filled on insert; for older rows the
 * values are computed on read until the server has materialized them. `materialized-columns.ts` selects the properties.
 * The column's comment is the property's name.
 */

import type { PropertyStore } from "../materialized-columns.ts";
import type { PropertyLocation } from "../sql-dialect.ts";
import { clickhouse } from "./sql-dialect.ts";
import type { ClickHouseStore } from "./store.ts";

const json = "if(properties_read = '', properties_text, properties_read)";

/** Deterministic by name. */
const columnName = (name: string) =>
  `property_${new Bun.CryptoHasher("sha256").update(name).digest("hex").slice(0, 32)}`;

export class ClickHousePropertyColumns implements PropertyStore {
  readonly isFilling = false;
  private columns: ReadonlyMap<string, string> = new Map();

  /** @param dropAfterMs maximum duration of a query that may use the column */
  constructor(
    private readonly store: ClickHouseStore,
    private readonly dropAfterMs: number,
  ) {}

  /** Loads the existing columns. */
  async open(): Promise<void> {
    const { connection, address } = this.store;
    const found = await connection.rows(
      `SELECT comment, name FROM system.columns
       WHERE database = '${address.database}' AND table = 'events' AND startsWith(name, 'property_')`,
    );
    this.columns = new Map(found.map(([name, column]) => [String(name), String(column)]));
  }

  get promoted(): readonly string[] {
    return [...this.columns.keys()];
  }

  /** The properties of events `e` in a query. @param onName called for every property that it reads */
  location(onName: (name: string) => void): PropertyLocation {
    return {
      json: "e.properties",
      findColumn: (name) => {
        onName(name);
        const column = this.columns.get(name);
        return column === undefined ? undefined : `e.${column}`;
      },
    };
  }

  async rows(): Promise<number> {
    const [row] = await this.store.connection.rows("SELECT count() FROM events");
    return Number(row![0]);
  }

  async add(names: readonly string[]): Promise<void> {
    const { connection } = this.store;
    for (const name of names) {
      const column = columnName(name);
      await connection.command(
        `ALTER TABLE events ADD COLUMN IF NOT EXISTS ${column} Nullable(String)
         MATERIALIZED ${clickhouse.memberText(json, name)} COMMENT ${clickhouse.text(name)} CODEC(ZSTD(1))`,
      );
      this.columns = new Map([...this.columns, [name, column]]);
      // The server does it in the background.
      await connection.command(`ALTER TABLE events MATERIALIZE COLUMN ${column}`, { mutations_sync: "0" });
    }
  }

  async retire(name: string): Promise<void> {
    const column = this.columns.get(name);
    if (column === undefined) return;
    this.columns = new Map([...this.columns].filter(([other]) => other !== name));
    const drop = async () => {
      if (this.columns.has(name)) return;
      await this.store.connection.command(`ALTER TABLE events DROP COLUMN IF EXISTS ${column}`);
    };
    // If that fails, the next start finds the column and retires it again.
    setTimeout(() => void drop().catch(() => undefined), this.dropAfterMs).unref();
  }

  async fillChunk(): Promise<string[]> {
    return [];
  }
}
