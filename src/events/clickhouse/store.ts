/** Opens the event store in ClickHouse: its tables are brought up to date, and it is the one that belongs to the data directory. */

import { type Lane, lanes } from "../../journal/segment.ts";
import { type ClickHouseAddress, shownAddress } from "../../lib/clickhouse-address.ts";
import { OperatorNeeded } from "../../lib/errors.ts";
import { DataFromNewerVersion } from "../../lib/sqlite/migrate.ts";
import type { OutsideEvents } from "../../people/outside-events.ts";
import { ClickHouseConnection, EventsUnreachable } from "./connection.ts";
import { migrateClickHouse } from "./schema.ts";

/** The database holds the events of another data directory, or has lost those of this one. */
class ForeignEvents extends OperatorNeeded {
  readonly code = "foreign_events";
  override readonly hint =
    "Name the right database with --events-url, or an empty one for a new data directory.";
}

/** ClickHouse has events that this data directory has not handed out yet: it would give their numbers to others. */
class EventsAhead extends OperatorNeeded {
  readonly code = "events_ahead";
  override readonly hint =
    "Restore the newest backup of the data directory, or bring ClickHouse back to the same time as well.";
  constructor(address: ClickHouseAddress, lane: Lane, has: number, known: number) {
    super(
      `The events in ${shownAddress(address)} reach to the ${lane} entry ${has}, but this data directory has loaded ` +
        `only ${known}: it is older than the events, as after a restore.`,
    );
  }
}

export interface ClickHouseStoreSettings {
  /** Another process loads events, and brings the tables up to date. */
  isReader?: boolean;
  /** Resolves when whoever may go on instead of this process knows what `outside` has noted. */
  settle?: () => Promise<void>;
}

export class ClickHouseStore {
  readonly connection: ClickHouseConnection;
  private opening: Promise<void> | undefined;

  constructor(
    readonly address: ClickHouseAddress,
    readonly outside: OutsideEvents,
    private readonly settings: ClickHouseStoreSettings = {},
  ) {
    this.connection = new ClickHouseConnection(address);
  }

  /**
   * Resolves when the store can be used; looks only once.
   *
   * @throws {EventsUnreachable}    it may be tried again.
   * @throws {OperatorNeeded} @throws {DataFromNewerVersion}
   */
  async open(): Promise<void> {
    this.opening ??= this.look();
    try {
      await this.opening;
    } catch (error) {
      this.opening = undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  private async look(): Promise<void> {
    try {
      if (this.settings.isReader) return await this.requireClaimed();
      await migrateClickHouse(this.connection, this.address);
      await this.claim();
      await this.requireNotAhead();
    } catch (error) {
      const isKnown =
        error instanceof OperatorNeeded ||
        error instanceof DataFromNewerVersion ||
        error instanceof EventsUnreachable;
      // Whatever the server says to that, such as of a wrong password, an operator mends there.
      throw isKnown ? error : new EventsUnreachable(this.address, error);
    }
  }

  /** @throws {ForeignEvents} @throws {EventsUnreachable} nobody has made the tables yet. */
  private async requireClaimed(): Promise<void> {
    const { connection, outside, address } = this;
    const known = outside.knownId();
    if (known === undefined) throw new EventsUnreachable(address, "its tables are being made");
    const found = await connection.rows("SELECT id FROM store FINAL");
    if (found.some(([id]) => String(id) !== known))
      throw new ForeignEvents(`${shownAddress(address)} holds the events of another data directory.`);
  }

  private async claim(): Promise<void> {
    const { connection, outside, address } = this;
    const { id, isClaimed } = outside.storeId();
    const found = (await connection.rows("SELECT id FROM store FINAL")).map(([each]) => String(each));
    if (found.some((each) => each !== id))
      throw new ForeignEvents(`${shownAddress(address)} holds the events of another data directory.`);
    if (isClaimed && found.length === 0)
      throw new ForeignEvents(`${shownAddress(address)} does not have the events of this data directory.`);
    if (found.length === 0) {
      // Another one that did not know the name would be refused for ever.
      await this.settings.settle?.();
      await connection.command(`INSERT INTO store (id) VALUES ('${id}')`);
    }
    outside.noteClaimed();
  }

  /** @throws {EventsAhead} */
  private async requireNotAhead(): Promise<void> {
    const { loaded, begun } = this.outside;
    for (const lane of lanes) {
      const known = begun?.lane === lane ? begun.last : loaded[lane];
      const [[last] = []] = await this.connection.rows(
        `SELECT maxOrNull(seq) FROM events WHERE historical = ${lane === "historical"} AND seq > ${known}`,
      );
      if (last !== null && last !== undefined) throw new EventsAhead(this.address, lane, Number(last), known);
    }
  }
}
