/**
 * Imports each item of a document independently: one that cannot be imported completely never stops the others. A flag
 * that would match other users than in its source is switched off, and so are the flags that depend on it.
 *
 * Source: contract, import 3 (F1, F4, F5).
 */

import { unusableCondition, withExactConditions } from "../../cohorts/cohort-filters.ts";
import { isJsonObject, type Json } from "../../lib/json/value.ts";
import type { CohortItem, FlagDocument, FlagItem } from "./document.ts";
import type { ItemWriter } from "./item-writer.ts";
import { type Obstacle, wholeFlag, writeFlagInPart } from "./partial-flag.ts";
import { namesIn } from "./references.ts";

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
