/**
 * Imports a document of flags with their experiments, surveys and the like: one change, with the rules and the activity
 * log of the API. Items that are not in the document stay. Repeating an import changes nothing.
 */

import type { MetadataTx } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { memberDifferences } from "../flags/import-export/difference.ts";
import type { FlagDocument } from "../flags/import-export/document.ts";
import { type ImportResult, importDocument } from "../flags/import-export/import-document.ts";
import type { ImportRequest } from "../flags/import-export/item-writer.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { AppError } from "../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import {
  type ObjectDocument,
  type ObjectKind,
  type ObjectMember,
  objectKinds,
} from "../operations/flag-document.ts";
import { ObjectWriter } from "./object-writer.ts";
import { getTitle } from "./read-objects.ts";
import { StoredObjects } from "./stored-objects.ts";

/** One different object. */
export interface ObjectDifference {
  kind: ObjectKind;
  name: string;
  change: "created" | "updated";
  members: ReturnType<typeof memberDifferences>;
}

export interface ProjectImport extends Omit<ImportResult, "differences"> {
  differences: (ImportResult["differences"][number] | ObjectDifference)[];
}

/** Rolls back the transaction of a dry run. */
class RolledBackError extends Error {
  constructor(readonly result: ProjectImport) {
    super("A dry run changes nothing.");
  }
}

/** Rolls back a write without effect. */
class UnchangedError extends Error {}

/**
 * Imports a document and its objects. With `switchedOff` each is imported independently.
 *
 * @throws as `importDocument`; nothing was changed.
 */
export function importProject(
  deps: FlagWriteDeps,
  request: ImportRequest,
  objects: ObjectDocument,
): ProjectImport {
  const { isDryRun, isConfirmed } = request;
  try {
    return deps.metadata.change((t) => {
      const joined = joining(deps, t);
      const importing = new ObjectImport(joined, request, t);
      importing.take("holdouts", objects);
      const document = withHoldouts(request.document, importing.writer.holdoutIds);
      const confirmed = isConfirmed === true || isDryRun;
      const flags = importDocument(joined, { ...request, document, isDryRun: false, isConfirmed: confirmed });
      for (const { member } of objectKinds) if (member !== "holdouts") importing.take(member, objects);
      const result = {
        ...flags,
        differences: [...flags.differences, ...importing.differences],
        remarks: [...flags.remarks, ...importing.remarks],
        isNothingImported: flags.isNothingImported && importing.isNothingImported,
      };
      if (isDryRun) throw new RolledBackError(result);
      return result;
    });
  } catch (error) {
    if (error instanceof RolledBackError) return error.result;
    throw error;
  }
}

/** Write functions open their own transactions; here they all join one. */
function joining(deps: FlagWriteDeps, t: MetadataTx): FlagWriteDeps {
  const metadata = Object.create(deps.metadata, {
    change: { value: (run: (t: MetadataTx) => unknown) => run(t) },
  }) as Metadata;
  return { ...deps, metadata };
}

/** The flags with the IDs that the document's holdouts have in the project. */
function withHoldouts(document: FlagDocument, ids: ReadonlyMap<number, number>): FlagDocument {
  if (ids.size === 0) return document;
  const flags = document.flags.map((flag) => {
    const holdout = flag.filters?.holdout;
    const id = isJsonObject(holdout) ? ids.get(Number(holdout.id)) : undefined;
    return id === undefined
      ? flag
      : { ...flag, filters: { ...flag.filters, holdout: { ...(holdout as JsonObject), id } } };
  });
  return { ...document, flags };
}

class ObjectImport {
  readonly differences: ObjectDifference[] = [];
  readonly remarks: string[] = [];
  readonly writer: ObjectWriter;
  private readonly stored: StoredObjects;
  isNothingImported = true;

  constructor(
    deps: FlagWriteDeps,
    private readonly request: ImportRequest,
    private readonly t: MetadataTx,
  ) {
    this.stored = new StoredObjects(t, request.projectId);
    this.writer = new ObjectWriter(deps, request, { t, stored: this.stored, remarks: this.remarks });
  }

  take(member: ObjectMember, objects: ObjectDocument): void {
    const { kind } = objectKinds.find((objectKind) => objectKind.member === member)!;
    for (const item of objects[member]) this.importItem(member, kind, item);
  }

  private importItem(member: ObjectMember, kind: ObjectKind, item: JsonObject): void {
    const name = String(item.name);
    const before = this.stored.find(member, item)?.item;
    const ids = new Map(this.writer.holdoutIds);
    try {
      const written = this.t.transaction(() => {
        const written = this.stored.read(member, this.writer.write(member, item));
        const members = before === undefined ? [] : memberDifferences(before, written?.item, "");
        if (before !== undefined && members.length === 0) throw new UnchangedError();
        this.differences.push({ kind, name, change: before === undefined ? "created" : "updated", members });
        return written;
      });
      if (written !== undefined) this.stored.accept(member, written);
      this.isNothingImported = false;
    } catch (error) {
      if (error instanceof UnchangedError) this.isNothingImported = false;
      else if (error instanceof AppError && this.request.switchedOff !== undefined) {
        this.remarks.push(`Not taken over: ${getTitle(kind, name)}: ${error.message}`);
        this.writer.holdoutIds.clear();
        for (const [from, to] of ids) this.writer.holdoutIds.set(from, to);
      } else {
        if (error instanceof AppError) error.message = `${getTitle(kind, name)}: ${error.message}`;
        throw error;
      }
    }
  }
}
