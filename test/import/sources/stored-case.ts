/** What a stored case of a source is. */

import type { JsonObject } from "../../../src/lib/json/value.ts";

export type FileForm = "ndjson" | "csv" | "tsv" | "parquet";

export interface StoredCase {
  /** Name of the file, if the source's mapping depends on it. */
  table?: string;
  forms: readonly FileForm[];
  records: readonly JsonObject[];
  /** The events in order, with a part of their properties; undefined for a name that must be absent. */
  events: readonly {
    event: string;
    distinct_id: string;
    timestamp?: string;
    properties: Record<string, unknown>;
    elements_chain?: string;
  }[];
  /** A part of the person properties, by distinct id. */
  persons?: Record<string, Record<string, unknown>>;
  summary?: Record<string, unknown>;
}

/** All forms of files. */
export const all = ["ndjson", "csv", "tsv", "parquet"] as const;
/** The time of most records, as sources write it and as it is stored. */
export const at = "2024-05-01 10:00:00";
export const stored = "2024-05-01T10:00:00.000000Z";
