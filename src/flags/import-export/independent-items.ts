/**
 * Imports each item of a document independently: one that cannot be imported completely never stops the others. A flag
 * that would match other users than in its source is switched off, and so are the flags that depend on it.
 *
 * Source: contract, import 3 (F1, F4, F5).
 */

import { unusableCondition, withExactConditions } from "../../cohorts/cohort-filters.ts";
import { isJsonObject, type Json } from "../../lib/json/value.ts";
import { exactProperty } from "../../lib/values/operators.ts";
import { getMisfits } from "../rules/condition-rules.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import { redactedPayload } from "../rules/types.ts";
import type { CohortItem, FlagDocument, FlagItem } from "./document.ts";
import type { ItemWriter } from "./item-writer.ts";
import { namesIn } from "./references.ts";

/*
 * Imports the valid parts of a flag and reports the others: a flag that cannot be imported completely never stops the
 * file.
 *
 * Source: contract, import 3 (F1 to F4).
 */

/** The part of an obstacle that prevents the import of the whole flag. */
export const wholeFlag = "the flag";

/** A part of a flag that is not imported, and why. */
export interface Obstacle {
  part: string;
  reason: string;
}

export interface FlagWriter {
  /** Whether the project has no flag with this key. */
  isNew: boolean;
  /** Whether the project's flag has encrypted payloads, which a placeholder in the file represents. */
  hasSecrets: boolean;
  /** Writes the flag. @returns why it is rejected; then nothing was changed. */
  write(item: FlagItem, isSwitchedOff: boolean): string | undefined;
  /** Like `write`, but never changes anything. */
  check(item: FlagItem): string | undefined;
}

/**
 * Writes a flag; invalid condition sets are omitted, and the flag is then switched off.
 *
 * @param lost          parts that are imported, and match other users than in the source.
 * @param isSwitchedOff whether something of it was lost earlier.
 * @returns the parts that were not imported; empty if all were.
 */
function writeFlagInPart(
  sent: FlagItem,
  lost: readonly Obstacle[],
  isSwitchedOff: boolean,
  writer: FlagWriter,
): Obstacle[] {
  const { item, obstacles } = withoutHiddenPayloads(withExactValues(sent), writer.hasSecrets);
  obstacles.push(...lost, ...unmatchable(item));
  const isOff = () => isSwitchedOff || obstacles.length > 0;
  const whole = writer.write(item, isOff());
  if (whole === undefined) return obstacles;
  const { filters } = item;
  const groups = Array.isArray(filters?.groups) ? filters.groups : [];
  const with_ = (preserved: Json[]): FlagItem => ({ ...item, filters: { ...filters, groups: preserved } });
  if (writer.check(with_([])) === undefined) {
    const preserved = groups.filter((group, index) => {
      const reason = writer.check(with_([group]));
      if (reason !== undefined) addObstacle(obstacles, { part: `rule ${index + 1}`, reason });
      return reason === undefined;
    });
    if (writer.write(with_(preserved), true) === undefined) {
      // Every condition set is valid alone, or the value is not a list.
      if (preserved.length === groups.length) addObstacle(obstacles, { part: "its filters", reason: whole });
      return obstacles;
    }
  }
  // The problem is outside of the condition sets. An existing flag stays unchanged.
  const isRetained =
    writer.isNew && writer.write({ key: item.key, filters: { groups: [] } }, true) === undefined;
  addObstacle(obstacles, { part: isRetained ? "its filters" : wholeFlag, reason: whole });
  return obstacles;
}

function addObstacle(obstacles: Obstacle[], obstacle: Obstacle): void {
  const { part, reason } = obstacle;
  if (!obstacles.some((known) => known.part === part && known.reason === reason)) obstacles.push(obstacle);
}

