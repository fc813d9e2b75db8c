/** A data directory becomes that of a front, whose data are in PostgreSQL, and a new one is made from there. */

import { existsSync, readdirSync } from "node:fs";
import { metadataStore } from "../accounts/db.ts";
import { openMetadata } from "../accounts/metadata.ts";
import { postgresAddress } from "../config/secrets.ts";
import type { Config } from "../config/settings.ts";
import { newPayloadKey, openPayloadKey, writePayloadKey } from "../flags/store/payload-key.ts";
import type { PostgresAddress } from "../lib/postgres-address.ts";
import { openSqlite } from "../lib/sqlite/open.ts";
import { takeStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { openPeople, peopleStore } from "../people/open.ts";
import { areEventsOutside } from "../people/outside-events.ts";
import { laneCursors } from "../people/reader.ts";
import { Postgres } from "../postgres/connection.ts";
import { isCopy } from "../postgres/copy-mark.ts";
import { sharedSecret } from "../postgres/fronts.ts";
import { migratePostgres } from "../postgres/schema.ts";
import { StoreCopy } from "../postgres/store-copy.ts";
import {
  beginTakeOver,
  endCopy,
  endTakeOver,
  noteBroughtBack,
  requireAtRest,
  sendStore,
  TakeOverRefused,
} from "../postgres/take-over.ts";
import { takeDirectory } from "./data-directory.ts";
import { payloadKeyName, requireEventsUrl } from "./own-data.ts";

const connections = 2;

/** Rows of both stores. */
export interface TakenOver {
  metadata: number;
  people: number;
}

/**
 * Sends everything but the events of a data directory to PostgreSQL, and makes it that of a front. The events are in
 * ClickHouse, and all of them are loaded.
 *
 * @param onProgress told how many rows of a store are left.
 * @throws {TakeOverRefused} @throws {DirectoryInUse} @throws {PostgresUnreachable} it may be run again.
 */
export async function takeOverDirectory(
  config: Config,
  onProgress: (left: number) => void,
): Promise<TakenOver> {
  const place = paths(config["data-dir"]);
  const lock = await takeStoresLock(place, config["data-dir"]);
  const postgres = connect(config);
  try {
    if (isCopy(place.metadata))
      throw new TakeOverRefused(
        "The data directory is that of a front already.",
        "Start it with --postgres-url and --events-url.",
      );
    // Both at this version's schema.
    const opened = openMetadata(place.metadata);
    const payloadKey = openPayloadKey(place.payloadKey, opened);
    opened.close();
    const people = openPeople(place.people);
    const metadata = openSqlite(place.metadata, {});
    try {
      if (!areEventsOutside(people))
        throw new TakeOverRefused("The events are not in ClickHouse.", "Run it again.");
      const id = people.$client.query<{ id: string }, []>("SELECT id FROM outside_store").get()!.id;
      await migratePostgres(postgres);
      await beginTakeOver(postgres, id);
      // The smaller one is the last to be called a copy: it is what the directory is known by.
      const persons = await sendStore(people.$client, peopleStore, postgres, { id, onProgress });
      const others = await sendStore(metadata.$client, metadataStore, postgres, { id, onProgress });
      const key = payloadKey.toString("base64");
      await endTakeOver(postgres, { lastSeqs: laneCursors(people), secrets: { [payloadKeyName]: key } });
      return { metadata: others.rows, people: persons.rows };
    } finally {
      people.$client.close();
      metadata.$client.close();
    }
  } finally {
    await postgres.close();
    lock.release();
  }
}

/**
 * Makes a data directory of its own from what several fronts share, which are stopped; the events stay in ClickHouse.
 *
 * @throws {TakeOverRefused} @throws {PostgresUnreachable}
 */
export async function bringBack(config: Config): Promise<void> {
  const postgres = connect(config);
  try {
    await migratePostgres(postgres);
    await requireAtRest(postgres);
    await bringInto(config["data-dir"], postgres);
  } finally {
    await postgres.close();
  }
}

async function bringInto(dataDir: string, postgres: Postgres): Promise<void> {
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0)
    throw new TakeOverRefused(`${dataDir} is not empty.`, "Name a folder that is empty or not there yet.");
  const lock = takeDirectory(dataDir);
  const place = paths(dataDir);
  try {
    await StoreCopy.prepare(place.people, peopleStore, postgres);
    await StoreCopy.prepare(place.metadata, metadataStore, postgres);
    writePayloadKey(
      place.payloadKey,
      Buffer.from(await sharedSecret(postgres, payloadKeyName, newPayloadKey()), "base64"),
    );
    await noteBroughtBack(postgres, dataDir);
    for (const path of [place.people, place.metadata]) {
      const { $client } = openSqlite(path, {});
      endCopy($client);
      $client.close();
    }
  } finally {
    lock.release();
  }
}

function connect(config: Config): Postgres {
  requireEventsUrl(config);
  return new Postgres(requireTarget(config), { connections, name: "migration" });
}

/** @throws {TakeOverRefused} PostgreSQL or ClickHouse is not named. */
export function requireTarget(config: Config): PostgresAddress {
  const address = postgresAddress(config, process.env);
  if (address !== null && config["events-url"] !== null) return address;
  throw new TakeOverRefused(
    "It is not said where PostgreSQL and ClickHouse are.",
    "Give --postgres-url and --events-url.",
  );
}
