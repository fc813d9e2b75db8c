/** Reads the parts of a project for its document. */

import type { Reading } from "../../accounts/db.ts";
import { deletedCohorts, readCohorts } from "../../cohorts/cohorts.ts";
import type { ExportColumn, ExportRow, ExportValue } from "../../events/export/columns.ts";
import type { ExportRequest } from "../../events/export/page.ts";
import { AppError } from "../../lib/errors.ts";
import { isJsonObject, type Json } from "../../lib/json/value.ts";
import { exportedFields, type Flag, storedFields } from "../fields.ts";
import { redactedPayload, withHiddenPayloads } from "../rules/types.ts";
import { readFlags } from "../store/flag.ts";
import type { PayloadCipher } from "../store/flag-writes.ts";
import type { ProjectContent, StoredFlag } from "./document.ts";

export interface ContentOptions {
  projectId: number;
  groupTypes: readonly { index: number; name: string }[];
  /** Decrypts secret payloads; absent: placeholders replace them. */
  payloads?: PayloadCipher;
}

/** The flags and cohorts of a project that are not deleted. */
export function readContent(
  db: Reading,
  { projectId, groupTypes, payloads }: ContentOptions,
): ProjectContent {
  return {
    flags: readFlags(db, projectId).map((flag) => storedFlag(flag, payloads)),
    cohorts: readCohorts(db, projectId).map(({ id, name, description, isStatic, filters }) => ({
      id,
      name,
      description,
      isStatic,
      filters,
    })),
    deletedCohorts: deletedCohorts(db, projectId),
    groupTypes,
  };
}

/** An encrypted payload cannot be decrypted, so a file would contain a placeholder in its place. */
class UnreadablePayloadError extends AppError {
  readonly code = "payload_unreadable";
  override readonly hint = "Send the payload again to replace it, or export without --with-secrets.";
}

/**
 * Checks that content read with a cipher has every encrypted payload decrypted.
 *
 * @throws {UnreadablePayloadError} names the first flag with one that is not (contract: management-api 4.5).
 */
export function assertPayloadsReadable({ flags }: ProjectContent): void {
  const unreadable = flags.find(({ fields: { filters } }) => {
    const payloads = isJsonObject(filters) && isJsonObject(filters.payloads) ? filters.payloads : {};
    return Object.values(payloads).includes(redactedPayload);
  });
  if (unreadable === undefined) return;
  throw new UnreadablePayloadError(
    `The encrypted payload of flag "${unreadable.key}" cannot be decrypted (payload_unreadable); nothing was exported.`,
  );
}

/** A flag with the names of the API. */
export function storedFlag(flag: Flag, payloads?: PayloadCipher): StoredFlag {
  const all = { ...storedFields(flag), filters: payloads ? payloads.open(flag) : withHiddenPayloads(flag) };
  const fields = exportedFields.map(({ name }) => [name, all[name as keyof typeof all]]);
  return { id: flag.id, key: flag.key, fields: Object.fromEntries(fields) };
}

export const flagColumns: readonly ExportColumn[] = [
  { name: "id", kind: "integer" },
  ...exportedFields,
  { name: "created_at", kind: "instant" },
];

/** The flags that are not deleted, with the names of the API. */
export function flagRows(
  db: Reading,
  { projectId, fromMicros = -Infinity, toMicros = Infinity }: Omit<ExportRequest, "subject" | "after">,
): ExportRow[] {
  return readFlags(db, projectId)
    .filter(({ createdAt }) => {
      const micros = createdAt.getTime() * 1_000;
      return micros >= fromMicros && micros < toMicros;
    })
    .map((flag) => {
      const { id, key, fields } = storedFlag(flag);
      const values: Record<string, Json> = { id, key, ...fields, created_at: flag.createdAt.toISOString() };
      return flagColumns.map(({ name, kind }) => exportValue(kind, values[name] ?? null));
    });
}

function exportValue(kind: string, value: Json): ExportValue {
  const isJson = kind === "json" || kind === "list";
  return isJson && value !== null ? JSON.stringify(value) : (value as ExportValue);
}
