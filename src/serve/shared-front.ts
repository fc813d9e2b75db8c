/**
 * One of several fronts: what it shares with the others is in PostgreSQL, and its data directory holds copies.
 *
 * The engine has a connection of its own, for the store of persons; this is the side of the server.
 */

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { metadataStore } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { postgresAddress } from "../config/secrets.ts";
import type { Config } from "../config/settings.ts";
import { newPayloadKey, readPayloadKey, writePayloadKey } from "../flags/store/payload-key.ts";
import type { SharedState } from "../http/edge-deps.ts";
import { Chores } from "../lib/chores.ts";
import { type PostgresAddress, shownPostgres } from "../lib/postgres-address.ts";
import { takeEngineLock } from "../lock.ts";
import type { Log } from "../log.ts";
import type { Status } from "../operate/status-shape.ts";
import { paths } from "../paths.ts";
import { peopleStore } from "../people/open.ts";
import { changeChannel } from "../postgres/commits.ts";
import { Postgres, type PostgresUnreachable } from "../postgres/connection.ts";
import {
  type Front,
  forgetDeadFronts,
  noteEnd,
  noteFront,
  seenEveryMs,
  sharedSecret,
} from "../postgres/fronts.ts";
import { PostgresJournal, type PostgresJournalSettings } from "../postgres/journal.ts";
import { leaseHolder } from "../postgres/lease.ts";
import { migratePostgres } from "../postgres/schema.ts";
import { StoreCopy } from "../postgres/store-copy.ts";
import { requireFrontsMayStart } from "../postgres/take-over.ts";
import { version } from "../version.ts";
import { payloadKeyName, requireEventsUrl, requireNoOwnData } from "./own-data.ts";

const connections = 8;
/** How long a change is tried that somebody may wait for: whoever sent it is told before the connection is given up. */
const changeMs = 10_000;
/** Also without being told, so that nothing that was told while the connection was away waits. */
const lookEveryMs = 500;
const tidyEveryMs = 20_000;

export class SharedFront implements SharedState {
  private readonly front: Front;
  private copy: StoreCopy | undefined;
  private living: Front[];
  private loader: string | null = null;
  private trouble: PostgresUnreachable | null = null;
  private readonly chores: Chores;
  /** Called when another front is not seen any more. */
  onFrontGone: () => void = () => undefined;

  private constructor(
    readonly address: PostgresAddress,
    private readonly postgres: Postgres,
    private readonly log: Log,
  ) {
    this.front = { id: crypto.randomUUID(), name: hostname(), version };
    this.living = [this.front];
    this.chores = new Chores((error) =>
      log.debug({ error: String(error) }, "PostgreSQL is asked again later"),
    );
  }

  /**
   * Connects and brings the copies in a data directory up to date, whose lock is held; PostgreSQL that cannot be reached yet
   * is waited for.
   *
   * @returns undefined when nothing is shared.
   * @throws {WrongSetting} @throws {PostgresRefuses} @throws {DataFromNewerVersion}
   */
  static async open(config: Config, log: Log): Promise<SharedFront | undefined> {
    const address = postgresAddress(config, process.env);
    if (address === null) return undefined;
    requireEventsUrl(config);
    const place = paths(config["data-dir"]);
    requireNoOwnData(config["data-dir"]);
    let front: SharedFront | undefined;
    let said = "";
    const onState = (reason: PostgresUnreachable | null) => {
      if (front !== undefined) front.noteState(reason);
      else if (reason !== null && reason.message !== said) {
        said = reason.message;
        log.warn(`${said}. It is tried again by itself.`);
      }
    };
    const postgres = new Postgres(address, { connections, name: "front" }, onState);
    await postgres.untilDone(async () => {
      await migratePostgres(postgres);
      await requireFrontsMayStart(postgres);
      await StoreCopy.prepare(place.metadata, metadataStore, postgres);
      const engine = await takeEngineLock(place.engine, config["data-dir"], () =>
        log.info("waiting for the engine of the front before this one to end"),
      );
      try {
        await StoreCopy.prepare(place.people, peopleStore, postgres);
      } finally {
        engine?.release();
      }
      const own = existsSync(place.payloadKey) ? readPayloadKey(place.payloadKey) : undefined;
      // The first server's key is that of all.
      const offered = own?.toString("base64") ?? newPayloadKey();
      const key = Buffer.from(await sharedSecret(postgres, payloadKeyName, offered), "base64");
      if (own === undefined || !key.equals(own)) writePayloadKey(place.payloadKey, key);
    });
    front = new SharedFront(address, postgres, log);
    return front;
  }

  /** Identifies this front to the engine and in PostgreSQL. */
  get id(): string {
    return this.front.id;
  }

  /** From now on the store follows what others change. */
  async attach(metadata: Metadata): Promise<void> {
    const onTaken = (isBack: boolean) => metadata.changes.retake(isBack);
    this.copy = StoreCopy.attach(metadata.db.$client, metadataStore, this.postgres, { onTaken });
    await this.look();
    await this.postgres.untilDone(() => this.noteLife());
    await this.postgres.listen(changeChannel, (name) => {
      if (name === metadataStore.name) void this.look();
    });
    this.chores.every(lookEveryMs, async () => {
      await this.look();
      // What was changed besides requests, such as when a key was last used.
      await this.settle();
    });
    this.chores.every(seenEveryMs, () => this.noteLife());
    this.chores.every(tidyEveryMs, async () => {
      await this.copy!.tidy();
      await forgetDeadFronts(this.postgres);
    });
  }

  journal(settings: Omit<PostgresJournalSettings, "front">): PostgresJournal {
    return new PostgresJournal(this.postgres, { ...settings, front: this.id });
  }

  async look(): Promise<void> {
    await this.copy?.look();
  }

  async change<Result>(run: () => Result | Promise<Result>): Promise<Result> {
    return await this.copy!.change(run, undefined, changeMs);
  }

  /** The same for what nobody waits for; PostgreSQL that is away is waited for. */
  async changeLater(run: () => void): Promise<void> {
    await this.postgres.untilDone(() => this.change(run));
  }

  async settle(): Promise<void> {
    if (this.copy!.hasChanges) await this.change(() => undefined);
  }

  /** How many fronts live, this one among them. */
  get count(): number {
    return this.living.length;
  }

  /** Whether this front's engine loads events. */
  get isLoader(): boolean {
    return this.loader === this.id;
  }

  status(): NonNullable<Status["shared"]> {
    return {
      postgres: shownPostgres(this.address),
      trouble: this.trouble?.message ?? null,
      fronts: this.living.map(({ id, name, version: its }) => ({
        ...{ name, version: its, is_this: id === this.id, loads_events: id === this.loader },
      })),
    };
  }

  /** The address by which people know this front. */
  named(url: string): void {
    this.front.name = `${hostname()} ${url}`;
  }

  async close(): Promise<void> {
    this.chores.stop();
    await this.settle().catch(() => undefined);
    await noteEnd(this.postgres, this.id).catch(() => undefined);
    await this.postgres.close();
  }

  private async noteLife(): Promise<void> {
    const before = this.living;
    this.living = await noteFront(this.postgres, this.front);
    if (before.some(({ id }) => !this.living.some((front) => front.id === id))) this.onFrontGone();
    this.loader = await leaseHolder(this.postgres);
  }

  private noteState(reason: PostgresUnreachable | null): void {
    if (reason !== null && this.trouble === null) this.log.warn(reason.message);
    if (reason === null && this.trouble !== null) this.log.info("PostgreSQL can be used again");
    this.trouble = reason;
  }
}
