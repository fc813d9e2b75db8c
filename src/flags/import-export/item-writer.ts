/**
 * Writes single items of a document, with the rules and the activity log of the API. All writes join the transaction of
 * the import.
 */

import type { Author } from "../../accounts/activity.ts";
import type { MetadataTx } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { createCohort, updateCohort } from "../../cohorts/cohorts.ts";
import { AppError } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import type { RecordMisfit } from "../../lib/values/operators.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { canEvaluateTo } from "../rules/dependency-rules.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import { redactedPayload } from "../rules/types.ts";
import { findFlag } from "../store/flag.ts";
import { createFlag, type FlagWriteDeps, updateFlag } from "../store/flag-writes.ts";
import { encryptionWarning, isEncryptionTurnedOn } from "../store/payload-history.ts";
import { type CohortItem, type FlagDocument, type FlagItem, getDefault } from "./document.ts";
import { readContent, storedFlag } from "./project-content.ts";
import { InvalidDocumentError } from "./read-document.ts";
import { type NamedItem, withIds } from "./references.ts";

export interface ImportRequest {
  by: Author;
  projectId: number;
  document: FlagDocument;
  /** The current group types of the project. */
  groupTypes: readonly { index: number; name: string }[];
  /** Validates the members of a flag like the API. @throws {InvalidFieldError} */
  toFields: (item: JsonObject) => Partial<FlagFields>;
  /** Computes the result without changing anything. */
  isDryRun: boolean;
  /** Also applies changes that need approval. */
  isConfirmed?: boolean;
  /**
   * Imports each item independently: invalid parts are omitted and reported, and their flag is switched off, instead of
   * rejecting the document. Present: the flags with losses when the file was read.
   */
  switchedOff?: ReadonlySet<string>;
  /** Whether a static cohort of the project has members; absent: none has. */
  hasMembers?: (cohortId: number) => boolean;
  now: Date;
}

/** Rolls back a write without effect. */
class UnchangedError extends Error {}

export class ItemWriter {
  readonly cohortIds = new Map<string, number>();
  readonly flagIds = new Map<string, number>();
  /** Messages for the operator. */
  readonly remarks: string[] = [];
  readonly writing: FlagWriteDeps;

  constructor(
    writing: FlagWriteDeps,
    private readonly request: ImportRequest,
    private readonly t: MetadataTx,
  ) {
    // Write functions open their own transactions; here they all join this one.
    const metadata = Object.create(writing.metadata, {
      change: { value: (run: (t: MetadataTx) => unknown) => run(t) },
    }) as Metadata;
    this.writing = { ...writing, metadata };
    this.recordIds();
  }

  private recordIds(): void {
    const { projectId, groupTypes } = this.request;
    const { cohorts, flags } = readContent(this.t, { projectId, groupTypes });
    const needed = new Set(this.request.document.cohorts.map(({ name }) => name));
    for (const { id, name } of cohorts) {
      if (this.cohortIds.has(name) && needed.has(name)) {
        throw new InvalidDocumentError(
          `The project has two cohorts "${name}"; rename one, because cohorts are matched by name.`,
        );
      }
      this.cohortIds.set(name, id);
    }
    for (const { id, key } of flags) this.flagIds.set(key, id);
  }

  /** The project's flag with a key. */
  stored(key: string): Flag | undefined {
    const id = this.flagIds.get(key);
    return id === undefined ? undefined : findFlag(this.t, this.request.projectId, id);
  }

  /** Tries a write; nothing is changed if a rule rejects it. @returns the reason */
  reasonAgainst(write: () => void): string | undefined {
    const flagIds = new Map(this.flagIds);
    const cohortIds = new Map(this.cohortIds);
    const remarks = this.remarks.length;
    try {
      this.t.transaction(write);
      return undefined;
    } catch (error) {
      const found = getReason(error);
      if (found === undefined && !(error instanceof UnchangedError)) throw error;
      restore(this.flagIds, flagIds);
      restore(this.cohortIds, cohortIds);
      this.remarks.length = remarks;
      return found;
    }
  }

  /** Tries a write without ever changing anything. @returns the reason */
  reasonAgainstTrying(write: () => void): string | undefined {
    return this.reasonAgainst(() => {
      write();
      throw new UnchangedError();
    });
  }

  writeCohort(item: CohortItem): void {
    const { projectId, by, now } = this.request;
    const isStatic = item.is_static === true;
    const named: NamedItem = { kind: "cohort", name: item.name };
    const where = getTitle(named);
    const filters = isStatic
      ? { properties: {} }
      : (withIds(item.filters ?? null, this.ids, where) as JsonObject);
    const fields = { description: String(item.description ?? ""), isStatic, filters };
    const id = this.cohortIds.get(item.name);
    const { metadata } = this.writing;
    const recordMisfit = this.misfitRecorder(where);
    if (id !== undefined) {
      naming(named, () => updateCohort(metadata, { projectId, id, by, recordMisfit }, fields, now));
      return;
    }
    const created = naming(named, () =>
      createCohort(metadata, { projectId, by, fields: { ...fields, name: item.name }, recordMisfit }, now),
    );
    this.cohortIds.set(item.name, created.id);
    if (isStatic)
      this.remarks.push(`${where} is a static cohort; its members are not in the file, so it is empty.`);
  }

