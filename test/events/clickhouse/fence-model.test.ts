/**
 * The loader on a simulated cluster: engines that pause anywhere, inserts that arrive late or lose their answer, and a
 * server that forgets names quickly. With all guards each entry is stored once; without any of them the same simulation
 * finds faults, so that it can see them.
 */

import { expect, test } from "bun:test";
import { ClickHouseError, ClickHouseUnreachableError } from "../../../src/events/clickhouse/connection.ts";
import { lateInsertCode } from "../../../src/events/clickhouse/insert-fence.ts";
import { ClickHouseLoader } from "../../../src/events/clickhouse/loader.ts";
import type { ClickHouseStore } from "../../../src/events/clickhouse/store.ts";
import { LoadCancelledError } from "../../../src/events/store.ts";
import type { StorableEvent } from "../../../src/journal/entry.ts";
import type { StartedLoad } from "../../../src/persons/external-events.ts";
import { mulberry32 } from "../../support/crash-load.ts";

type Guard = "deadline" | "wait" | "name";

const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const clusters = Number(process.env.FLAGKEEP_TEST_MODEL_RUNS ?? 120);
const runMs = 25_000;
const engines = 3;
const batchEntries = 3;
const leaseMs = 3_500;
/** How long after a deadline an insert may still be stored. */
const lateInsertMs = 1_000;
const renewEveryMs = 500;
const runningMsMax = 4_800;
/** Error of ClickHouse's clock, at most this many milliseconds. */
const clockErrorMs = 300;
/** More than are done during a lease, and fewer than during the delay of the latest insert. */
const retainedNames = 12;
const batchEveryMs = 350;
const address = {
  url: "http://model",
  user: "",
  password: "",
  database: "model",
  cluster: null,
  quorum: null,
};

const time = { timeMicros: 1_767_225_600_000_000, receivedMicros: 1_767_225_600_000_000 };
const getEvent = (seq: number) =>
  ({
    kind: "event",
    seq,
    projectId: 1,
    uuid: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d",
    event: "seen",
    distinctId: "a",
    historical: false,
    mode: "full",
    hasGeneratedUuid: false,
    elementsChain: null,
    propertiesText: Buffer.from("{}"),
    ...time,
  }) as unknown as StorableEvent;

/** Where the number is in a row, after the project and the lane. */
const seqOffset = 5;

class LostLease extends Error {}

/** What PostgreSQL and ClickHouse hold. */
class Model {
  readonly stored = new Map<number, number>();
  private names: string[] = [];
  loaded = 0;
  started: StartedLoad | undefined;
  lease = { epoch: 0, until: 0 };
  private rowBytes = 0;
  private readonly clockMs: number;

  constructor(
    readonly random: () => number,
    private readonly without: Guard | undefined,
  ) {
    this.clockMs = (2 * random() - 1) * clockErrorMs;
  }

  has(guard: Guard): boolean {
    return this.without !== guard;
  }

  get clickhouseMs(): number {
    return Date.now() + this.clockMs;
  }

  acquire(): number | undefined {
    if (performance.now() < this.lease.until) return undefined;
    this.lease = { epoch: this.lease.epoch + 1, until: performance.now() + leaseMs };
    return this.lease.epoch;
  }

  /** @throws {LostLease} */
  commit(epoch: number, work: () => void = () => undefined): void {
    if (this.lease.epoch !== epoch) throw new LostLease();
    this.lease.until = performance.now() + leaseMs;
    work();
  }

  seqs(bytes: Uint8Array): number[] {
    const view = Buffer.from(bytes);
    this.rowBytes ||= view.length / batchEntries;
    return Array.from({ length: view.length / this.rowBytes }, (_, row) =>
      Number(view.readBigInt64LE(row * this.rowBytes + seqOffset)),
    );
  }

  /** The deadline is checked when the rows are read; they are stored some time later. */
  async insert(seqs: readonly number[], name: string, condition: string): Promise<void> {
    const seconds = Number(/>= (\d+)/.exec(condition)![1]);
    if (this.has("deadline") && Math.floor(this.clickhouseMs / 1_000) >= seconds)
      throw new ClickHouseError({ message: "flagkeep: late insert", code: lateInsertCode });
    if (this.random() < 0.3) await Bun.sleep(this.random() * runningMsMax);
    if (this.has("name") && this.names.includes(name)) return;
    this.names = [...this.names, name].slice(-retainedNames);
    for (const seq of seqs) this.stored.set(seq, (this.stored.get(seq) ?? 0) + 1);
  }
}

/** A process that can hang at each of its calls. */
class Engine {
  private pausedUntil = 0;
  private fence = { end: 0, previousEnd: 0 };
  private loader: ClickHouseLoader | undefined;

  constructor(
    private readonly model: Model,
    private readonly end: number,
  ) {}

  async run(): Promise<void> {
    while (performance.now() < this.end) {
      await this.step();
      const sentAt = performance.now();
      const epoch = this.model.acquire();
      if (epoch === undefined) {
        await Bun.sleep(100);
        continue;
      }
      const previousEnd = performance.now() + leaseMs + lateInsertMs;
      this.fence = { end: sentAt + leaseMs, previousEnd: this.model.has("wait") ? previousEnd : 0 };
      const timer = setInterval(() => this.renew(epoch), renewEveryMs);
      try {
        await this.load(epoch);
      } catch (error) {
        if (!(error instanceof LostLease || error instanceof LoadCancelledError)) throw error;
      } finally {
        clearInterval(timer);
      }
    }
  }

