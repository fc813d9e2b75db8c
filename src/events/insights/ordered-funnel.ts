/**
 * Who came how far through an ordered funnel: one walk over the events of its steps, person by person in order of time.
 *
 * The store sorts, which it may do on the disk; here one person is in memory at a time, besides how long each step took
 * everybody. Several times quicker than window functions over texts.
 */

import type { DuckDBConnection } from "@duckdb/node-api";

/** How many people got to a step, and how long each took from the step before it, in microseconds. */
export type StepTimes = number[];

/** Per value of the breakdown, the times of each step; null where there is no value or no breakdown. */
export type FunnelTimes = Map<string | null, StepTimes[]>;

export interface OrderedSteps {
  /** At most 30. */
  count: number;
  windowMicros: number;
  /** There is a breakdown. */
  hasValues: boolean;
}

/**
 * Walks through the events of a funnel.
 *
 * @param found SQL for rows with `who` (a uuid), `moment` (microseconds), `lane`, `seq`, `value` (of the breakdown) and, per
 *              step, whether they are it: `is_0`, `is_1`, …
 */
export async function walkOrdered(
  connection: DuckDBConnection,
  found: string,
  steps: OrderedSteps,
): Promise<FunnelTimes> {
  // Numbers of 64 bits are sorted in half the time that uuids take. Where two people share one, all is sorted by the uuids.
  return (
    (await walkSorted(connection, found, steps, "hash(who)")) ??
    (await walkSorted(connection, found, steps, "who"))!
  );
}

/** @returns undefined where the events of several people are mixed up in this order. */
async function walkSorted(
  connection: DuckDBConnection,
  found: string,
  { count, windowMicros, hasValues }: OrderedSteps,
  order: "hash(who)" | "who",
): Promise<FunnelTimes | undefined> {
  const bindings = await import("@duckdb/node-bindings");
  // A CommonJS module, whose type does not tell of its default export; the executable's own has nothing else.
  const duckdb = (bindings as unknown as { default: typeof bindings }).default;
  const steps = Array.from({ length: count }, (_, step) => `is_${step}::INTEGER * ${2 ** step}`).join(" + ");
  // Ties are put into order here: with two keys less the store sorts in half the time.
  const result = await connection.stream(
    `SELECT ${order === "who" ? "0::UBIGINT" : order} AS place, who, moment::DOUBLE, (${steps})::INTEGER,
       seq::DOUBLE + lane::INTEGER * ${historicalFrom}${hasValues ? ", value" : ""}
     FROM (${found}) ORDER BY ${order}, moment`,
  );
  const walk = new Walk(count, windowMicros);
  const last = new Int32Array(4);
  const lastPlace = new Int32Array(2);
  for (let isFirst = true; ; ) {
    const chunk = await result.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) break;
    const rows = chunk.rowCount;
    const bytesOf = (column: number, bytes: number) => {
      const data = duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk.chunk, column), rows * bytes);
      return [data.buffer, data.byteOffset] as const;
    };
    const places = new Int32Array(...bytesOf(0, 8), rows * 2);
    const who = new Int32Array(...bytesOf(1, 16), rows * 4);
    const moments = new Float64Array(...bytesOf(2, 8), rows);
    const isSteps = new Int32Array(...bytesOf(3, 4), rows);
    const arrivals = new Float64Array(...bytesOf(4, 8), rows);
    const values = hasValues ? chunk.getColumnVector(5) : undefined;
    for (let row = 0; row < rows; row++) {
      const at = 4 * row;
      const isSame =
        who[at] === last[0] && who[at + 1] === last[1] && who[at + 2] === last[2] && who[at + 3] === last[3];
      if (isFirst || !isSame) {
        const [low, high] = [places[2 * row]!, places[2 * row + 1]!];
        if (!isFirst && order !== "who" && low === lastPlace[0] && high === lastPlace[1]) return undefined;
        walk.endPerson();
        for (let word = 0; word < 4; word++) last[word] = who[at + word]!;
        lastPlace[0] = low;
        lastPlace[1] = high;
        isFirst = false;
      }
      // Only the event that begins a funnel has to tell its value.
      const value = (isSteps[row]! & 1) === 0 ? null : ((values?.getItem(row) ?? null) as string | null);
      walk.add(moments[row]!, isSteps[row]!, arrivals[row]!, value);
    }
  }
  walk.endPerson();
  return walk.times;
}

/** Historical events count as arrived behind all others of their moment, at any number of arrival. */
const historicalFrom = 2 ** 52;

