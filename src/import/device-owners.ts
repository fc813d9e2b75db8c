/**
 * Device ownership: the first user of a device in reading order is linked with it, every other one stays a separate
 * person.
 *
 * A merge is irreversible, so ownership is remembered across files, runs and imports: one SQLite file per project in
 * the state folder, with a row of two hashes per device. Source: contract, import 1.1 I1 to I5, I9.
 */

import { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Pair } from "./map/mapped.ts";

/** Information about a distinct ID in the project's persons store. */
export interface LivePerson {
  uuid: string;
  isIdentified: boolean;
}
export type LivePersons = ReadonlyMap<string, LivePerson>;

const busyTimeoutMs = 10_000;
/** Hashes are in random order: without a cache each row reads and writes a page of its own. */
const cacheKiB = 32 * 1_024;
/** Pages of the write-ahead log before they are copied to the database: several batches change the same ones. */
const pagesPerCheckpoint = 16_000;
const schema = `
  CREATE TABLE IF NOT EXISTS device_owner (
    -- SHA-256 of the id of a device, or of a user seen with one; the first 16 bytes.
    id BLOB PRIMARY KEY,
    -- The same of the user whose it is, for a user itself; null where a person that the import did not link has it.
    owner BLOB,
    -- The import that has seen a second user on it.
    shared_in TEXT
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX IF NOT EXISTS shared_devices ON device_owner (shared_in) WHERE shared_in IS NOT NULL;`;

interface Row {
  owner: Uint8Array | null;
  shared_in: string | null;
}

export class DeviceOwners implements Disposable {
  private readonly own: Database;
  /** Read-only base of a dry run. */
  private readonly base: Database | undefined;

  /** @param importId of this import over all its runs. */
  constructor(
    stateFolder: string,
    projectId: number,
    private readonly importId: string,
    isDryRun: boolean,
  ) {
    const folder = join(stateFolder, "identities");
    const path = join(folder, `${projectId}.sqlite`);
    if (isDryRun) {
      // SQLite deletes an unnamed database with its connection.
      this.own = new Database("", { create: true });
      this.base = existsSync(path) ? new Database(path, { readonly: true }) : undefined;
      this.base?.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    } else {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.own = new Database(path, { create: true });
      this.own.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      this.own.run("PRAGMA journal_mode = WAL");
      this.own.run("PRAGMA synchronous = NORMAL");
      this.own.run(`PRAGMA wal_autocheckpoint = ${pagesPerCheckpoint}`);
    }
    this.own.run(`PRAGMA cache_size = -${cacheKiB}`);
    this.own.run(schema);
  }

  /** The IDs of these pairs whose persons must be looked up. */
  findUnknown(pairs: readonly Pair[]): string[] {
    const ids = new Set<string>();
    for (const [device, user] of pairs) {
      const row = this.getRow(getHash(device));
      if (row?.owner) continue;
      ids.add(device).add(user);
    }
    return [...ids];
  }

  /**
   * Decides pairs in reading order and records the owner of each device.
   *
   * @param live persons of the IDs of `unknownOf`.
   * @returns for each pair whether it may be linked.
   */
  decide(pairs: readonly Pair[], live: LivePersons): boolean[] {
    // Another import of the project may be running: immediate, so that what is read stays true until it is written.
    return this.own.transaction(() => pairs.map((pair) => this.decideOne(pair, live))).immediate();
  }

  /** Records IDs as those of users: none of them is a device of another user from now on. */
  addUsers(users: readonly string[]): void {
    this.own
      .transaction(() => {
        for (const user of users) {
          const hash = getHash(user);
          if (this.getRow(hash) === undefined) this.write(hash, hash, null);
        }
      })
      .immediate();
  }

  /** Devices with more than one user, in all runs of this import. */
  get sharedCount(): number {
    return this.own
      .query<{ n: number }, [string]>("SELECT count(*) AS n FROM device_owner WHERE shared_in = ?")
      .get(this.importId)!.n;
  }

  [Symbol.dispose](): void {
    this.own.close();
    this.base?.close();
  }

  private decideOne([device, user]: Pair, live: LivePersons): boolean {
    const deviceHash = getHash(device);
    const userHash = getHash(user);
    const row = this.getRow(deviceHash);
    if (row?.owner) {
      if (isSame(row.owner, userHash)) return true;
      this.recordShared(deviceHash, row);
      return false;
    }
    const person = live.get(device);
    const isOthers = person?.isIdentified === true && person.uuid !== live.get(user)?.uuid;
    if (isOthers) {
      this.recordShared(deviceHash, row);
      return false;
    }
    this.write(deviceHash, userHash, row?.shared_in ?? null);
    // A user's ID is not a device of another user.
    if (this.getRow(userHash) === undefined) this.write(userHash, userHash, null);
    return true;
  }

  private recordShared(device: Uint8Array, row: Row | undefined): void {
    if (row?.shared_in !== this.importId) this.write(device, row?.owner ?? null, this.importId);
  }

  private getRow(id: Uint8Array): Row | undefined {
    const find = "SELECT owner, shared_in FROM device_owner WHERE id = ?";
    return (
      this.own.query<Row, [Uint8Array]>(find).get(id) ??
      this.base?.query<Row, [Uint8Array]>(find).get(id) ??
      undefined
    );
  }

  private write(id: Uint8Array, owner: Uint8Array | null, sharedIn: string | null): void {
    this.own.query("INSERT OR REPLACE INTO device_owner VALUES (?, ?, ?)").run(id, owner, sharedIn);
  }
}

function getHash(id: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(id).digest().subarray(0, 16);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
