/**
 * What the engine needs until events are readable: CPU per stage, beside the ceiling of the same run, DuckDB staging and
 * inserting the same lines.
 *
 * `bun test/bench/pipeline.ts [--events 245760]`; prints a table, checks nothing.
 */

import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { EventEntry, JournalItem } from "../../src/journal/entry.ts";
import { PropertyReader } from "../../src/journal/entry-properties.ts";
import { decodeEntries } from "../../src/journal/entry-reader.ts";
import type { SegmentBatch } from "../../src/journal/reader.ts";
import { BufferPool } from "../../src/lib/buffer-pool.ts";
import { DefinitionRecorder } from "../../src/persons/event-definitions.ts";
import { TestStores } from "../support/event-store.ts";
import { peopleLike } from "./people-like.ts";

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "245760" },
    segment: { type: "string", default: "7000" },
    step: { type: "string", default: "18" },
  },
});
const count = Number(values.events);
const perSegment = Number(values.segment);
/** Segments that are stored together. */
const perStep = Number(values.step);

const stores = await TestStores.open({ threads: 1 });
const next = peopleLike(1, Date.UTC(2026, 0, 1));
const segments: SegmentBatch[] = [];
for (let created = 0; created < count; created += perSegment) {
  const events = Array.from({ length: Math.min(perSegment, count - created) }, () => {
    const { distinct_id: distinctId, timestamp, ...event } = next();
    return { ...event, distinctId, time: Date.parse(timestamp) };
  });
  segments.push(await stores.segment("realtime", events));
}
const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);

const rows: Record<string, string>[] = [];
async function measured(stage: string, work: () => Promise<unknown> | unknown): Promise<void> {
  Bun.gc(true);
  const started = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  rows.push({
    stage,
    "CPU µs/event": ((user + system) / count).toFixed(2),
    "wall µs/event": (((performance.now() - started) * 1_000) / count).toFixed(2),
  });
}

await measured("ceiling: DuckDB reads the lines and inserts them, one thread", async () => {
  const path = join(stores.folder, "lines.ndjson");
  const texts = await Promise.all(segments.map((segment) => segment.text()));
  writeFileSync(path, Buffer.concat(texts.map(({ bytes }) => bytes)));
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(join(stores.folder, "ceiling.duckdb"), { threads: "1" });
  const connection = await instance.connect();
  await connection.run(
    `CREATE TABLE events AS SELECT seq, uuid::UUID AS uuid, event, distinct_id, make_timestamp("time") AS timestamp, properties
     FROM read_ndjson('${path}', columns = {seq: 'BIGINT', uuid: 'VARCHAR', event: 'VARCHAR', distinct_id: 'VARCHAR',
       time: 'BIGINT', properties: 'JSON'}) WHERE seq IS NOT NULL ORDER BY distinct_id, timestamp`,
  );
  connection.closeSync();
  instance.closeSync();
  rmSync(path);
});

await measured("read, checked by hashes", async () => {
  const buffers = new BufferPool(bytes);
  for (const segment of segments) {
    await segment.text(buffers);
    buffers.reuse();
  }
});
const texts = await Promise.all(segments.map((segment) => segment.text()));
const decoded: EventEntry[][] = [];
await measured("decode", () => {
  for (const { bytes } of texts) decoded.push(decodeEntries(bytes, 0).entries as EventEntry[]);
});
const { loader, store } = stores;
const properties = new PropertyReader();
/** As the pipeline reads properties. */
function* parts(entries: readonly EventEntry[]): Generator<JournalItem[]> {
  for (const { items } of properties.read(entries)) yield items.filter((item) => item !== undefined);
}
await measured("properties", () => {
  for (const entries of decoded) for (const _ of parts(entries));
});
await measured("duplicates", async () => {
  for (const entries of decoded) await loader.known(entries);
});
/** CPU microseconds of parts of a stage. */
const cpuMicros = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
let writing = 0;
await measured("identity", () => {
  for (let start = 0; start < decoded.length; start += perStep) {
    const step = store.start("realtime");
    const segments = decoded.slice(start, start + perStep);
    for (const entries of segments) for (const items of parts(entries)) step.add({ items, duplicates: [] });
    const before = cpuMicros();
    step.commit(segments.at(-1)!.at(-1)!.seq);
    writing += cpuMicros() - before;
  }
});
rows.push({ stage: "identity: of this, writing persons", "CPU µs/event": (writing / count).toFixed(2) });
await measured("names", () => {
  const names = new DefinitionRecorder(store.db);
  for (const entries of decoded) for (const items of parts(entries)) names.collect(items);
  names.store();
});
await measured("load", async () => {
  // A row group at a time, as behind a backlog; portions as the pipeline takes them.
  let staged = 0;
  for (const entries of decoded)
    for (let done = 0; done < entries.length; ) {
      const portion = entries.slice(done, done + loader.eventsPerLoad - staged);
      await loader.stage(portion);
      done += portion.length;
      staged = (staged + portion.length) % loader.eventsPerLoad;
      if (staged === 0) await loader.load("realtime", portion.at(-1)!.seq, []);
    }
  if (staged > 0) await loader.load("realtime", decoded.at(-1)!.at(-1)!.seq, []);
});
await measured("checkpoint", async () => {
  while (!(await loader.checkpoint())) await Bun.sleep(5);
});
decoded.length = 0;
await measured("mirror", () => stores.mirror.follow());

console.table(rows);
console.log(
  `${count} events, ${(bytes / count).toFixed(0)} bytes each; persons ${statSync(join(stores.folder, "people.sqlite")).size / count} bytes/event, events ${(statSync(join(stores.folder, "events.duckdb")).size / count).toFixed(0)} bytes/event`,
);
await stores[Symbol.asyncDispose]();
