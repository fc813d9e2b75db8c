/**
 * Shows without a query that most new UUIDs are not stored. All stored version 7 UUIDs since a cutoff are known: a
 * later UUID that is unknown is not stored; for all others, the caller has to query. When the capacity is exhausted,
 * the oldest are dropped and the cutoff moves forward.
 */

import { fourDigits, uuidTime } from "../columns.ts";

/** UUIDs per generation; there are two, the current and the previous one. */
const generationMax = 512 * 1024;
const firstSlots = 8 * 1024;
/** Maximum slots probed per UUID: with half-full slots, one in 10^20 has that many neighbors. */
const probesMax = 256;
/**
 * UUIDs with future times are kept across generations, so that a wrong clock does not move the cutoff; limited to this
 * fraction of a generation.
 */
const earlyPart = 1 / 64;
const earlyMs = 60_000;
/** Offsets of the groups of four hexadecimal digits after the time. */
const fours = [14, 19, 24, 28, 32];

export class RecentUuids {
  private readonly seeds = crypto.getRandomValues(new Int32Array(2));
  private current: Generation;
  private before: Generation;
  private one = 0;
  private other = 0;

  /**
   * @param from milliseconds since 1970: no stored event has a version 7 UUID of this time or later
   * @param limit minimum number of known UUIDs; the maximum is twice as large
   * @param probes maximum slots per UUID; lower in tests
   */
  constructor(
    private from: number,
    private readonly limit = generationMax,
    private readonly probes = probesMax,
  ) {
    this.current = new Generation(limit, probes);
    this.before = new Generation(limit, probes);
  }

  /** Whether certainly no stored event has this UUID. */
  isNew(projectId: number, uuid: string): boolean {
    const time = uuidTime(uuid);
    if (time === null || time < this.from) return false;
    this.hash(projectId, uuid);
    return !this.current.has(this.one, this.other) && !this.before.has(this.one, this.other);
  }

  /** Records that an event with this UUID is stored or may be from now on. */
  add(projectId: number, uuid: string): void {
    const time = uuidTime(uuid);
    if (time === null || time < this.from) return;
    this.hash(projectId, uuid);
    this.put(time, this.one, this.other);
  }

  private put(time: number, one: number, other: number): void {
    if (this.current.add(time, one, other)) return;
    const { latest, early } = this.before;
    this.before = this.current;
    this.current = new Generation(this.limit, this.probes);
    // Dropped UUIDs must not appear new.
    this.from = Math.max(this.from, latest + 1);
    for (const each of early) if (each.time >= this.from) this.current.add(each.time, each.one, each.other);
    // There is capacity: only few early UUIDs were kept.
    if (time >= this.from) this.current.add(time, one, other);
  }

  /** Random seeds prevent clients from generating collisions. */
  private hash(projectId: number, uuid: string): void {
    let one = this.seeds[0]! ^ projectId;
    let other = this.seeds[1]! ^ projectId;
    for (let index = 0; index < fours.length; index++) {
      const digits = fourDigits(uuid, fours[index]!);
      one = Math.imul(one ^ digits, 0x85eb_ca6b);
      one ^= one >>> 15;
      other = Math.imul((other ^ digits) + index, 0xc2b2_ae35);
      other ^= other >>> 13;
    }
    this.one = one;
    // A slot with two zeros is free.
    this.other = other | 1;
  }
}

interface Early {
  time: number;
  one: number;
  other: number;
}

/** A hash set of pairs of hashes, with linear probing. */
class Generation {
  /** The latest time of its UUIDs, excluding early ones. */
  latest = 0;
  readonly early: Early[] = [];
  private slots = new Int32Array(2 * firstSlots);
  private count = 0;
  /** A UUID did not fit: a failed lookup proves nothing. */
  private isBlind = false;

  constructor(
    private readonly countMax: number,
    private readonly probes: number,
  ) {}

  has(one: number, other: number): boolean {
    const slot = this.findSlot(one, other);
    return this.isBlind || slot === undefined || this.slots[slot + 1] !== 0;
  }

  /** @returns false if the generation is full */
  add(time: number, one: number, other: number): boolean {
    if (this.count === this.countMax) return false;
    if (4 * this.count >= this.slots.length) this.grow();
    this.keep(one, other);
    this.count += 1;
    const isEarly = time > Date.now() + earlyMs && this.early.length + 1 <= this.countMax * earlyPart;
    if (isEarly) this.early.push({ time, one, other });
    else this.latest = Math.max(this.latest, time);
    return true;
  }

  private keep(one: number, other: number): void {
    const slot = this.findSlot(one, other);
    if (slot === undefined) {
      this.isBlind = true;
      return;
    }
    this.slots[slot] = one;
    this.slots[slot + 1] = other;
  }

  /** The slot that contains or can contain the pair; undefined if others fill every probed slot. */
  private findSlot(one: number, other: number): number | undefined {
    const { slots } = this;
    const mask = slots.length - 1;
    let position = (one << 1) & mask;
    for (let probe = 0; probe < this.probes; probe++) {
      const there = slots[position + 1]!;
      if (there === 0 || (there === other && slots[position] === one)) return position;
      position = (position + 2) & mask;
    }
    return undefined;
  }

  private grow(): void {
    const old = this.slots;
    this.slots = new Int32Array(2 * old.length);
    for (let slot = 0; slot < old.length; slot += 2)
      if (old[slot + 1] !== 0) this.keep(old[slot]!, old[slot + 1]!);
  }
}
