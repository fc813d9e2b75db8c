/** The columns of each kind of export, and the serialization of values as JSON lines. */

import { type EventColumnName, eventColumns, exportedColumns } from "../columns.ts";

export const exportSubjects = ["events", "persons", "groups"] as const;
export type ExportSubject = (typeof exportSubjects)[number];
export const exportFormats = ["parquet", "ndjson", "csv"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** JSON source for `json` and `list`; ISO 8601 in UTC with microseconds for `dateTime`. */
export type ExportValue = string | number | boolean | null;
/** In column order. */
export type ExportRow = readonly ExportValue[];

export interface ExportColumn {
  name: string;
  /** `list` is a list of strings. */
  kind: "uuid" | "text" | "integer" | "number" | "boolean" | "instant" | "json" | "list";
}

const column = (name: string, kind: ExportColumn["kind"]): ExportColumn => ({ name, kind });

function getKind(name: EventColumnName): ExportColumn["kind"] {
  const { kind } = eventColumns[name];
  return kind === "bigint" ? "integer" : kind;
}

export const exportColumns: Record<ExportSubject, readonly ExportColumn[]> = {
  events: [...exportedColumns.map((name) => column(name, getKind(name))), column("person_id", "uuid")],
  persons: [
    column("id", "uuid"),
    column("created_at", "instant"),
    column("properties", "json"),
    column("distinct_ids", "list"),
  ],
  groups: [
    column("type", "text"),
    column("type_index", "integer"),
    column("key", "text"),
    column("created_at", "instant"),
    column("properties", "json"),
  ],
};

/** The columns of a view of `query`, which its export shares, for documentation. */
export const columnsDescription = (view: ExportSubject): string =>
  exportColumns[view].map(({ name }) => name).join(", ");

/** A row as a JSON object on one line, without its line break. */
export function jsonLine(columns: readonly ExportColumn[], row: ExportRow): string {
  let line = "{";
  for (let index = 0; index < columns.length; index++) {
    const { name, kind } = columns[index]!;
    const value = row[index]!;
    const isJson = value !== null && (kind === "json" || kind === "list");
    line += `${index === 0 ? "" : ","}"${name}":${isJson ? value : JSON.stringify(value)}`;
  }
  return `${line}}`;
}

/** For the help of what writes CSV (contract, third round A7). */
export const csvCaution =
  "CSV is exact: an import reads the same values. A spreadsheet runs cells that start with = + - or @; CSV downloads of the console " +
  "prefix those with '.";
