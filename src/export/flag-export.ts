/** Writes the flags of a project into a file; secret payloads are hidden. */

import { rm, writeFile } from "node:fs/promises";
import { quoted } from "../events/sql-text.ts";
import { storedFlag } from "../flags/exchange/project-content.ts";
import { readFlags } from "../metadata/flag.ts";
import type { Reading } from "../metadata/metadata.ts";
import { copyOptions, type ExportRequest, listColumn } from "./export-file.ts";

/** Columns of tables; what has no simple type is JSON text. */
const columns = {
  ...{ id: "BIGINT", key: "VARCHAR", name: "VARCHAR", filters: "VARCHAR", active: "BOOLEAN" },
  ...{ ensure_experience_continuity: "BOOLEAN", is_remote_configuration: "BOOLEAN" },
  ...{ has_encrypted_payloads: "BOOLEAN", evaluation_runtime: "VARCHAR", bucketing_identifier: "VARCHAR" },
  ...{ tags: "VARCHAR[]", evaluation_tags: "VARCHAR[]", experiment_set: "VARCHAR", surveys: "VARCHAR" },
  ...{
    features: "VARCHAR",
    rollback_conditions: "VARCHAR",
    creation_context: "VARCHAR",
    created_at: "VARCHAR",
  },
};

/** The flags as lines of JSON under the names of the API. */
export function flagLines(db: Reading, request: Omit<ExportRequest, "subject">): string[] {
  const { projectId, fromMicros = -Infinity, toMicros = Infinity } = request;
  return readFlags(db, projectId)
    .filter(({ createdAt }) => {
      const micros = createdAt.getTime() * 1_000;
      return micros >= fromMicros && micros < toMicros;
    })
    .map((flag) => {
      const { id, key, fields } = storedFlag(flag);
      return JSON.stringify({ id, key, ...fields, created_at: flag.createdAt.toISOString() });
    });
}

/** Writes such lines as a file; tables are made by DuckDB, the caller has said where its library is. */
export async function writeFlags(
  lines: readonly string[],
  format: ExportRequest["format"],
  path: string,
): Promise<void> {
  const text = lines.map((line) => `${line}\n`).join("");
  if (format === "ndjson") return await writeFile(path, text, { mode: 0o600 });
  const source = `${path}.source`;
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  try {
    await writeFile(source, text, { mode: 0o600 });
    const types = Object.entries(columns).map(([name, type]) => `${quoted(name)}: '${type}'`);
    const selected = Object.entries(columns).map(([name, type]) => {
      if (type.endsWith("[]")) return listColumn(name, format);
      return name === "created_at" && format === "parquet" ? "created_at::TIMESTAMPTZ AS created_at" : name;
    });
    await connection.run(
      `COPY (SELECT ${selected.join(", ")} FROM read_ndjson(${quoted(source)}, maximum_object_size = 67108864,
        columns = {${types.join(", ")}})) TO ${quoted(path)} (${copyOptions[format]})`,
    );
  } finally {
    connection.closeSync();
    instance.closeSync();
    await rm(source, { force: true });
  }
}