interface TiedEvent {
  steps: number;
  arrival: number;
  value: string | null;
}

/**
 * One person's way at a time. Of two ways to a step the one that began later has at least as much time left, so per step the
 * latest beginning is enough; of those that began together, the one that got there later.
 */
class Walk {
  readonly times: FunnelTimes = new Map();
  private readonly starts: Float64Array;
  private readonly moments: Float64Array;
  /** How long the first way to a step took from the one before it; NaN: not reached. */
  private readonly took: Float64Array;
  private value: string | null = null;
  private hasBegun = false;
  /** The event, or one of those, that no later one was seen after: most moments have one only. */
  private pendingMoment = 0;
  private pendingSteps = 0;
  private pendingArrival = 0;
  private pendingValue: string | null = null;
  /** The others of that moment. */
  private readonly tied: TiedEvent[] = [];

  constructor(
    private readonly count: number,
    private readonly windowMicros: number,
  ) {
    this.starts = new Float64Array(count);
    this.moments = new Float64Array(count);
    this.took = new Float64Array(count).fill(Number.NaN);
  }

  /**
   * The next event in time; of those at one moment the order does not matter.
   *
   * @param steps a bit per step, at least one of them set.
   */
  add(moment: number, steps: number, arrival: number, value: string | null): void {
    if (this.pendingSteps !== 0 && this.pendingMoment === moment) {
      this.tied.push({ steps, arrival, value });
      return;
    }
    this.takePending();
    this.pendingMoment = moment;
    this.pendingSteps = steps;
    this.pendingArrival = arrival;
    this.pendingValue = value;
  }

  private takePending(): void {
    const { tied, pendingMoment: moment, pendingSteps: steps, pendingValue: value } = this;
    if (tied.length === 0) this.take(moment, steps, value);
    else {
      tied.push({ steps, arrival: this.pendingArrival, value });
      tied.sort((one, other) => one.arrival - other.arrival);
      for (const event of tied) this.take(moment, event.steps, event.value);
      tied.length = 0;
    }
    this.pendingSteps = 0;
  }

  private take(moment: number, steps: number, value: string | null): void {
    const { count, starts, moments, took } = this;
    // Downwards: nothing comes after itself.
    for (let step = count - 1; step > 0; step--) {
      if ((steps & (1 << step)) === 0 || Number.isNaN(took[step - 1]!)) continue;
      const start = starts[step - 1]!;
      if (moment - start > this.windowMicros) continue;
      const isFirst = Number.isNaN(took[step]!);
      if (isFirst) took[step] = moment - moments[step - 1]!;
      if (isFirst || start >= starts[step]!) {
        starts[step] = start;
        moments[step] = moment;
      }
    }
    if ((steps & 1) === 0) return;
    starts[0] = moment;
    moments[0] = moment;
    if (this.hasBegun) return;
    this.hasBegun = true;
    took[0] = 0;
    this.value = value;
  }

  endPerson(): void {
    this.takePending();
    if (!this.hasBegun) return;
    let times = this.times.get(this.value);
    if (times === undefined) {
      times = Array.from({ length: this.count }, () => []);
      this.times.set(this.value, times);
    }
    for (let step = 0; step < this.count; step++) {
      const took = this.took[step]!;
      if (!Number.isNaN(took)) times[step]!.push(took);
    }
    this.took.fill(Number.NaN);
    this.hasBegun = false;
  }
}

/** The values that most people have, each for itself, and the others together under a name. */
export function withOthers(times: FunnelTimes, valuesMax: number, others: string): FunnelTimes {
  const ranked = [...times].sort(
    ([one, a], [other, b]) => b[0]!.length - a[0]!.length || compareTexts(one, other),
  );
  const shown: FunnelTimes = new Map();
  for (const [place, [value, own]] of ranked.entries()) {
    const name = place < valuesMax ? value : others;
    const known = shown.get(name);
    if (known === undefined) shown.set(name, own);
    else
      shown.set(
        name,
        own.map((each, step) => known[step]!.concat(each)),
      );
  }
  return shown;
}

/** By their bytes in UTF-8, as the store does; none comes last. */
function compareTexts(one: string | null, other: string | null): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** Of at least one time. */
export function averageOf(times: StepTimes): number {
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}

/** Of at least one time; between the two in the middle when their number is even. */
export function medianOf(times: StepTimes): number {
  const sorted = Float64Array.from(times).sort();
  const middle = (sorted.length - 1) / 2;
  const below = sorted[Math.floor(middle)]!;
  return below + (sorted[Math.ceil(middle)]! - below) * (middle % 1);
}
