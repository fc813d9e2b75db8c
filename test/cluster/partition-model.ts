/**
 * A model of loading by partitions (docs/decisions/22-cluster-nodes.md): engines hold leases of partitions, read blocks
 * up to the safe number, insert with a deadline, and give partitions to engines that have fewer. Engines pause or die at
 * any step, answers are lost, inserts arrive late, and ClickHouse's clock is only known approximately. Any guard can be
 * left out.
 */

import { expiredMs, LeaseObserver, leaseMs, renewEveryMs, type SeenLease } from "../../src/cluster/lease.ts";
import { mulberry32 } from "../support/crash-load.ts";

/** What keeps entries from being lost or stored twice. */
export type Guard = "safe number" | "deadline" | "wait" | "epoch" | "check";
export const allGuards: readonly Guard[] = ["safe number", "deadline", "wait", "epoch", "check"];

const partitions = 4;
const partitionsPerEngine = 3;
const engines = 3;
/** An engine with fewer partitions asks for one of another engine, */
const fairShare = Math.ceil(partitions / engines);
/** with this probability at each renewal: live engines move partitions all the time. */
const askingShare = 0.2;
const nodes = 2;
/** Before the end of the lease. */
const marginMs = 500;
/** Error of ClickHouse's clock as an engine knows it. */
const clockErrorMs = 300;
/** Insert tokens that ClickHouse remembers: fewer than are used during the delay of the latest insert. */
const cachedTokens = 12;
/** Faults happen until then; later everything is loaded. */
const faultsMs = 60_000;
const runMs = 4 * faultsMs;
const answerMs = 3_000;

/** How long the process waits. */
type Process = Generator<number, void, void>;
/** A call within a process. */
type Call<Result> = Generator<number, Result, void>;

/** The process of an engine ends. */
class Died extends Error {}
/** It is unknown whether a transaction was committed. */
class NoAnswer extends Error {}

interface ModelEvent {
  id: string;
  partition: number;
}

/** The border of a load. */
interface Batch {
  id: string;
  first: number;
  last: number;
  /** When ClickHouse rejects its inserts. */
  deadline: number;
}

/** What PostgreSQL has of a partition. */
interface PartitionState {
  epoch: number;
  beat: number;
  /** False once it was given back. */
  isHeld: boolean;
  /** Another engine asks for it. */
  isWanted: boolean;
  /** The last block that is loaded. */
  loaded: number;
  /** The last block whose persons are applied, and the events of all of them. */
  applied: number;
  persons: string[];
  batch: Batch | undefined;
}

/** A partition that an engine holds. */
interface Held {
  epoch: number;
  until: number;
}

export interface Faults {
  storedTwice: number;
  lost: number;
  appliedTwice: number;
  notApplied: number;
  disordered: number;
}

class Model {
  nowMs = 0;
  /** Numbers of blocks that are not committed yet. */
  readonly open = new Set<number>();
  private lastNumber = 0;
  private newestBlock = 0;
  readonly blocks = new Map<number, readonly ModelEvent[]>();
  readonly acknowledged = new Map<string, number>();
  readonly state = Array.from(
    { length: partitions },
    (): PartitionState => ({
      epoch: 0,
      beat: 0,
      isHeld: false,
      isWanted: false,
      loaded: 0,
      applied: 0,
      persons: [],
      batch: undefined,
    }),
  );
  readonly stored = new Map<string, number>();
  takeovers = 0;
  givenBack = 0;
  private tokens: string[] = [];
  private readonly queue: { at: number; order: number; process: Process }[] = [];
  private scheduled = 0;

  constructor(
    readonly random: () => number,
    private readonly guards: readonly Guard[],
  ) {}

  has(guard: Guard): boolean {
    return this.guards.includes(guard);
  }

  between(low: number, high: number): number {
    return low + this.random() * (high - low);
  }

  get isFaulty(): boolean {
    return this.nowMs < faultsMs;
  }

