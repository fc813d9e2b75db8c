/**
 * `make bench-disk-space`: what events and their people take on the disk, beside the same events in a Parquet file.
 *
 * Events like people's come in over HTTP, the server rests and is stopped. The Parquet file is DuckDB's own, of the columns that
 * an event has and packed with zstd; it holds no people.
 */

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { paths } from "../../src/paths.ts";
import { flagkeep, ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { fill } from "./fill.ts";

const events = Number(process.env.EVENTS ?? 1_000_000);

await using server = await ServerProcess.start();
const { dataDir } = server;
await fill(server, events);
const segments = () => readdirSync(join(paths(dataDir).journal, "realtime")).length;
await until(() => segments() <= 1, "the journal is in the archive", 120_000);
const rows = () =>
  readdirSync(join(paths(dataDir).archive, "realtime")).filter((name) => name.includes(".ndjson.")).length;
await until(() => rows() <= 1, "the archive is arranged by columns", 600_000);
await server.stop();

const { stdout } = await flagkeep(["status", "--data-dir", dataDir, "--json"]);
const { disk } = JSON.parse(stdout) as { disk: Record<string, number> };
const parquet = await parquetBytes();
const { events_bytes: store = 0, people_bytes: people = 0, library_bytes: library = 0 } = disk;
const { metadata_bytes = 0, journal_bytes = 0, quarantine_bytes = 0, archive_bytes = 0 } = disk;
const others = metadata_bytes + journal_bytes + quarantine_bytes + archive_bytes;
const show = (what: string, bytes: number) =>
  console.log(
    `${what.padEnd(56)} ${(bytes / events).toFixed(1).padStart(7)} bytes an event  ${(bytes / parquet).toFixed(2)}`,
  );
console.log(`${events} events`);
show("Parquet, zstd: the events alone", parquet);
show("event store: events, names, and people as SQL sees them", store);
show("person store", people);
show("event store and persons", store + people);
show("archive, journal and metadata", others);
show("all of it", store + people + others);
show("DuckDB's library, once", library);

async function parquetBytes(): Promise<number> {
  const path = join(temporaryFolder(), "events.parquet");
  const instance = await DuckDBInstance.create(paths(dataDir).events, { access_mode: "READ_ONLY" });
  const connection = await instance.connect();
  await connection.run(
    `COPY (SELECT project_id, uuid, event, distinct_id, timestamp, received_at, elements_chain, properties::VARCHAR AS properties
       FROM events ORDER BY rowid) TO '${path}' (FORMAT parquet, COMPRESSION zstd)`,
  );
  connection.closeSync();
  instance.closeSync();
  if (!existsSync(path)) throw new Error("DuckDB wrote no Parquet file.");
  return statSync(path).size;
}