/** Removes placeholders of encrypted payloads; a flag that has encrypted payloads keeps them. */
function withoutHiddenPayloads(
  item: FlagItem,
  hasSecrets: boolean,
): { item: FlagItem; obstacles: Obstacle[] } {
  const payloads = item.filters?.payloads;
  if (hasSecrets || !isJsonObject(payloads)) return { item, obstacles: [] };
  const isHidden = (value: unknown) => value === redactedPayload || value === JSON.parse(redactedPayload);
  const shown = Object.entries(payloads).filter(([, value]) => !isHidden(value));
  const hidden = Object.entries(payloads).filter(([, value]) => isHidden(value));
  if (hidden.length === 0) return { item, obstacles: [] };
  const obstacles = hidden.map(([key]) => ({
    part: `payload of ${key}`,
    reason: "it is encrypted and not in the file; export it with --with-secrets",
  }));
  const { has_encrypted_payloads: _, ...members } = item;
  return {
    item: { ...members, filters: { ...item.filters, payloads: Object.fromEntries(shown) } } as FlagItem,
    obstacles,
  };
}

/** Conditions that are kept but can never match. */
function unmatchable({ filters }: FlagItem): Obstacle[] {
  const groups = Array.isArray(filters?.groups) ? filters.groups : [];
  return groups.flatMap((group, index) => {
    if (!isJsonObject(group) || !Array.isArray(group.properties)) return [];
    return getMisfits({ groups: [group] }).map((reason) => ({
      part: `rule ${index + 1}`,
      reason: reason.replace(/^groups\[0\]\.properties\[\d+\]\.value: /, ""),
    }));
  });
}

/** A flag with filter values in the form that their operator accepts, if that is equivalent (F2). */
function withExactValues(item: FlagItem): FlagItem {
  if (item.filters === null) return item;
  const lists = ["groups", "super_groups", "holdout_groups"] as const;
  const filters = lists.reduce((changed, list) => mapProperties(changed, list, exactProperty), item.filters);
  return { ...item, filters };
}

export interface IndependentSource {
  /** Keys of the flags that lost something when the file was read. */
  switchedOff: ReadonlySet<string>;
  /** Whether a static cohort of the project has members. */
  hasMembers: (cohortId: number) => boolean;
  document: FlagDocument;
  /** The project before the import. */
  before: FlagDocument;
}

export class IndependentItems {
  readonly omitted: (Obstacle & { flag: string })[] = [];
  /** Names of the cohorts of the file that are not imported; the project may have others with these names. */
  private readonly lostCohorts = new Set<string>();
  /** Cohorts of the file whose members are not those of the source, and why: references to them are obstacles. */
  private readonly incompleteCohorts = new Map<string, string>();
  /** Keys of the flags that would be on in the source. */
  private readonly lostFlags = new Set<string>();
  /** Flags to switch off when the flags that depend on them are, in the order of the import. */
  private readonly later = new Map<string, FlagItem>();
  private readonly referenced: ReadonlySet<string>;

  constructor(
    private readonly writer: ItemWriter,
    private readonly source: IndependentSource,
  ) {
    this.referenced = namesIn(source.document.flags.map(({ filters }) => filters) as Json, "flag");
  }

  /** Call it for a cohort after those that it uses. */
  writeCohort(item: CohortItem): void {
    const { name } = item;
    const id = this.writer.cohortIds.get(name);
    const filters = isJsonObject(item.filters) ? withExactConditions(item.filters) : item.filters;
    const reason =
      unusableCondition(item.filters ?? null) ??
      this.lostReference(item.filters ?? null) ??
      this.writer.reasonAgainst(() =>
        this.writer.writeCohort(filters === undefined ? item : { ...item, filters }),
      );
    if (reason !== undefined) {
      this.lostCohorts.add(name);
      this.writer.remarks.push(`Not taken over: cohort "${name}": ${reason}`);
      return;
    }
    const incomplete = this.incompleteReason(item, id);
    if (incomplete !== undefined) this.incompleteCohorts.set(name, incomplete);
  }

  /** Files have no members of static cohorts; members that the project has are those that a user added. */
  private incompleteReason(
    { is_static, filters = null, name }: CohortItem,
    id: number | undefined,
  ): string | undefined {
    if (is_static === true) {
      const hasMembers = id !== undefined && this.source.hasMembers(id);
      return hasMembers ? undefined : `the static cohort "${name}", whose members are not in the file`;
    }
    const used = [...namesIn(filters, "cohort")].find((each) => this.incompleteCohorts.has(each));
    if (used === undefined) return undefined;
    return `the cohort "${name}", which depends on ${this.incompleteCohorts.get(used)}`;
  }