  start(process: Process, afterMs = 0): void {
    this.scheduled += 1;
    const next = { at: this.nowMs + afterMs, order: this.scheduled, process };
    let index = this.queue.length;
    while (index > 0 && isLater(next, this.queue[index - 1]!)) index -= 1;
    this.queue.splice(index, 0, next);
  }

  run(): void {
    for (;;) {
      // The earliest is the last.
      const next = this.queue.pop();
      if (next === undefined || next.at > runMs) return;
      this.nowMs = next.at;
      try {
        const { done, value } = next.process.next();
        if (done !== true) this.start(next.process, value);
      } catch (error) {
        if (!(error instanceof Died)) throw error;
      }
    }
  }

  /** Delay of a message. */
  delay(): number {
    return this.random() < 0.97 || !this.isFaulty ? this.between(1, 15) : this.between(200, 2_500);
  }

  /** A process may be suspended at any step. @throws {Died} */
  pause(): number {
    if (!this.isFaulty) return 0;
    const fate = this.random();
    if (fate < 0.002) throw new Died();
    return fate < 0.012 ? this.between(500, 14_000) : 0;
  }

  /** A transaction in PostgreSQL. @throws {NoAnswer} */
  *transaction<Result>(work: () => Result): Call<Result> {
    yield this.delay() + this.pause();
    const result = work();
    if (this.isFaulty && this.random() < 0.01) {
      yield 1_000;
      throw new NoAnswer();
    }
    yield this.delay() + this.pause();
    return result;
  }

  takeNumber(): number {
    this.lastNumber += 1;
    this.open.add(this.lastNumber);
    return this.lastNumber;
  }

  commitBlock(number: number, events: readonly ModelEvent[]): void {
    this.open.delete(number);
    this.blocks.set(number, events);
    this.newestBlock = Math.max(this.newestBlock, number);
    for (const { id } of events) this.acknowledged.set(id, number);
  }

  /** The number up to which a reader reads. */
  get end(): number {
    if (!this.has("safe number")) return this.newestBlock;
    return this.open.size === 0 ? this.lastNumber : Math.min(...this.open) - 1;
  }

  /** ClickHouse's clock as an engine knows it. */
  get clickhouseMs(): number {
    return this.nowMs + this.between(-clockErrorMs, clockErrorMs);
  }

  /** Sends an insert, which arrives whatever happens to its sender. */
  insert(events: readonly ModelEvent[], token: string, deadline: number): { isStored?: boolean } {
    const answer: { isStored?: boolean } = {};
    const model = this;
    function* arrive(): Process {
      yield model.random() < 0.95 || !model.isFaulty ? model.between(1, 20) : model.between(1_000, 25_000);
      if (model.has("deadline") && model.nowMs > deadline) {
        answer.isStored = false;
        return;
      }
      if (!model.tokens.includes(token)) {
        model.tokens = [...model.tokens, token].slice(-cachedTokens);
        for (const { id } of events) model.stored.set(id, (model.stored.get(id) ?? 0) + 1);
      }
      if (!(model.isFaulty && model.random() < 0.03)) answer.isStored = true;
    }
    this.start(arrive());
    return answer;
  }

  eventsOf(partition: number, first: number, last: number): ModelEvent[] {
    const events: ModelEvent[] = [];
    for (let number = first; number <= last; number++)
      for (const event of this.blocks.get(number) ?? [])
        if (event.partition === partition) events.push(event);
    return events;
  }
}

const isLater = (one: { at: number; order: number }, other: { at: number; order: number }): boolean =>
  one.at > other.at || (one.at === other.at && one.order > other.order);

function* node(model: Model, name: number): Process {
  for (let count = 0; model.isFaulty; count++) {
    const number = model.takeNumber();
    yield model.random() < 0.95 ? model.between(1, 8) : model.between(100, 900);
    const events = Array.from({ length: 5 }, (_, place) => ({
      id: `${name}.${count}.${place}`,
      partition: Math.floor(model.random() * partitions),
    }));
    model.commitBlock(number, events);
    yield model.between(5, 60);
  }
}

