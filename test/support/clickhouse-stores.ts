/** The event store in a database of a test's ClickHouse, with a people store on a temporary folder. */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { ClickHouseLoader } from "../../src/events/clickhouse/loader.ts";
import { ClickHousePersonReplica } from "../../src/events/clickhouse/person-replica.ts";
import { ClickHousePropertyColumns } from "../../src/events/clickhouse/property-columns.ts";
import { clickhouseSql } from "../../src/events/clickhouse/sql-dialect.ts";
import { ClickHouseStore } from "../../src/events/clickhouse/store.ts";
import type { EventSql } from "../../src/events/sql-dialect.ts";
import { decodeEntries } from "../../src/journal/entry-reader.ts";
import { parseClickHouseUrl } from "../../src/lib/store-urls.ts";
import { ExternalEvents } from "../../src/persons/external-events.ts";
import { openPersons, type PersonsDb } from "../../src/persons/open.ts";
import { sqlitePersonSource } from "../../src/persons/replica-source.ts";
import type { TestClickHouse } from "./clickhouse.ts";
import type { TestStores } from "./event-store.ts";
import { temporaryFolder } from "./server.ts";

let databases = 0;

export class ClickHouseStores implements AsyncDisposable {
  /** Columns of single properties; none at first. */
  readonly columns: ClickHousePropertyColumns;

  private constructor(
    readonly server: TestClickHouse,
    readonly database: string,
    readonly folder: string,
    readonly people: PersonsDb,
    readonly store: ClickHouseStore,
    readonly loader: ClickHouseLoader,
    readonly mirror: ClickHousePersonReplica,
  ) {
    this.columns = new ClickHousePropertyColumns(store, 0);
  }

  /** @param again what was stored before. */
  static async open(
    server: TestClickHouse,
    again?: { folder: string; database: string },
  ): Promise<ClickHouseStores> {
    databases += again === undefined ? 1 : 0;
    const { folder, database } = again ?? { folder: temporaryFolder(), database: `test_${databases}` };
    if (again === undefined) await server.run(`CREATE DATABASE ${database}`);
    return ClickHouseStores.with(server, {
      folder,
      database,
      people: openPersons(join(folder, "people.sqlite")),
    });
  }

  /** The same events in ClickHouse as in another store, with the same persons. */
  static async beside(server: TestClickHouse, stores: TestStores): Promise<ClickHouseStores> {
    databases += 1;
    const database = `test_${databases}`;
    await server.run(`CREATE DATABASE ${database}`);
    const created = ClickHouseStores.with(server, {
      folder: temporaryFolder(),
      database,
      people: stores.people,
    });
    for (const { lane, last, bytes } of stores.written) {
      const { entries } = decodeEntries(bytes, 0);
      await created.loader.load(
        lane,
        last,
        entries.filter((entry) => entry.kind === "event"),
      );
    }
    await created.mirror.follow();
    return created;
  }

  private static with(
    server: TestClickHouse,
    { folder, database, people }: { folder: string; database: string; people: PersonsDb },
  ): ClickHouseStores {
    const address = parseClickHouseUrl(server.url(database));
    if (address === undefined) throw new Error("The test's address cannot be read.");
    const store = new ClickHouseStore(address, new ExternalEvents(people));
    return new ClickHouseStores(
      server,
      database,
      folder,
      people,
      store,
      new ClickHouseLoader(store),
      new ClickHousePersonReplica(store, sqlitePersonSource(people)),
    );
  }

  /** Asks as the engine does. */
  async ask<Result>(query: (store: EventSql) => Promise<Result>): Promise<Result> {
    return await query(
      clickhouseSql(
        this.store.connection,
        {},
        this.columns.location(() => undefined),
      ),
    );
  }

  async rows(sql: string): Promise<unknown[][]> {
    return await this.store.connection.rows(sql);
  }

  /** @param preservesPersons another user has them open. */
  async close(preservesPersons = false): Promise<void> {
    if (!preservesPersons) this.people.$client.close();
    await this.store.close();
  }

  /** Leaves it as a crash does, and opens it once more. */
  async reopen(): Promise<ClickHouseStores> {
    await this.close();
    return await ClickHouseStores.open(this.server, this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    await this.server.run(`DROP DATABASE ${this.database}`);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