  writeFlag(item: FlagItem): void {
    const { key } = item;
    const isLost = this.source.switchedOff.has(key);
    const lostRules = isLost ? [] : this.lostRules(item);
    const obstacles = writeFlagInPart(item, lostRules, isLost, {
      isNew: !this.writer.flagIds.has(key),
      hasSecrets: this.writer.stored(key)?.hasEncryptedPayloads === true,
      write: (part, isOff) => this.writer.reasonAgainst(() => this.writeSwitched(part, isOff)),
      check: (part) => this.writer.reasonAgainstTrying(() => this.writer.writeFlag(part)),
    });
    if ((isLost || obstacles.length > 0) && item.active !== false) this.lostFlags.add(key);
    this.omitted.push(...obstacles.map((obstacle) => ({ flag: key, ...obstacle })));
  }

  /** Switches off the flags that others depend on, last in the order of dependencies first. */
  finish(): void {
    for (const [key, item] of [...this.later].reverse()) {
      const reason = this.writer.reasonAgainst(() => this.writer.writeFlag({ ...item, active: false }));
      if (reason === undefined) continue;
      // A flag that is not in the file depends on it.
      const before = this.source.before.flags.find((flag) => flag.key === key);
      if (before !== undefined) this.writer.writeFlag(before);
      this.omitted.push({ flag: key, part: wholeFlag, reason });
    }
  }

  /** Whether not a single item of the document was imported. */
  get isNothingImported(): boolean {
    const { cohorts, flags } = this.source.document;
    const omitted = new Set(this.omitted.filter(({ part }) => part === wholeFlag).map(({ flag }) => flag));
    return (
      flags.every(({ key }) => omitted.has(key)) && cohorts.every(({ name }) => this.lostCohorts.has(name))
    );
  }

  /** Keys of the flags that are on in the source, and off here. */
  get turnedOff(): string[] {
    return [...this.lostFlags].filter((key) => this.writer.stored(key)?.active === false);
  }

  /** Rules that match other users than in the source because of the items that they refer to. */
  private lostRules({ filters }: FlagItem): Obstacle[] {
    const groups = Array.isArray(filters?.groups) ? filters.groups : [];
    const ofRules = groups.flatMap((group, index): Obstacle[] => {
      const reason = this.inexactReference(group);
      return reason === undefined ? [] : [{ part: `rule ${index + 1}`, reason }];
    });
    const { groups: _, ...others } = filters ?? {};
    const reason = this.inexactReference(others);
    return reason === undefined ? ofRules : [...ofRules, { part: "its filters", reason }];
  }

  private inexactReference(filters: Json): string | undefined {
    const lost = this.lostReference(filters);
    if (lost !== undefined) return lost;
    const cohort = [...namesIn(filters, "cohort")].find((name) => this.incompleteCohorts.has(name));
    return cohort === undefined ? undefined : `it uses ${this.incompleteCohorts.get(cohort)}`;
  }

  /** Why a value refers to a lost item of the file by the name of an item that the project has. */
  private lostReference(filters: Json): string | undefined {
    const cohort = [...namesIn(filters, "cohort")].find((name) => this.lostCohorts.has(name));
    if (cohort !== undefined && this.writer.cohortIds.has(cohort))
      return `it uses the cohort "${cohort}", which is not imported`;
    const flag = [...namesIn(filters, "flag")].find((key) => this.lostFlags.has(key));
    if (flag === undefined || !this.writer.flagIds.has(flag)) return undefined;
    return `it depends on the flag ${flag}, which is imported turned off`;
  }

  /**
   * Switches the flag off, unless its filters, and the flags that it depends on, are those of the file: a user has turned
   * it on since.
   */
  private writeSwitched(item: FlagItem, isOff: boolean): void {
    const { key } = item;
    const before = this.writer.stored(key);
    if (!isOff || before === undefined) {
      const isLater = isOff && item.active !== false && this.referenced.has(key);
      this.writer.writeFlag(isOff && !isLater ? { ...item, active: false } : item);
      if (isLater) this.later.set(key, item);
      return;
    }
    this.writer.writeFlag({ ...item, active: before.active });
    const isChanged = !Bun.deepEquals(before.filters, this.writer.stored(key)?.filters, true);
    const dependsOnChanged = [...namesIn(item.filters, "flag")].some((needed) => this.later.has(needed));
    if ((isChanged || dependsOnChanged) && before.active) this.later.set(key, item);
  }
}