function* engine(model: Model): Process {
  const held = new Map<number, Held>();
  const observers = model.state.map(() => new LeaseObserver(expiredMs, () => model.nowMs));
  let renewedAt = Number.NEGATIVE_INFINITY;
  const isHeld = (partition: number) => model.nowMs < (held.get(partition)?.until ?? 0);
  try {
    while (model.nowMs < runMs) {
      try {
        if (model.nowMs - renewedAt > renewEveryMs || held.size === 0) {
          renewedAt = model.nowMs;
          yield* renewLeases(model, held);
          yield* takeLeases(model, held, observers);
          if (held.size < fairShare && model.random() < askingShare) yield* askForLease(model, held);
        }
        for (const partition of [...held.keys()]) {
          if (isHeld(partition)) yield* step(model, partition, held.get(partition)!);
          else held.delete(partition);
        }
        yield* giveBack(model, held);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      yield 100 + model.pause();
    }
  } catch (error) {
    if (error instanceof Died) model.start(engine(model), model.between(500, 4_000));
    throw error;
  }
}

/** One statement for all partitions of an engine. */
function* renewLeases(model: Model, held: Map<number, Held>): Call<void> {
  const until = model.nowMs + leaseMs;
  const retained = yield* model.transaction(() => {
    const renewed = [...held].filter(([partition, { epoch }]) => model.state[partition]!.epoch === epoch);
    for (const [partition] of renewed) model.state[partition]!.beat += 1;
    return renewed.map(([partition]) => partition);
  });
  for (const [partition, lease] of held)
    if (retained.includes(partition)) lease.until = until;
    else held.delete(partition);
}

/** Takes over partitions that no one renews. */
function* takeLeases(model: Model, held: Map<number, Held>, observers: readonly LeaseObserver[]): Call<void> {
  const leases = yield* model.transaction(() =>
    model.state.map(
      ({ epoch, beat, isHeld }): SeenLease => ({
        epoch: String(epoch),
        beat: String(beat),
        isHeld,
        isPaused: false,
      }),
    ),
  );
  for (const [number, lease] of leases.entries()) {
    if (held.has(number) || held.size >= partitionsPerEngine) continue;
    if (lease.isHeld && !observers[number]!.isExpired(lease)) continue;
    const until = model.nowMs + leaseMs;
    const epoch = yield* model.transaction(() => {
      const state = model.state[number]!;
      if (String(state.epoch) !== lease.epoch || String(state.beat) !== lease.beat) return undefined;
      state.epoch += 1;
      state.beat += 1;
      state.isHeld = true;
      state.isWanted = false;
      model.takeovers += 1;
      return state.epoch;
    });
    if (epoch !== undefined) held.set(number, { epoch, until });
  }
}

function* askForLease(model: Model, held: ReadonlyMap<number, Held>): Call<void> {
  const others = model.state.filter((_, number) => !held.has(number));
  const wanted = others[Math.floor(model.random() * others.length)];
  yield* model.transaction(() => {
    if (wanted !== undefined) wanted.isWanted = true;
  });
}

/** Between two steps. An insert of a step that had no answer may still be on its way: its batch is open. */
function* giveBack(model: Model, held: Map<number, Held>): Call<void> {
  const given = yield* model.transaction(() => {
    const wanted = [...held].filter(([partition, { epoch }]) => {
      const state = model.state[partition]!;
      return state.isWanted && state.epoch === epoch;
    });
    for (const [partition] of wanted) {
      const state = model.state[partition]!;
      state.epoch += 1;
      state.isHeld = false;
      state.isWanted = false;
      model.givenBack += 1;
    }
    return wanted;
  });
  for (const [partition] of given) held.delete(partition);
}

/** Loads what a partition has up to the safe number. */
function* step(model: Model, partition: number, lease: Held): Call<void> {
  const state = model.state[partition]!;
  const isMine = () => !model.has("epoch") || state.epoch === lease.epoch;
  const isValid = () => model.nowMs < lease.until;
  const found = yield* model.transaction(() => ({
    loaded: state.loaded,
    batch: state.batch && { ...state.batch },
    end: model.end,
  }));
  /** An insert of the batch may have been sent. */
  let isUncertain = found.batch !== undefined;
  if (found.batch === undefined && found.end <= found.loaded) return;
  const first = found.loaded + 1;
  const batch = found.batch ?? {
    id: `${partition}:${first}:${found.end}`,
    first,
    last: found.end,
    deadline: 0,
  };
  for (let tries = 0; ; tries++) {
    if (!isValid()) return;
    if (isUncertain && model.has("wait"))
      while (model.clickhouseMs < batch.deadline + 2 * clockErrorMs + marginMs) {
        yield 200 + model.pause();
        // The lease has to be renewed first.
        if (model.nowMs + 1_000 > lease.until) return;
      }
    const deadline = lease.until - marginMs;
    const isStarted = yield* model.transaction(() => {
      if (!isMine()) return false;
      if (isUncertain) {
        if (state.batch === undefined) return false;
        state.batch.deadline = Math.max(deadline, state.batch.deadline);
        return true;
      }
      if (state.batch !== undefined || state.loaded !== found.loaded) return false;
      state.batch = { ...batch, deadline };
      return true;
    });
    if (!isStarted) return;
    const isApplied = yield* model.transaction(() => {
      if (!isMine()) return false;
      if (state.applied < batch.last) {
        for (const { id } of model.eventsOf(partition, state.applied + 1, batch.last)) state.persons.push(id);
        state.applied = batch.last;
      }
      return true;
    });
    if (!isApplied) return;
    let events = model.eventsOf(partition, batch.first, batch.last);
    let token = batch.id;
    if (isUncertain) {
      const missing = events.filter(({ id }) => !model.stored.has(id));
      yield model.delay() + model.pause();
      events = missing;
      token = `${batch.id}:${lease.epoch}:${tries}`;
    }
    yield model.pause();
    if (model.has("check") && model.nowMs >= deadline) return;
    if (events.length === 0) break;
    const answer = model.insert(events, token, deadline);
    const sentAt = model.nowMs;
    while (answer.isStored === undefined && model.nowMs - sentAt < answerMs) yield 20;
    yield model.pause();
    if (answer.isStored === true) break;
    isUncertain = true;
    batch.deadline = deadline;
  }
  yield* model.transaction(() => {
    if (!isMine() || state.batch?.id !== batch.id) return;
    state.loaded = batch.last;
    state.batch = undefined;
  });
}

/** Runs a cluster until everything is loaded. @returns what went wrong, and how often partitions changed their engine */
export function runCluster(
  seed: number,
  guards: readonly Guard[],
): { faults: Faults; takeovers: number; givenBack: number } {
  const model = new Model(mulberry32(seed), guards);
  for (let name = 0; name < nodes; name++) model.start(node(model, name));
  for (let count = 0; count < engines; count++) model.start(engine(model));
  model.run();
  const { acknowledged, stored, state, takeovers, givenBack } = model;
  const applied = state.flatMap(({ persons }) => persons);
  const appliedOnce = new Set(applied);
  const faults = {
    storedTwice: [...stored.values()].filter((count) => count > 1).length,
    lost: [...acknowledged.keys()].filter((id) => !stored.has(id)).length,
    appliedTwice: applied.length - appliedOnce.size,
    notApplied: [...acknowledged.keys()].filter((id) => !appliedOnce.has(id)).length,
    disordered: state.reduce((sum, { persons }) => sum + countDisordered(persons, acknowledged), 0),
  };
  return { faults, takeovers, givenBack };
}

function countDisordered(ids: readonly string[], numbers: ReadonlyMap<string, number>): number {
  return ids.slice(1).filter((id, index) => numbers.get(ids[index]!)! > numbers.get(id)!).length;
}
