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
  { count, windowMicros }: OrderedSteps,
): Promise<FunnelTimes> {
  const bindings = await import("@duckdb/node-bindings");
  // A CommonJS module, whose type does not tell of its default export; the executable's own has nothing else.
  const duckdb = (bindings as unknown as { default: typeof bindings }).default;
  const steps = Array.from({ length: count }, (_, step) => `is_${step}::INTEGER * ${2 ** step}`).join(" + ");
  // Ties are put into order here: with two keys less the store sorts in half the time.
  const result = await connection.stream(
    `SELECT who, moment::DOUBLE, (${steps})::INTEGER, seq::DOUBLE + lane::INTEGER * ${historicalFrom}, value
     FROM (${found}) ORDER BY who, moment`,
  );
  const walk = new Walk(count, windowMicros);
  const last = new Int32Array(4);
  for (let isFirst = true; ; ) {
    const chunk = await result.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) break;
    const rows = chunk.rowCount;
    const bytesOf = (column: number, bytes: number) =>
      duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk.chunk, column), rows * bytes);
    const whoBytes = bytesOf(0, 16);
    const momentBytes = bytesOf(1, 8);
    const stepBytes = bytesOf(2, 4);
    const arrivalBytes = bytesOf(3, 8);
    const who = new Int32Array(whoBytes.buffer, whoBytes.byteOffset, rows * 4);
    const moments = new Float64Array(momentBytes.buffer, momentBytes.byteOffset, rows);
    const isSteps = new Int32Array(stepBytes.buffer, stepBytes.byteOffset, rows);
    const arrivals = new Float64Array(arrivalBytes.buffer, arrivalBytes.byteOffset, rows);
    const values = chunk.getColumnVector(4);
    const valueAt = (row: number) => values.getItem(row) as string | null;
    for (let row = 0; row < rows; row++) {
      const at = 4 * row;
      const isSame =
        who[at] === last[0] && who[at + 1] === last[1] && who[at + 2] === last[2] && who[at + 3] === last[3];
      if (isFirst || !isSame) {
        walk.endPerson();
        for (let word = 0; word < 4; word++) last[word] = who[at + word]!;
        isFirst = false;
      }
      // Only the event that begins a funnel has to tell its value.
      const value = (isSteps[row]! & 1) === 0 ? null : valueAt(row);
      walk.add({ moment: moments[row]!, steps: isSteps[row]!, arrival: arrivals[row]!, value });
    }
  }
  walk.endPerson();
  return walk.times;
}

/** Historical events count as arrived behind all others of their moment, at any number of arrival. */
const historicalFrom = 2 ** 52;

interface FunnelEvent {
  moment: number;
  /** A bit per step. */
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
  /** Events of one moment. */
  private readonly tied: FunnelEvent[] = [];

  constructor(
    private readonly count: number,
    private readonly windowMicros: number,
  ) {
    this.starts = new Float64Array(count);
    this.moments = new Float64Array(count);
    this.took = new Float64Array(count).fill(Number.NaN);
  }

  /** The next event in time; of those at one moment the order does not matter. */
  add(event: FunnelEvent): void {
    const { tied } = this;
    if (tied.length > 0 && tied[0]!.moment !== event.moment) this.takeTied();
    tied.push(event);
  }

  private takeTied(): void {
    const { tied } = this;
    if (tied.length > 1) tied.sort((one, other) => one.arrival - other.arrival);
    for (const event of tied) this.take(event);
    tied.length = 0;
  }

  private take({ moment, steps, value }: FunnelEvent): void {
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
    this.takeTied();
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
