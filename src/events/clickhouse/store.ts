/** Opens the event store in ClickHouse: migrates its tables and verifies that it belongs to this data directory. */

import { type Lane, lanes } from "../../journal/segment.ts";
import { OperatorActionError } from "../../lib/errors.ts";
import { NewerDataVersionError } from "../../lib/sqlite.ts";
import { type ClickHouseAddress, redactUrl } from "../../lib/store-urls.ts";
import type { ExternalEvents } from "../../persons/external-events.ts";
import { ClickHouseConnection, ClickHouseUnreachableError } from "./connection.ts";
import { migrateClickHouse } from "./schema.ts";

/** The database contains the events of another data directory, or has lost those of this one. */
class ForeignEventsError extends OperatorActionError {
  readonly code = "foreign_events";
  override readonly hint =
    "Set --events-url to the right database, or to an empty one for a new data directory.";
}

/** ClickHouse has events with sequence numbers that this data directory has not assigned yet and would assign again. */
class EventsAheadError extends OperatorActionError {
  readonly code = "events_ahead";
  override readonly hint =
    "Restore the newest backup of the data directory, or restore ClickHouse to the same time.";
  constructor(address: ClickHouseAddress, lane: Lane, has: number, known: number) {
    super(
      `The events in ${redactUrl(address)} end at ${lane} entry ${has}, but this data directory has loaded ` +
        `only ${known}: it is older than the events, for example after a restore.`,
    );
  }
}

export interface ClickHouseStoreOptions {
  /** Another process loads events and migrates the tables. */
  isReader?: boolean;
  /** Resolves when a successor process knows the state recorded in `outside`. */
  settle?: () => Promise<void>;
  /** If several engines load: per lane, the last number that one of them may have stored. */
  loaded?: () => Promise<Record<Lane, number>>;
}

export class ClickHouseStore {
  readonly connection: ClickHouseConnection;
  private opening: Promise<void> | undefined;

  constructor(
    readonly address: ClickHouseAddress,
    readonly outside: ExternalEvents,
    private readonly options: ClickHouseStoreOptions = {},
  ) {
    this.connection = new ClickHouseConnection(address);
  }

  /**
   * Resolves when the store is usable; tries only once.
   * @throws {ClickHouseUnreachableError} retry later
   * @throws {OperatorActionError} @throws {NewerDataVersionError}
   */
  async open(): Promise<void> {
    this.opening ??= this.check();
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

  private async check(): Promise<void> {
    await this.withRetryableErrors(async () => {
      if (this.options.isReader) return await this.assertClaimed();
      await migrateClickHouse(this.connection, this.address);
      await this.claim();
      await this.compareLoaded();
    });
  }

  /** Call it at each takeover of loading. @throws {EventsAheadError} @throws {ClickHouseUnreachableError} */
  async assertNotAhead(): Promise<void> {
    await this.withRetryableErrors(() => this.compareLoaded());
  }

  private async withRetryableErrors(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const isKnown =
        error instanceof OperatorActionError ||
        error instanceof NewerDataVersionError ||
        error instanceof ClickHouseUnreachableError;
      // An operator has to fix other errors, such as a wrong password, on the server.
      throw isKnown ? error : new ClickHouseUnreachableError(this.address, error);
    }
  }

  /** @throws {ForeignEventsError} @throws {ClickHouseUnreachableError} the tables do not exist yet */
  private async assertClaimed(): Promise<void> {
    const { connection, outside, address } = this;
    const known = outside.knownId();
    if (known === undefined) throw new ClickHouseUnreachableError(address, "its tables are being created");
    const found = await connection.rows("SELECT id FROM store FINAL");
    if (found.some(([id]) => String(id) !== known))
      throw new ForeignEventsError(`${redactUrl(address)} contains the events of another data directory.`);
  }

  private async claim(): Promise<void> {
    const { connection, outside, address } = this;
    const { id, isClaimed } = outside.storeId();
    const found = (await connection.rows("SELECT id FROM store FINAL")).map(([each]) => String(each));
    if (found.some((each) => each !== id))
      throw new ForeignEventsError(`${redactUrl(address)} contains the events of another data directory.`);
    if (isClaimed && found.length === 0)
      throw new ForeignEventsError(`${redactUrl(address)} does not have the events of this data directory.`);
    if (found.length === 0) {
      // A successor that does not know the ID would be rejected permanently.
      await this.options.settle?.();
      await connection.command(`INSERT INTO store (id) VALUES ('${id}')`);
    }
    outside.recordClaimed();
  }

  /** @throws {EventsAheadError} */
  private async compareLoaded(): Promise<void> {
    const { loaded, started } = this.outside;
    for (const lane of lanes) {
      const known = started?.lane === lane ? started.last : loaded[lane];
      const [[last] = []] = await this.connection.rows(
        `SELECT maxOrNull(seq) FROM events WHERE historical = ${lane === "historical"} AND seq > ${known}`,
      );
      if (last === null || last === undefined) continue;
      // Read afterwards: other engines record how far they load before they insert.
      const end = (await this.options.loaded?.())?.[lane] ?? known;
      if (Number(last) > end) throw new EventsAheadError(this.address, lane, Number(last), end);
    }
  }
}
