/**
 * What the machine can do at most, measured in the same run: servers that do only a part of the work, and DuckDB alone.
 *
 * `bun test/bench/ceilings.ts ROLE [bytes]` prints its address; it ends with its standard input.
 */

import { closeSync, fdatasync, mkdtempSync, openSync, rmSync, writeFileSync, writevSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { peopleLike } from "./people-like.ts";

/**
 * `bare` answers without reading; `parse` unpacks and parses; `durable` does so too, and answers when the body is synced to
 * disk together with others; `bytes` answers with that number of bytes.
 */
export type CeilingRole = "bare" | "parse" | "durable" | "bytes";

export async function startCeiling(
  role: CeilingRole,
  bytes = 0,
): Promise<{ url: string; stop(): Promise<void> }> {
  const child = Bun.spawn([process.execPath, import.meta.path, role, String(bytes)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  return {
    url: new TextDecoder().decode(value).trim(),
    async stop() {
      child.kill();
      await child.exited;
    },
  };
}

/** DuckDB stages and inserts lines of events on one thread, sorted as the event store sorts them. @returns events a second */
export async function duckdbInserts(events: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-bench-"));
  const path = join(folder, "lines.ndjson");
  const next = peopleLike(97);
  writeFileSync(path, Array.from({ length: events }, () => `${JSON.stringify(next())}\n`).join(""));
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(join(folder, "events.duckdb"), { threads: "1" });
  const connection = await instance.connect();
  const started = performance.now();
  await connection.run(
    `CREATE TEMP TABLE staged AS SELECT * FROM read_ndjson('${path}', columns = {uuid: 'UUID', event: 'VARCHAR',
       distinct_id: 'VARCHAR', timestamp: 'TIMESTAMPTZ', properties: 'JSON'})`,
  );
  await connection.run("CREATE TABLE events AS SELECT * FROM staged ORDER BY timestamp");
  await connection.run("CHECKPOINT");
  const seconds = (performance.now() - started) / 1_000;
  connection.closeSync();
  instance.closeSync();
  rmSync(folder, { recursive: true, force: true });
  return events / seconds;
}

function parsed(body: Uint8Array, encoding: string | null): unknown {
  const plain = encoding === "gzip" ? gunzipSync(body) : body;
  return JSON.parse(Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength).toString());
}

/** Writes what waits in one go, syncs once, and begins again. */
class GroupCommit {
  private readonly folder = mkdtempSync(join(tmpdir(), "flagkeep-bench-"));
  private readonly file = openSync(join(this.folder, "log"), "a");
  private waiting: { bytes: Uint8Array; done: () => void }[] = [];
  private isRunning = false;

  append(bytes: Uint8Array): Promise<void> {
    return new Promise((done) => {
      this.waiting.push({ bytes, done });
      if (!this.isRunning) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.waiting.length > 0) {
      const group = this.waiting.splice(0);
      writevSync(
        this.file,
        group.map(({ bytes }) => bytes),
      );
      await promisify(fdatasync)(this.file);
      for (const { done } of group) done();
    }
    this.isRunning = false;
  }

  close(): void {
    closeSync(this.file);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const role = process.argv[2] as CeilingRole;
  const answer = role === "bytes" ? "x".repeat(Number(process.argv[3])) : '{"status":"Ok"}';
  const headers = { "Content-Type": "application/json" };
  const log = role === "durable" ? new GroupCommit() : undefined;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (role === "parse" || role === "durable") {
        const body = await request.bytes();
        parsed(body, request.headers.get("content-encoding"));
        await log?.append(body);
      }
      return new Response(answer, { headers });
    },
  });
  console.log(`http://127.0.0.1:${server.port}`);
  process.on("SIGTERM", () => {
    log?.close();
    process.exit(0);
  });
}
