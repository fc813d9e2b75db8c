/**
 * The store of persons where several fronts share it, and the lease of the one whose engine loads events.
 *
 * The engine that holds the lease reads the journal in PostgreSQL and applies it as on a single machine; but whatever it
 * writes into its file is in PostgreSQL before it goes on, and nothing gets there once another one holds the lease.
 */

import type { Lane } from "../journal/segment.ts";
import { Chores } from "../lib/chores.ts";
import type { IdentityStep, IdentityStore } from "../people/batch.ts";
import { type PeopleDb, peopleStore } from "../people/open.ts";
import { changeChannel, noteMirrored } from "../postgres/commits.ts";
import { Postgres, PostgresUnreachable } from "../postgres/connection.ts";
import { JournalReader, type ReaderPorts } from "../postgres/journal-reader.ts";
import {
  isLeaseFree,
  type Lease,
  LeaseLost,
  releaseLease,
  renewEveryMs,
  renewLease,
  takeLease,
} from "../postgres/lease.ts";
import { StoreCopy } from "../postgres/store-copy.ts";
import type { PersonCopies } from "./backend.ts";
import type { EngineStart } from "./messages.ts";

const connections = 4;
/** Also without being told, so that nothing that was told while the connection was away waits. */
const lookEveryMs = 500;
/** What is loaded is noted, and forgotten in the journal, so often. */
const forgetEveryMs = 500;
const tidyEveryMs = 20_000;
const releaseMs = 500;

export interface SharedPeopleHooks {
  onAway(reason: PostgresUnreachable | null): void;
  /** Rows of other fronts are here. */
  onTaken(): void;
  /** Nobody loads events: this process should end, and begin anew. */
  onFree(): void;
  onFatal(error: unknown): void;
}

export class SharedPeople {
  private reader: JournalReader | undefined;
  private forgotten: Record<Lane, number> = { realtime: 0, historical: 0 };
  private readonly chores = new Chores((error) => {
    if (!(error instanceof PostgresUnreachable)) this.hooks.onFatal(error);
  });
  private mirrored = 0;

  private constructor(
    private readonly postgres: Postgres,
    private readonly copy: StoreCopy,
    private readonly lease: Lease | undefined,
    private readonly hooks: SharedPeopleHooks,
  ) {}

  /** Takes over what others have changed, and the lease, if it is free. @throws {OperatorNeeded} */
  static async open(
    people: PeopleDb,
    { postgres: address, front }: NonNullable<EngineStart["shared"]>,
    hooks: SharedPeopleHooks,
  ): Promise<SharedPeople> {
    const postgres = new Postgres(address, { connections, name: "engine" }, (reason) => hooks.onAway(reason));
    const copy = StoreCopy.attach(people.$client, peopleStore, postgres, { onTaken: () => hooks.onTaken() });
    const holder = crypto.randomUUID();
    const lease = await postgres.untilDone(() => takeLease(postgres, { front, holder }));
    await postgres.untilDone(() => copy.catchUp());
    return new SharedPeople(postgres, copy, lease, hooks);
  }

  /** Whether this engine loads events. */
  get isLoader(): boolean {
    return this.lease !== undefined;
  }

  /** Follows the others; or keeps the lease and reads the journal from where both stores are. */
  async start(ports: Omit<ReaderPorts, "onFailure">, cursor: (lane: Lane) => number): Promise<void> {
    const { lease } = this;
    if (lease === undefined) {
      await this.postgres.listen(changeChannel, (name) => {
        if (name === peopleStore.name) void this.copy.look();
      });
      this.chores.every(lookEveryMs, () => this.copy.look());
      this.chores.every(renewEveryMs, async () => {
        if (await isLeaseFree(this.postgres)) this.hooks.onFree();
      });
      return;
    }
    const from = { realtime: cursor("realtime"), historical: cursor("historical") };
    this.reader = new JournalReader(this.postgres, from, {
      ...ports,
      onFailure: (error) => {
        if (!(error instanceof PostgresUnreachable)) this.hooks.onFatal(error);
      },
    });
    this.reader.start();
    this.chores.every(renewEveryMs, () => renewLease(this.postgres, lease));
    this.chores.every(forgetEveryMs, () => this.forget(cursor));
    this.chores.every(tidyEveryMs, () => this.copy.tidy());
  }

  /** The store of persons, each step of which is everybody's when it is committed. */
  around(identity: IdentityStore): IdentityStore {
    return {
      cursor: (lane) => identity.cursor(lane),
      begin: async (lane) => {
        const step = await identity.begin(lane);
        const shared: IdentityStep = {
          add: (batch) => step.add(batch),
          get isFull() {
            return step.isFull;
          },
          commit: async (lastSeq) => {
            const spikes = await step.commit(lastSeq);
            await this.settle();
            return spikes;
          },
          abandon: () => step.abandon(),
        };
        return shared;
      },
    };
  }

  /**
   * Copies of persons follow what is everybody's: another loader must know the numbers of the changes. While PostgreSQL is
   * away they stay as they are, so that questions are answered.
   */
  aroundCopies(copies: PersonCopies): PersonCopies {
    return {
      follow: async () => {
        try {
          if (this.copy.hasChanges) await this.change(() => undefined);
          const { revision } = this.copy;
          await copies.follow();
          if (revision > this.mirrored) await noteMirrored(this.postgres, revision);
          this.mirrored = revision;
        } catch (error) {
          if (!(error instanceof PostgresUnreachable)) throw error;
        }
      },
      get followed() {
        return copies.followed;
      },
    };
  }

  /** Resolves when everything that was written is everybody's; PostgreSQL that is away is waited for. */
  async settle(): Promise<void> {
    await this.postgres.untilDone(() => this.change(() => undefined));
  }

  /** Runs a change of the store for all fronts. @throws {PostgresUnreachable} @throws what `run` throws */
  async change<Result>(run: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await this.copy.change(run, this.lease);
    } catch (error) {
      if (error instanceof LeaseLost) this.hooks.onFatal(error);
      throw error;
    }
  }

  /** Gives the lease back; the last call but for `close`. */
  async stop(cursor: (lane: Lane) => number): Promise<void> {
    this.chores.stop();
    await this.reader?.stop();
    if (this.lease === undefined) return;
    await this.forget(cursor).catch(() => undefined);
    await this.release();
  }

  /** Lets another front go on at once. */
  async release(): Promise<void> {
    const { lease, postgres } = this;
    if (lease === undefined) return;
    await Promise.race([releaseLease(postgres, lease).catch(() => undefined), Bun.sleep(releaseMs)]);
  }

  async close(): Promise<void> {
    await this.postgres.close();
  }

  private async forget(cursor: (lane: Lane) => number): Promise<void> {
    const loaded = { realtime: cursor("realtime"), historical: cursor("historical") };
    const { forgotten } = this;
    const isNew = loaded.realtime > forgotten.realtime || loaded.historical > forgotten.historical;
    if (!isNew && !this.copy.hasChanges) return;
    await this.change(() => undefined);
    if (!isNew) return;
    await this.reader?.forget(loaded);
    this.forgotten = loaded;
  }
}
