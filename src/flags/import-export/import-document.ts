/**
 * Imports a document of flags and cohorts into a project: creates missing items, updates different ones.
 *
 * Atomic: one transaction. Items that are not in the document stay. Repeating an import changes nothing. Every write
 * has the rules and the activity log of the API.
 */

import type { MetadataTx } from "../../accounts/db.ts";
import type { Json, JsonObject } from "../../lib/json/value.ts";
import { ApprovalRequiredError } from "../rules/errors.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import { isHarmless, needsApproval, protectedDependents } from "../store/protected-flags.ts";
import { differencesBetween, type ItemDifference, withoutSecrets } from "./difference.ts";
import {
  type FlagDocument,
  type FlagItem,
  groupTypeIndexesIn,
  mapGroupTypes,
  writeDocument,
} from "./document.ts";
import { IndependentItems } from "./independent-items.ts";
import { type ImportRequest, ItemWriter } from "./item-writer.ts";
import { readContent } from "./project-content.ts";
import { InvalidDocumentError } from "./read-document.ts";
import { inOrder } from "./references.ts";

export interface ImportResult {
  /** Changes, or with a dry run the changes to make. Secret payloads are hidden. */
  differences: ItemDifference[];
  /** Messages for the operator. */
  remarks: string[];
  /** Parts that were not imported; always empty when the document is rejected instead. */
  omitted: { flag: string; part: string; reason: string }[];
  /** Whether not a single item of the document was imported; it may be empty. */
  isNothingImported: boolean;
  /** Keys of the flags that are on in the source, and off here because of such parts. */
  turnedOff: string[];
  /** Keys of the protected flags that are changed, directly or through their dependencies. */
  needsApproval: string[];
}

/**
 * Imports a document.
 *
 * @throws {InvalidDocumentError} something in it refers to a missing item, or is invalid.
 * @throws {InvalidFieldError}     a rule for flags or cohorts is broken.
 * @throws {ApprovalRequiredError} protected flags would change, and the request is not confirmed; nothing was changed
 * in each case.
 */
export function importDocument(writing: FlagWriteDeps, request: ImportRequest): ImportResult {
  try {
    return writing.metadata.change((t) => {
      const result = new Import(writing, request, t).run();
      if (request.isDryRun) throw new RolledBackError(result);
      if (result.needsApproval.length > 0 && request.isConfirmed !== true) {
        throw new ApprovalRequiredError(result.needsApproval);
      }
      return result;
    });
  } catch (error) {
    if (error instanceof RolledBackError) return error.result;
    throw error;
  }
}

/** Rolls back the transaction of a dry run. */
class RolledBackError extends Error {
  constructor(readonly result: ImportResult) {
    super("A dry run changes nothing.");
  }
}

class Import {
  private readonly writer: ItemWriter;

  constructor(
    private readonly deps: FlagWriteDeps,
    private readonly request: ImportRequest,
    private readonly t: MetadataTx,
  ) {
    this.writer = new ItemWriter(deps, request, t);
  }

  run(): ImportResult {
    const { remarks } = this.writer;
    const { switchedOff, hasMembers = () => false } = this.request;
    const before = this.present();
    const document = this.withGroupTypes();
    const cohorts = this.inOrder(document.cohorts, ({ name }) => name, "cohort");
    const flags = this.ordered(document, before);
    const items =
      switchedOff && new IndependentItems(this.writer, { switchedOff, hasMembers, document, before });
    for (const cohort of cohorts) (items ?? this.writer).writeCohort(cohort);
    for (const flag of flags) (items ?? this.writer).writeFlag(flag);
    items?.finish();
    const differences = differencesBetween(before, this.present());
    return {
      differences: differences.map(withoutSecrets(before, document)),
      remarks,
      omitted: items?.omitted ?? [],
      turnedOff: items?.turnedOff ?? [],
      isNothingImported: items?.isNothingImported ?? false,
      needsApproval: this.getProtected(before, differences),
    };
  }

  /**
   * The protected flags that the import changes. Dependencies are read after the import: where a protected flag no
   * longer depends on a changed item, a flag between the two is changed itself.
   */
  private getProtected(before: FlagDocument, differences: readonly ItemDifference[]): string[] {
    const { projectId } = this.request;
    const wereProtected = new Set(
      before.flags
        .filter(({ tags }) => needsApproval(this.deps, { projectId, tags: (tags ?? []) as string[] }))
        .map(({ key }) => key),
    );
    if (wereProtected.size === 0) return [];
    const updated = differences.filter(({ change }) => change === "updated");
    const flags = updated.filter(({ kind }) => kind === "flag");
    const effective = updated.filter(
      ({ members }) => !members.every(({ path }) => isHarmless(path.split(/[.[]/)[0]!)),
    );
    const getIds = (wanted: ItemDifference["kind"], ids: ReadonlyMap<string, number>) =>
      effective.filter(({ kind }) => kind === wanted).map(({ name }) => ids.get(name)!);
    const dependents = protectedDependents(this.deps, {
      projectId,
      flagIds: getIds("flag", this.writer.flagIds),
      cohortIds: getIds("cohort", this.writer.cohortIds),
    });
    const changed = [...flags.map(({ name }) => name), ...dependents.map(({ key }) => key)];
    return [...new Set(changed)].filter((key) => wereProtected.has(key)).sort();
  }

  /** The project as a document, with decrypted payloads, so that a changed secret counts as a change. */
  private present(): FlagDocument {
    const { projectId, groupTypes } = this.request;
    return writeDocument(readContent(this.t, { projectId, groupTypes, payloads: this.deps.payloads }));
  }

  /** The document with the group type indexes of this project. */
  private withGroupTypes(): FlagDocument {
    const { document, groupTypes } = this.request;
    const present = new Map(groupTypes.map(({ index, name }) => [index, name]));
    const indexes = new Map<number, number>();
    for (const index of groupTypeIndexesIn(document.flags as unknown as Json)) {
      const name = document.group_types[String(index)];
      if (name === undefined) continue;
      const known = groupTypes.find((type) => type.name === name);
      if (known === undefined && present.has(index)) {
        throw new InvalidDocumentError(
          `The file uses the group type "${name}", which the project does not have; its index ${index} is "${present.get(index)}" here.`,
        );
      }
      if (known === undefined) {
        this.writer.remarks.push(`The project has no group type "${name}"; expected it with index ${index}.`);
      }
      indexes.set(index, known?.index ?? index);
    }
    const change = (index: number) => indexes.get(index) ?? index;
    return { ...document, flags: mapGroupTypes(document.flags as unknown as Json, change) as FlagItem[] };
  }

  /** Flags after their dependencies; flags that are switched off come last, before their dependencies. */
  private ordered(document: FlagDocument, before: FlagDocument): FlagItem[] {
    const active = new Set(before.flags.filter((flag) => flag.active === true).map(({ key }) => key));
    const ordered = this.inOrder(document.flags, ({ key }) => key, "flag");
    const isSwitchedOff = (flag: FlagItem) => flag.active === false && active.has(flag.key);
    return [...ordered.filter((flag) => !isSwitchedOff(flag)), ...ordered.filter(isSwitchedOff).reverse()];
  }

  /** A cycle is rejected here, or when the item that closes it is written. */
  private inOrder<Item extends JsonObject>(
    items: readonly Item[],
    getName: (item: Item) => string,
    kind: "cohort" | "flag",
  ): Item[] {
    return inOrder(items, getName, kind, this.request.switchedOff !== undefined);
  }
}
