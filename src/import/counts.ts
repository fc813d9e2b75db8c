/** Counts of an import: records and events, and those that were left out or not taken. */

import { Database } from "bun:sqlite";
import { type Static, Type } from "@sinclair/typebox";

const count = (description: string) => Type.Integer({ minimum: 0, description });
const counts = (description: string) =>
  Type.Record(Type.String(), Type.Integer({ minimum: 1 }), { description });

/** Counts of records over all runs of a resumed import. */
export const ImportCounts = Type.Object(
  {
    read: count("Records in the files."),
    accepted: count("Events that were new."),
    duplicate: count("Events whose uuid was stored before, or that are in the files more than once."),
    made: count("Events that link a device and its user, or give a group its properties; not in `accepted`."),
    rejected: count("Records that are not events; they are in the reject files."),
    placeholder_ids: count(
      "Records with an id such as `(null)` or `unknown`, which names neither a device nor a user.",
    ),
    left_out: counts("Records that are deliberately not loaded, by reason."),
    not_taken: counts("Members of records that no event carries, by name; how many records have them."),
    warnings: counts("Doubts about values, by code of `warningSentences` and, after a space, its detail."),
  },
  { additionalProperties: false },
);
export type ImportCounts = Static<typeof ImportCounts>;

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Warnings in the summary. */
const warningSentences: Readonly<Record<string, (records: number, detail: string) => string>> = {
  matomo_time_correction_unknown: (visits) =>
    `The times of ${counted(visits, "visit")} differ from their start by no time zone's offset: they were read as UTC.`,
  matomo_time_reference_missing: (visits) =>
    `${counted(visits, "visit")} ${visits === 1 ? "has" : "have"} neither firstActionTimestamp nor lastActionTimestamp nor serverTimestamp: their times were read as UTC.`,
  person_properties_size_violation: (records) =>
    `The person properties of ${counted(records, "record")} exceed the limit and are not all stored; see the reject file.`,
  group_properties_size_violation: (records) =>
    `The group properties of ${counted(records, "record")} exceed the limit and are not all stored; see the reject file.`,
  deleted_person_is_live: (persons) =>
    `${counted(persons, "person")} that the source has deleted ${persons === 1 ? "has realtime events: it was" : "have realtime events: they were"} left in place.`,
  mixpanel_local_time: (records, offset) =>
    `The times of the first ${records} records differ from Mixpanel's UTC times by ${offset}: they seem to be local times. ` +
    "Load such a project with --timezone ZONE.",
};

/** The warnings of an import as sentences. */
export function formatWarnings({ warnings }: Pick<ImportCounts, "warnings">): string[] {
  return Object.entries(warnings).map(([warning, records]) => {
    const [code = "", ...detail] = warning.split(" ");
    return warningSentences[code]?.(records, detail.join(" ")) ?? warning;
  });
}

/** Names counted separately; the rest is counted as `other`. */
const countedNamesMax = 1_000;
const others = "other";

export function emptyCounts(): ImportCounts {
  return {
    read: 0,
    accepted: 0,
    duplicate: 0,
    made: 0,
    rejected: 0,
    placeholder_ids: 0,
    left_out: {},
    not_taken: {},
    warnings: {},
  };
}

/** Adds to `to` in place. */
export function addCounts(to: ImportCounts, more: Partial<ImportCounts>): void {
  for (const [name, value] of Object.entries(more) as [keyof ImportCounts, unknown][]) {
    if (typeof value === "number") (to[name] as number) += value;
    else addNames(to[name] as Record<string, number>, value as Record<string, number>);
  }
}

/** Adds to `to` in place. Names come from the source: any name is ordinary. */
function addNames(to: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, times] of Object.entries(more)) addName(to, name, times);
}

/** Adds to `to` in place. */
export function addName(to: Record<string, number>, name: string, times = 1): void {
  const isKnown = Object.hasOwn(to, name);
  const target = isKnown || Object.keys(to).length < countedNamesMax ? name : others;
  const value = (Object.hasOwn(to, target) ? to[target]! : 0) + times;
  // An assignment to `__proto__` would be lost.
  Object.defineProperty(to, target, { value, enumerable: true, configurable: true, writable: true });
}

/** Names listed in one line. */
const listedNamesMax = 50;

/** `schema (1,204 records), app (3 records)`, the most frequent first; further names are counted. */
export function formatCounts(counts: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(counts).sort(([, one], [, other]) => other - one);
  const listed = sorted
    .slice(0, listedNamesMax)
    .map(
      ([name, records]) =>
        `${name} (${records.toLocaleString("en-US")} ${records === 1 ? "record" : "records"})`,
    );
  const more = sorted.length - listed.length;
  return [...listed, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}

/** Strings whose counts are in memory, which takes 24 MiB. */
const inMemoryMax = 2 ** 20;

export class SpilledCounts implements Disposable {
  /** A hash table, at most half full; 0 for empty slots. */
  private readonly hashes: BigUint64Array;
  private readonly counts: Uint32Array;
  private size = 0;
  private different = 0;
  private spilled: Database | undefined;

  /** @param limit a power of two. */
  constructor(private readonly limit = inMemoryMax) {
    this.hashes = new BigUint64Array(2 * limit);
    this.counts = new Uint32Array(2 * limit);
  }

  /** Counts a string. @returns its number of occurrences: 1 for the first. */
  add(text: string): number {
    const hash = Bun.hash.xxHash64(text) || 1n;
    const at = this.findSlot(hash);
    if (this.hashes[at] === 0n) {
      this.hashes[at] = hash;
      this.counts[at] = this.spilledCount(hash);
      this.size += 1;
      if (this.counts[at] === 0) this.different += 1;
    }
    this.counts[at]! += 1;
    const count = this.counts[at]!;
    if (this.size === this.limit) this.spill();
    return count;
  }

  /** How many different strings were counted. */
  get distinct(): number {
    return this.different;
  }

  [Symbol.dispose](): void {
    this.spilled?.close();
  }

  /** Position of a hash, or its insertion point. */
  private findSlot(hash: bigint): number {
    const mask = this.hashes.length - 1;
    let at = Number(hash & BigInt(mask));
    while (this.hashes[at] !== 0n && this.hashes[at] !== hash) at = (at + 1) & mask;
    return at;
  }

  private spilledCount(hash: bigint): number {
    const row = this.spilled
      ?.query<{ count: number }, [bigint]>("SELECT count FROM counted WHERE hash = ?")
      .get(signed(hash));
    return row?.count ?? 0;
  }

  private spill(): void {
    if (this.spilled === undefined) {
      // An unnamed file: SQLite deletes it with the connection, even when the process is killed.
      this.spilled = new Database("", { create: true });
      this.spilled.run("CREATE TABLE counted (hash INTEGER PRIMARY KEY, count INTEGER NOT NULL)");
    }
    const insert = this.spilled.query("INSERT OR REPLACE INTO counted VALUES (?, ?)");
    this.spilled.transaction(() => {
      for (const [at, hash] of this.hashes.entries())
        if (hash !== 0n) insert.run(signed(hash), this.counts[at]!);
    })();
    this.hashes.fill(0n);
    this.size = 0;
  }
}

/** SQLite's integers are signed. */
function signed(hash: bigint): bigint {
  return BigInt.asIntN(64, hash);
}