  private renew(epoch: number): void {
    // Also while an insert is on its way.
    if (this.model.random() < 0.05) this.pausedUntil = performance.now() + this.model.random() * 9_000;
    if (performance.now() < this.pausedUntil) return;
    try {
      this.model.commit(epoch);
      this.fence.end = performance.now() + leaseMs;
    } catch {
      this.loader?.cancel();
    }
  }

  private async load(epoch: number): Promise<void> {
    const { model, fence } = this;
    const loader = new ClickHouseLoader(this.store(epoch), () => undefined, {
      until: () => fence.end,
      previousEnd: fence.previousEnd,
    });
    this.loader = loader;
    setTimeout(() => loader.cancel(), this.end - performance.now());
    while (performance.now() < this.end) {
      const last = model.started?.last ?? model.loaded + batchEntries;
      const seqs = Array.from({ length: last - model.loaded }, (_, index) => model.loaded + 1 + index);
      await loader.load("realtime", last, seqs.map(getEvent));
      await Bun.sleep(batchEveryMs);
    }
  }

  /** Hangs sometimes, as every process does. */
  private async step(): Promise<void> {
    const { random } = this.model;
    if (random() < 0.03) this.pausedUntil = performance.now() + random() * 9_000;
    await Bun.sleep(1 + random() * 10);
    while (performance.now() < this.pausedUntil) await Bun.sleep(20);
  }

  private store(epoch: number): ClickHouseStore {
    const { model } = this;
    const loaded = { realtime: model.loaded, historical: 0 };
    const outside = {
      loaded,
      get started() {
        return model.started;
      },
      storeId: () => ({ id: "model", isClaimed: true }),
      start: (load: StartedLoad) => model.commit(epoch, () => (model.started = load)),
      finish: (_: string, last: number) =>
        model.commit(epoch, () => {
          model.loaded = last;
          loaded.realtime = last;
          model.started = undefined;
        }),
    };
    const connection = {
      rows: (sql: string) => this.rows(sql),
      insert: (_: string, __: unknown, bytes: Uint8Array, settings: object, check: { condition: string }) =>
        this.insert(bytes, { settings, epoch }, check.condition),
    };
    return { outside, connection, address, open: async () => undefined } as unknown as ClickHouseStore;
  }

  private async rows(sql: string): Promise<unknown[][]> {
    const { model } = this;
    if (sql.includes("now64")) {
      await this.step();
      const now = model.clickhouseMs * 1_000;
      await this.step();
      return [[now]];
    }
    const [, first, last] = /seq >= (\d+) AND seq <= (\d+)/.exec(sql)!.map(Number);
    await this.step();
    const isThere = (seq: number) => seq >= first! && seq <= last!;
    const found = [...model.stored.keys()].filter(isThere).map((seq) => [seq]);
    await this.step();
    return found;
  }

  private async insert(
    bytes: Uint8Array,
    { settings, epoch }: { settings: object; epoch: number },
    condition: string,
  ): Promise<void> {
    const { model } = this;
    const { random } = model;
    const seqs = model.seqs(bytes);
    const { insert_deduplication_token: token } = settings as { insert_deduplication_token: string };
    // Engines may divide a batch differently, for example in another version: then they have no names in common.
    const name = `${token}:${epoch}`;
    await this.step();
    const isSlow = random() < 0.1;
    // It arrives also if its sender hangs or has given it up.
    const arrives = Bun.sleep(isSlow ? random() * 12_000 : random() * 20).then(() =>
      model.insert(seqs, name, condition),
    );
    const isCut = random() < 0.15;
    if (isCut) {
      arrives.catch(() => undefined);
      await Bun.sleep(random() * 200);
      await this.step();
      throw new ClickHouseUnreachableError(address as never, new Error("cut"));
    }
    await arrives;
    await this.step();
  }
}

interface Faults {
  twice: number;
  lost: number;
  stored: number;
}

async function simulate(without: Guard | undefined, run: number): Promise<Faults> {
  const model = new Model(mulberry32(seed + run), without);
  const end = performance.now() + runMs;
  await Promise.all(Array.from({ length: engines }, () => new Engine(model, end).run()));
  const all = Array.from({ length: model.loaded }, (_, index) => model.stored.get(index + 1) ?? 0);
  return {
    stored: all.length,
    twice: all.filter((times) => times > 1).length,
    lost: all.filter((times) => times === 0).length,
  };
}

test(
  `each entry is stored once with all guards, and without any of them it is not (seed ${seed})`,
  async () => {
    const guards = [undefined, "deadline", "wait", "name"] as const;
    const results = await Promise.all(
      guards.map(async (without) => {
        // These faults need two rare delays at once.
        const length = without === "wait" || without === "deadline" ? 3 * clusters : clusters;
        const runs = await Promise.all(Array.from({ length }, (_, run) => simulate(without, run)));
        const sum = (of: keyof Faults) => runs.reduce((before, each) => before + each[of], 0);
        return { without, stored: sum("stored"), twice: sum("twice"), lost: sum("lost") };
      }),
    );
    const [whole, ...others] = results;
    expect(whole).toMatchObject({ twice: 0, lost: 0 });
    for (const { lost } of others) expect(lost).toBe(0);
    expect(whole!.stored).toBeGreaterThan(clusters * 5 * batchEntries);
    for (const { without, twice } of others) expect([without, twice > 0]).toEqual([without, true]);
  },
  runMs + 60_000,
);
