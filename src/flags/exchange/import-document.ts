/**
 * Brings a project's flags and cohorts to what a document says: makes what is missing, changes what differs.
 *
 * One transaction: all of it or nothing. What the document does not name stays. Doing it again changes nothing.
 * Every write goes the way of the API's writes, with the same rules and the same activity log.
 */

import type { Author } from "../../accounts/activity.ts";
import type { MetadataTx } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { unusableCondition, withExactConditions } from "../../cohorts/cohort-filters.ts";
import { createCohort, updateCohort } from "../../cohorts/cohorts.ts";
import { AppError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json.ts";
import type { NoteMisfit } from "../../lib/operator-values.ts";
import type { FlagFields } from "../fields.ts";
import { canEvaluateTo } from "../rules/dependency-rules.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import { redactedPayload } from "../rules/types.ts";
import { findFlag } from "../store/flag.ts";
import { createFlag, type FlagWriting, updateFlag } from "../store/flag-writes.ts";
import {
  ApprovalRequired,
  isHarmless,
  needsApproval,
  protectedDependents,
} from "../store/protected-flags.ts";
import { differencesBetween, type ItemDifference } from "./difference.ts";
import {
  type CohortItem,
  type ExchangeDocument,
  type FlagItem,
  groupTypeIndexesIn,
  mapGroupTypes,
  usualOf,
  writeDocument,
} from "./document.ts";
import { writeFlagInPart } from "./partial-flag.ts";
import { readContent, storedFlag } from "./project-content.ts";
import { DocumentUnusable } from "./read-document.ts";
import { inOrder, type NamedItem, withIds } from "./references.ts";

export interface ImportRequest {
  by: Author;
  projectId: number;
  document: ExchangeDocument;
  /** The group types of the project now. */
  groupTypes: readonly { index: number; name: string }[];
  /** Checks the members of a flag as the API does. @throws {InvalidField} */
  toFields: (item: JsonObject) => Partial<FlagFields>;
  /** Finds out everything and changes nothing. */
  isDryRun: boolean;
  /** Also applies changes that need approval. */
  isConfirmed?: boolean;
  /**
   * Imports each item independently: what cannot be kept is left out and reported, and its flag switched off, instead of
   * rejecting the document. Present: the flags of which something was lost when the file was read.
   */
  switchedOff?: ReadonlySet<string>;
  now: Date;
}

export interface ImportResult {
  /** What was changed, or would be. Secret payloads are not shown. */
  differences: ItemDifference[];
  /** What the operator should know, as sentences. */
  remarks: string[];
  /** What was not taken over; always empty where the document is rejected instead. */
  notTaken: { flag: string; part: string; reason: string }[];
  /** Keys of the protected flags that are changed, directly or through what they depend on. */
  needsApproval: string[];
}

/**
 * Imports a document.
 *
 * @throws {DocumentUnusable} something in it refers to what does not exist, or fits nowhere.
 * @throws {InvalidField}     a rule for flags or cohorts is broken.
 * @throws {ApprovalRequired} protected flags would change, and the request is not confirmed; nothing was changed in each case.
 */
export function importDocument(writing: FlagWriting, request: ImportRequest): ImportResult {
  try {
    return writing.metadata.change((t) => {
      const result = new Import(writing, request, t).run();
      if (request.isDryRun) throw new Undone(result);
      if (result.needsApproval.length > 0 && request.isConfirmed !== true) {
        throw new ApprovalRequired(result.needsApproval);
      }
      return result;
    });
  } catch (error) {
    if (error instanceof Undone) return error.result;
    throw error;
  }
}

/** Rolls the transaction of a dry run back. */
class Undone extends Error {
  constructor(readonly result: ImportResult) {
    super("A dry run changes nothing.");
  }
}

/** Rolls a write back that turned out to change nothing. */
class Unchanged extends Error {}

class Import {
  private readonly writing: FlagWriting;
  private readonly cohortIds = new Map<string, number>();
  private readonly flagIds = new Map<string, number>();
  private readonly remarks: string[] = [];
  private readonly notTaken: ImportResult["notTaken"] = [];

  constructor(
    writing: FlagWriting,
    private readonly request: ImportRequest,
    private readonly t: MetadataTx,
  ) {
    // The functions that write open a transaction each; here they all take part in this one.
    const metadata = Object.create(writing.metadata, {
      change: { value: (run: (t: MetadataTx) => unknown) => run(t) },
    }) as Metadata;
    this.writing = { ...writing, metadata };
  }

  run(): ImportResult {
    const before = this.present();
    const document = this.withGroupTypes();
    this.noteIds();
    for (const cohort of this.inOrder(document.cohorts, ({ name }) => name, "cohort"))
      this.takeCohort(cohort);
    for (const flag of this.ordered(document, before)) this.takeFlag(flag);
    const differences = differencesBetween(before, this.present());
    return {
      differences: differences.map(withoutSecrets(before, document)),
      remarks: this.remarks,
      notTaken: this.notTaken,
      needsApproval: this.protectedOf(before, differences),
    };
  }

  /**
   * The protected flags that the import changes. What depends on what is read after it: where a protected flag no longer depends
   * on a changed item, a flag between the two is changed itself.
   */
  private protectedOf(before: ExchangeDocument, differences: readonly ItemDifference[]): string[] {
    const { projectId } = this.request;
    const wereProtected = new Set(
      before.flags
        .filter(({ tags }) => needsApproval(this.writing, { projectId, tags: (tags ?? []) as string[] }))
        .map(({ key }) => key),
    );
    if (wereProtected.size === 0) return [];
    const updated = differences.filter(({ change }) => change === "updated");
    const flags = updated.filter(({ kind }) => kind === "flag");
    const effective = updated.filter(
      ({ members }) => !members.every(({ path }) => isHarmless(path.split(/[.[]/)[0]!)),
    );
    const idsOf = (wanted: ItemDifference["kind"], ids: ReadonlyMap<string, number>) =>
      effective.filter(({ kind }) => kind === wanted).map(({ name }) => ids.get(name)!);
    const dependents = protectedDependents(this.writing, {
      projectId,
      flagIds: idsOf("flag", this.flagIds),
      cohortIds: idsOf("cohort", this.cohortIds),
    });
    const changed = [...flags.map(({ name }) => name), ...dependents.map(({ key }) => key)];
    return [...new Set(changed)].filter((key) => wereProtected.has(key)).sort();
  }

  /** The project as a document, payloads in clear, so that a changed secret counts as a change. */
  private present(): ExchangeDocument {
    const { projectId, groupTypes } = this.request;
    return writeDocument(readContent(this.t, { projectId, groupTypes, payloads: this.writing.payloads }));
  }

  private noteIds(): void {
    const { projectId, groupTypes } = this.request;
    const { cohorts, flags } = readContent(this.t, { projectId, groupTypes });
    const needed = new Set(this.request.document.cohorts.map(({ name }) => name));
    for (const { id, name } of cohorts) {
      if (this.cohortIds.has(name) && needed.has(name)) {
        throw new DocumentUnusable(
          `The project has two cohorts "${name}"; rename one, because cohorts are matched by name.`,
        );
      }
      this.cohortIds.set(name, id);
    }
    for (const { id, key } of flags) this.flagIds.set(key, id);
  }

  /** The document with the numbers that group types have in this project. */
  private withGroupTypes(): ExchangeDocument {
    const { document, groupTypes } = this.request;
    const present = new Map(groupTypes.map(({ index, name }) => [index, name]));
    const indexes = new Map<number, number>();
    for (const index of groupTypeIndexesIn(document.flags as unknown as Json)) {
      const name = document.group_types[String(index)];
      if (name === undefined) continue;
      const known = groupTypes.find((type) => type.name === name);
      if (known === undefined && present.has(index)) {
        throw new DocumentUnusable(
          `The file uses the group type "${name}", which the project does not have; its number ${index} is "${present.get(index)}" here.`,
        );
      }
      if (known === undefined) {
        this.remarks.push(`The project has no group type "${name}" yet; it should become number ${index}.`);
      }
      indexes.set(index, known?.index ?? index);
    }
    const change = (index: number) => indexes.get(index) ?? index;
    return { ...document, flags: mapGroupTypes(document.flags as unknown as Json, change) as FlagItem[] };
  }

  /** Flags after those they depend on; flags that are switched off come last, before those they depend on. */
  private ordered(document: ExchangeDocument, before: ExchangeDocument): FlagItem[] {
    const active = new Set(before.flags.filter((flag) => flag.active === true).map(({ key }) => key));
    const ordered = this.inOrder(document.flags, ({ key }) => key, "flag");
    const isSwitchedOff = (flag: FlagItem) => flag.active === false && active.has(flag.key);
    return [...ordered.filter((flag) => !isSwitchedOff(flag)), ...ordered.filter(isSwitchedOff).reverse()];
  }

  /** A circle is rejected, or found again where the item that closes it is written. */
  private inOrder<Item extends JsonObject>(
    items: readonly Item[],
    nameOf: (item: Item) => string,
    kind: "cohort" | "flag",
  ): Item[] {
    return inOrder(items, nameOf, kind, this.request.switchedOff !== undefined);
  }

  private takeCohort(item: CohortItem): void {
    if (this.request.switchedOff === undefined) {
      this.writeCohort(item);
      return;
    }
    const filters = isJsonObject(item.filters) ? withExactConditions(item.filters) : item.filters;
    const reason =
      unusableCondition(item.filters ?? null) ??
      this.reasonAgainst(() => this.writeCohort(filters === undefined ? item : { ...item, filters }));
    if (reason !== undefined) this.remarks.push(`Not taken over: cohort "${item.name}": ${reason}`);
  }

  private takeFlag(item: FlagItem): void {
    const { switchedOff } = this.request;
    if (switchedOff === undefined) {
      this.writeFlag(item);
      return;
    }
    const obstacles = writeFlagInPart(item, switchedOff.has(item.key), {
      isNew: !this.flagIds.has(item.key),
      hasSecrets: this.hasSecrets(item.key),
      write: (part, isOff) => this.reasonAgainst(() => this.writeSwitched(part, isOff)),
      check: (part) =>
        this.reasonAgainst(() => {
          this.writeFlag(part);
          throw new Unchanged();
        }),
    });
    this.notTaken.push(...obstacles.map((obstacle) => ({ flag: item.key, ...obstacle })));
  }

  private hasSecrets(key: string): boolean {
    const id = this.flagIds.get(key);
    return id !== undefined && findFlag(this.t, this.request.projectId, id)?.hasEncryptedPayloads === true;
  }

  /** Switches the flag off, unless its filters are those of the file: a user has turned it on since. */
  private writeSwitched(item: FlagItem, isOff: boolean): void {
    const id = this.flagIds.get(item.key);
    if (!isOff || id === undefined) {
      this.writeFlag(isOff ? { ...item, active: false } : item);
      return;
    }
    const stored = () => findFlag(this.t, this.request.projectId, id)!;
    const before = stored();
    try {
      this.t.transaction(() => {
        this.writeFlag({ ...item, active: before.active });
        if (!Bun.deepEquals(before.filters, stored().filters, true)) throw new Unchanged();
      });
    } catch (error) {
      if (!(error instanceof Unchanged)) throw error;
      this.writeFlag({ ...item, active: false });
    }
  }

  /** Does a write; if a rule is against it, nothing is changed. @returns the reason */
  private reasonAgainst(write: () => void): string | undefined {
    const [flagIds, cohortIds, remarks] = [
      new Map(this.flagIds),
      new Map(this.cohortIds),
      this.remarks.length,
    ];
    try {
      this.t.transaction(write);
      return undefined;
    } catch (error) {
      if (!(error instanceof AppError) && !(error instanceof Unchanged)) throw error;
      restore(this.flagIds, flagIds);
      restore(this.cohortIds, cohortIds);
      this.remarks.length = remarks;
      return error instanceof AppError ? error.message.replace(/^(?:Flag|Cohort) "[^"]*":? /, "") : undefined;
    }
  }

  private writeCohort(item: CohortItem): void {
    const { projectId, by, now } = this.request;
    const isStatic = item.is_static === true;
    const named: NamedItem = { kind: "cohort", name: item.name };
    const where = titleOf(named);
    const filters = isStatic
      ? { properties: {} }
      : (noting(named, () => withIds(item.filters ?? null, this.ids, where)) as JsonObject);
    const fields = { description: String(item.description ?? ""), isStatic, filters };
    const id = this.cohortIds.get(item.name);
    const { metadata } = this.writing;
    const noteMisfit = this.misfitsOf(where);
    if (id !== undefined) {
      naming(named, () => updateCohort(metadata, { projectId, id, by, noteMisfit }, fields, now));
      return;
    }
    const created = naming(named, () =>
      createCohort(metadata, { projectId, by, fields: { ...fields, name: item.name }, noteMisfit }, now),
    );
    this.cohortIds.set(item.name, created.id);
    if (isStatic)
      this.remarks.push(`${where} is a list of persons; the list is not in the file, so it is empty.`);
  }

  private writeFlag(item: FlagItem): void {
    const { projectId, by, now, toFields } = this.request;
    const named: NamedItem = { kind: "flag", name: item.key };
    const where = titleOf(named);
    const { filters: given, ...members } = item;
    const identified = noting(named, () => withIds(given, this.ids, where)) as JsonObject | null;
    const filters = identified && this.withFlagValues(identified);
    const writing = { ...this.writing, noteMisfit: this.misfitsOf(where) };
    const fields = naming(named, () =>
      toFields({ ...usualOf(item), ...members, ...(filters === null ? {} : { filters }) }),
    );
    const id = this.flagIds.get(item.key);
    if (id === undefined) {
      noting(named, () => refuseHiddenPayloads(item, where));
      const created = naming(named, () =>
        createFlag(writing, {
          ...{ projectId, by, now, createsUsageDashboard: false },
          fields: { ...fields, key: item.key },
        }),
      );
      this.flagIds.set(item.key, created.id);
      return;
    }
    const stored = () => storedFlag(findFlag(this.t, projectId, id)!, this.writing.payloads).fields;
    const old = stored();
    this.unlessUnchanged(() => {
      const cleared = clearing(old.filters as JsonObject);
      const whole = filters === null ? fields : { ...fields, filters: { ...cleared, ...filters } };
      naming(named, () => updateFlag(writing, { projectId, id, by, now, fields: whole, sent: {} }));
      return !Bun.deepEquals(old, stored(), true);
    });
  }

  /** Conditions that match nothing are kept and reported (contract, third round B1). */
  private misfitsOf(where: string): NoteMisfit {
    return (detail) => {
      // Reported by rule.
      if (this.request.switchedOff !== undefined && where.startsWith("Flag")) return;
      const remark = `${where}: a condition matches nothing. ${detail}`;
      if (!this.remarks.includes(remark)) this.remarks.push(remark);
    };
  }

  /** PostHog saved lists and texts where the value of another flag is true, false or one variant. */
  private withFlagValues(filters: JsonObject): JsonObject {
    return mapProperties(filters, "groups", (property) => {
      if (property.type !== "flag") return property;
      const { value: given = null } = property;
      const value = Array.isArray(given) && given.length === 1 ? given[0]! : given;
      const id = wholeNumber(property.key);
      const flag = id === undefined ? undefined : findFlag(this.t, this.request.projectId, id);
      if ((value !== "true" && value !== "false") || (flag && canEvaluateTo(value, flag)))
        return { ...property, value };
      return { ...property, value: value === "true" };
    });
  }

  /** Undoes a write when it changed nothing but the version and the log. */
  private unlessUnchanged(write: () => boolean): void {
    try {
      this.t.transaction(() => {
        if (!write()) throw new Unchanged();
      });
    } catch (error) {
      if (!(error instanceof Unchanged)) throw error;
    }
  }

  private readonly ids = {
    cohort: (name: string) => this.cohortIds.get(name),
    flag: (key: string) => this.flagIds.get(key),
  };
}

function restore<Name, Id>(ids: Map<Name, Id>, before: ReadonlyMap<Name, Id>): void {
  for (const name of ids.keys()) if (!before.has(name)) ids.delete(name);
}

/** Members of stored filters that the document does not have are cleared by null. */
function clearing(filters: JsonObject | undefined): JsonObject {
  return Object.fromEntries(Object.keys(filters ?? {}).map((name) => [name, null]));
}

const titleOf = ({ kind, name }: NamedItem) => `${kind === "flag" ? "Flag" : "Cohort"} "${name}"`;

/** What errors of imports are about. */
const refused = new WeakMap<object, NamedItem>();

/** The item of the document that an import failed at; undefined when no single one is to blame. */
export function refusedItem(error: unknown): NamedItem | undefined {
  return typeof error === "object" && error !== null ? refused.get(error) : undefined;
}

/** Remembers which item an error is about. */
function noting<Result>(item: NamedItem, write: () => Result): Result {
  try {
    return write();
  } catch (error) {
    if (error instanceof Error) refused.set(error, item);
    throw error;
  }
}

/** Says in an error of the rules which item it is about, too. */
function naming<Result>(item: NamedItem, write: () => Result): Result {
  return noting(item, () => {
    try {
      return write();
    } catch (error) {
      if (error instanceof Error) error.message = `${titleOf(item)}: ${error.message}`;
      throw error;
    }
  });
}

/** A flag that is there keeps its secret payloads; a new one would get the placeholder. */
function refuseHiddenPayloads({ filters }: FlagItem, where: string): void {
  if (!isJsonObject(filters?.payloads) || !Object.values(filters.payloads).includes(redactedPayload)) return;
  throw new DocumentUnusable(
    `${where} has a secret payload that is not in the file; export it with --with-secrets.`,
  );
}

/** Payloads that are secret are not shown in a difference either. */
function withoutSecrets(...documents: ExchangeDocument[]): (difference: ItemDifference) => ItemDifference {
  const secret = new Set(
    documents.flatMap(({ flags }) =>
      flags.filter((flag) => flag.has_encrypted_payloads === true).map(({ key }) => key),
    ),
  );
  return (difference) => {
    if (difference.kind !== "flag" || !secret.has(difference.name)) return difference;
    const members = difference.members.map((member) =>
      member.path.startsWith("filters.payloads")
        ? { ...member, before: redactedPayload, after: redactedPayload }
        : member,
    );
    return { ...difference, members };
  };
}