  writeFlag(item: FlagItem): void {
    const { projectId, by, now, toFields } = this.request;
    const named: NamedItem = { kind: "flag", name: item.key };
    const where = getTitle(named);
    const { filters: sent, ...members } = item;
    const identified = withIds(sent, this.ids, where) as JsonObject | null;
    const filters = identified && this.withFlagValues(identified);
    const writing = { ...this.writing, recordMisfit: this.misfitRecorder(where) };
    const fields = naming(named, () =>
      toFields({ ...getDefault(item), ...members, ...(filters === null ? {} : { filters }) }),
    );
    const id = this.flagIds.get(item.key);
    if (id === undefined) {
      rejectHiddenPayloads(item, where);
      const created = naming(named, () =>
        createFlag(writing, {
          projectId,
          by,
          now,
          createsUsageDashboard: false,
          fields: { ...fields, key: item.key },
        }),
      );
      this.flagIds.set(item.key, created.id);
      return;
    }
    const stored = () => storedFlag(this.stored(item.key)!, this.writing.payloads).fields;
    const before = this.stored(item.key)!;
    const old = stored();
    this.unlessUnchanged(() => {
      const cleared = clearing(old.filters as JsonObject);
      const whole = filters === null ? fields : { ...fields, filters: { ...cleared, ...filters } };
      const after = naming(named, () =>
        updateFlag(writing, { projectId, id, by, now, fields: whole, sent: {} }),
      );
      if (isEncryptionTurnedOn(before, after)) this.remarks.push(`${where}: ${encryptionWarning}`);
      return !Bun.deepEquals(old, stored(), true);
    });
  }

  /** Conditions that match nothing are kept and reported (contract, third round B1). */
  private misfitRecorder(where: string): RecordMisfit {
    return (detail) => {
      // Reported per rule.
      if (this.request.switchedOff !== undefined && where.startsWith("Flag")) return;
      const remark = `${where}: a condition matches nothing. ${detail}`;
      if (!this.remarks.includes(remark)) this.remarks.push(remark);
    };
  }

  /** PostHog saved lists and strings where the value of another flag is true, false or one variant. */
  private withFlagValues(filters: JsonObject): JsonObject {
    return mapProperties(filters, "groups", (property) => {
      if (property.type !== "flag") return property;
      const { value: sent = null } = property;
      const value = Array.isArray(sent) && sent.length === 1 ? sent[0]! : sent;
      const id = wholeNumber(property.key);
      const flag = id === undefined ? undefined : findFlag(this.t, this.request.projectId, id);
      if ((value !== "true" && value !== "false") || (flag && canEvaluateTo(value, flag)))
        return { ...property, value };
      return { ...property, value: value === "true" };
    });
  }

  /** Rolls back a write that changed only the version and the log. */
  private unlessUnchanged(write: () => boolean): void {
    try {
      this.t.transaction(() => {
        if (!write()) throw new UnchangedError();
      });
    } catch (error) {
      if (!(error instanceof UnchangedError)) throw error;
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

/** Null for members of stored filters that are not in the document, which clears them. */
function clearing(filters: JsonObject | undefined): JsonObject {
  return Object.fromEntries(Object.keys(filters ?? {}).map((name) => [name, null]));
}

/** An existing flag keeps its secret payloads; a new one would get the placeholder. */
function rejectHiddenPayloads({ filters }: FlagItem, where: string): void {
  if (!isJsonObject(filters?.payloads) || !Object.values(filters.payloads).includes(redactedPayload)) return;
  throw new InvalidDocumentError(
    `${where} has a secret payload that is not in the file; export it with --with-secrets.`,
  );
}

/** An item in messages. */
const getTitle = ({ kind, name }: NamedItem) => `${kind === "flag" ? "Flag" : "Cohort"} "${name}"`;

/** Adds the item to a rule's error message. */
function naming<Result>(item: NamedItem, write: () => Result): Result {
  try {
    return write();
  } catch (error) {
    if (error instanceof Error) error.message = `${getTitle(item)}: ${error.message}`;
    throw error;
  }
}

/** The message of an error about one item, without the item; undefined for a defect. */
function getReason(error: unknown): string | undefined {
  return error instanceof AppError ? error.message.replace(/^(?:Flag|Cohort) "[^"]*":? /, "") : undefined;
}
