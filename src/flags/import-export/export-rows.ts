/** The flags of a project as rows of an export; secret payloads are hidden. */

import type { Reading } from "../../accounts/db.ts";
import type { ExportColumn, ExportRow, ExportValue } from "../../events/export/columns.ts";
import type { ExportRequest } from "../../events/export/page.ts";
import type { Json } from "../../lib/json/value.ts";
import { exportedFields } from "../fields.ts";
import { readFlags } from "../store/flag.ts";
import { storedFlag } from "./project-content.ts";

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
