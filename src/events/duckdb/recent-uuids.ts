/**
 * Tells of most new uuids that no stored event has them, without asking DuckDB.
 *
 * It knows every stored version 7 uuid from some moment on. One of that time that it does not know is not stored; of all
 * others it says nothing, and who asks has to look. What it has no more room for goes by age, and the moment moves on.
 */

import { fourDigits, uuidTime } from "../columns.ts";

/** Uuids of a generation, of which there are two: those and the ones before. */
const generationMax = 512 * 1024;
const firstSlots = 8 * 1024;
/** Slots that are looked at for one uuid: of those that are half full, one of 10^20 has so many neighbours. */
const probesMax = 256;
/** Uuids of a time that has not come stay, lest one of a wrong clock be the moment. Where this part of all are such, they may. */
const earlyPart = 1 / 64;
const earlyMs = 60_000;
/** Where the digits of a uuid stand behind its time, by fours. */
const fours = [14, 19, 24, 28, 32];

export class RecentUuids {
  private readonly seeds = crypto.getRandomValues(new Int32Array(2));
  private current: Generation;
  private before: Generation;
  private one = 0;
  private other = 0;

  /**
   * @param from  milliseconds since 1970: no stored event has a version 7 uuid of that time or a later one.
   * @param limit uuids that are known at least, and at the most twice.
   * @param probes slots that are looked at for one; fewer are for tests.
   */
  constructor(
    private from: number,
    private readonly limit = generationMax,
    private readonly probes = probesMax,
  ) {
    this.current = new Generation(limit, probes);
    this.before = new Generation(limit, probes);
  }

  /** Whether certainly no event has it that was stored. */
  isNew(projectId: number, uuid: string): boolean {
    const time = uuidTime(uuid);
    if (time === null || time < this.from) return false;
    this.hash(projectId, uuid);
    return !this.current.has(this.one, this.other) && !this.before.has(this.one, this.other);
  }

  /** An event with it is stored, or may be from now on. */
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
    // What goes must not be taken for new.
    this.from = Math.max(this.from, latest + 1);
    for (const each of early) if (each.time >= this.from) this.current.add(each.time, each.one, each.other);
    // There is room now: those are few.
    if (time >= this.from) this.current.add(time, one, other);
  }

  /** With seeds of its own, so that nobody can make uuids whose hashes are alike. */
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

/** Pairs of hashes, each at the first free place from where its first one says. */
class Generation {
  /** Of its uuids, without the early ones. */
  latest = 0;
  readonly early: Early[] = [];
  private slots = new Int32Array(2 * firstSlots);
  private count = 0;
  /** One had no place and is not here: whatever is asked for may be that one. */
  private isBlind = false;

  constructor(
    private readonly countMax: number,
    private readonly probes: number,
  ) {}

  has(one: number, other: number): boolean {
    const place = this.placeOf(one, other);
    return this.isBlind || place === undefined || this.slots[place + 1] !== 0;
  }

  /** @returns false when there is no room. */
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
    const place = this.placeOf(one, other);
    if (place === undefined) {
      this.isBlind = true;
      return;
    }
    this.slots[place] = one;
    this.slots[place + 1] = other;
  }

  /** Where it is or can be; undefined: nowhere. */
  private placeOf(one: number, other: number): number | undefined {
    const { slots } = this;
    const mask = slots.length - 1;
    let place = (one << 1) & mask;
    for (let probe = 0; probe < this.probes; probe++) {
      const there = slots[place + 1]!;
      if (there === 0 || (there === other && slots[place] === one)) return place;
      place = (place + 2) & mask;
    }
    return undefined;
  }

  private grow(): void {
    const old = this.slots;
    this.slots = new Int32Array(2 * old.length);
    for (let place = 0; place < old.length; place += 2)
      if (old[place + 1] !== 0) this.keep(old[place]!, old[place + 1]!);
  }
}
