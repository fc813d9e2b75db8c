/**
 * Columns of single properties in ClickHouse: `MATERIALIZED`, so that new rows get their values by themselves, and rows that
 * were there before have them worked out when they are read, until the server has written them down. Which properties get
 * one: `promotion.ts`. The column's comment is the property's name.
 */

import type { PropertyPlace } from "../dialect.ts";
import type { PropertyStore } from "../promotion.ts";
import { clickhouse } from "./dialect.ts";
import type { ClickHouseStore } from "./store.ts";

const json = "if(properties_read = '', properties_text, properties_read)";

/** The same for the same name. */
const columnName = (name: string) =>
  `property_${new Bun.CryptoHasher("sha256").update(name).digest("hex").slice(0, 32)}`;

export class ClickHousePropertyColumns implements PropertyStore {
  readonly isFilling = false;
  private columns: ReadonlyMap<string, string> = new Map();

  /** @param dropAfterMs a question that was written goes on for so long at most. */
  constructor(
    private readonly store: ClickHouseStore,
    private readonly dropAfterMs: number,
  ) {}

  /** Finds the columns that are there. */
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

  /** The properties of events `e` in a question. @param onName told of every property that it reads. */
  place(onName: (name: string) => void): PropertyPlace {
    return {
      json: "e.properties",
      columnOf: (name) => {
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
    // Where that fails the column is found at the next start, and retired once more.
    setTimeout(() => void drop().catch(() => undefined), this.dropAfterMs).unref();
  }

  async fillPiece(): Promise<string[]> {
    return [];
  }
}
