/** An event store and a people store on a temporary folder, filled as the pipeline fills them. */

import { mkdirSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Pause,
  Pipeline,
  type PipelineCallbacks,
  type PipelineOptions,
} from "../../src/engine/pipeline/pipeline.ts";
import { type EventDatabase, openEventDatabase } from "../../src/events/duckdb/database.ts";
import { EventLoader } from "../../src/events/duckdb/loader.ts";
import { DuckdbPersonReplica } from "../../src/events/duckdb/person-replica.ts";
import { duckdbSql } from "../../src/events/duckdb/sql-dialect.ts";
import type { EventSql, PropertyLocation } from "../../src/events/sql-dialect.ts";
import { SegmentArchive } from "../../src/journal/archive-writer.ts";
import { getBatch, type SegmentBatch } from "../../src/journal/reader.ts";
import { blockLine, hashBlock, hashSeed, type Lane, segmentHeader } from "../../src/journal/segment.ts";
import { openPersons, type PersonsDb } from "../../src/persons/open.ts";
import { PersonStore } from "../../src/persons/store.ts";
import { temporaryFolder } from "./server.ts";

export interface TestEvent {
  project?: number;
  event?: string;
  distinctId?: string;
  uuid?: string;
  /** Epoch milliseconds. */
  time?: number;
  mode?: "full" | "propertyless";
  properties?: unknown;
  generatedUuid?: boolean;
}

export class TestStores implements AsyncDisposable {
  private seq: Record<Lane, number> = { realtime: 0, historical: 0 };
  readonly applied: Parameters<PipelineCallbacks["onApplied"]>[0][] = [];
  readonly released: [Lane, number][] = [];
  readonly corruption: Error[] = [];

  private constructor(
    readonly folder: string,
    readonly database: EventDatabase,
    readonly people: PersonsDb,
    readonly store: PersonStore,
    readonly loader: EventLoader,
    readonly mirror: DuckdbPersonReplica,
  ) {}

  static async open({
    folder = temporaryFolder(),
    memoryLimitBytes = 512 * 1024 * 1024,
    threads = 2,
  } = {}): Promise<TestStores> {
    for (const name of ["work", "quarantine"]) mkdirSync(join(folder, name), { recursive: true });
    const database = await openEventDatabase(join(folder, "events.duckdb"), {
      memoryLimitBytes,
      threads,
      temporaryFolder: join(folder, "work", "duckdb"),
    });
    const people = openPersons(join(folder, "people.sqlite"));
    const spikes = { factor: 10, minimumPerMinute: 1_000, historyMinutes: 60, historyMinutesMin: 2 };
    const store = new PersonStore(people, spikes);
    const loader = await EventLoader.open(database);
    const mirror = await DuckdbPersonReplica.open(database, people);
    return new TestStores(folder, database, people, store, loader, mirror);
  }

  private archive(): SegmentArchive {
    return new SegmentArchive(
      {
        folder: join(this.folder, "archive"),
        quarantineFolder: join(this.folder, "quarantine"),
        bytesMax: 1e9,
        reserveBytes: 0,
      },
      {
        onReleased: (lane, last) => this.released.push([lane, last]),
        onGivenUp: () => undefined,
        onError: (error) => {
          throw error;
        },
      },
    );
  }

  /** Reports of the pipeline about waiting for disk space. */
  readonly pauses: (Pause | null)[] = [];

  pipeline(
    settings: Partial<
      Pick<PipelineOptions, "stepBytes" | "checkpointBytes" | "portionBytes" | "bulkPauseMs" | "space">
    > = {},
  ): Pipeline<SegmentBatch> {
    return new Pipeline<SegmentBatch>(
      this.store,
      this.loader,
      this.archive(),
      {
        stepBytes: settings.stepBytes ?? { held: 32e6, staged: 32e6 },
        portionBytes: settings.portionBytes ?? 8e6,
        bulkPauseMs: settings.bulkPauseMs ?? 0,
        checkpointBytes: settings.checkpointBytes ?? 1e9,
        checkpointIntervalMs: 3_600_000,
        workFolder: join(this.folder, "quarantine"),
        space: settings.space,
      },
      {
        onPaused: (pause) => this.pauses.push(pause),
        onApplied: (applied) => this.applied.push(applied),
        onCorruption: (error) => this.corruption.push(error),
        onFatal: (error) => {
          throw error;
        },
        onFlagUsage: () => undefined,
        onSpikes: () => undefined,
      },
    );
  }

  /** Everything that was written; the files go when they are loaded. */
  readonly written: { lane: Lane; last: number; bytes: Buffer }[] = [];

  /** Writes a sealed segment as the journal does. */
  async segment(lane: Lane, events: TestEvent[], change: (lines: string) => string = (lines) => lines) {
    const first = this.seq[lane] + 1;
    const lines = events.map((event, index) => line(first + index, lane, event));
    this.seq[lane] += events.length;
    const last = this.seq[lane];
    const entries = Buffer.from(change(lines.join("")));
    const hash = hashBlock(entries, last, hashSeed(first));
    const bytes = Buffer.concat([
      Buffer.from(segmentHeader(lane, first)),
      entries,
      Buffer.from(blockLine(last, entries.length, hash)),
    ]);
    const path = join(this.folder, `${lane}-${first}.ndjson`);
    await writeFile(path, bytes);
    this.written.push({ lane, last, bytes });
    return getBatch({ lane, first, last, path, bytes: bytes.length });
  }

  /** Runs events through the whole pipeline. */
  async load(events: TestEvent[], lane: Lane = "realtime"): Promise<void> {
    const pipeline = this.pipeline();
    pipeline.offer([await this.segment(lane, events)]);
    await pipeline.drain(60_000);
  }

  /** Asks as the engine does. */
  async ask<Result>(
    query: (store: EventSql) => Promise<Result>,
    eventProperties?: PropertyLocation,
  ): Promise<Result> {
    const connection = await this.database.connect();
    try {
      return await query(duckdbSql(connection, eventProperties));
    } finally {
      connection.closeSync();
    }
  }

  async rows(sql: string): Promise<unknown[][]> {
    const connection = await this.database.connect();
    try {
      return (await connection.runAndReadAll(sql)).getRows() as unknown[][];
    } finally {
      connection.closeSync();
    }
  }

  close(): void {
    this.people.$client.close();
    this.database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function line(seq: number, lane: Lane, event: TestEvent): string {
  const time = (event.time ?? Date.UTC(2026, 0, 1)) * 1_000;
  return `${JSON.stringify({
    seq,
    project_id: event.project ?? 1,
    uuid: event.uuid ?? Bun.randomUUIDv7(),
    event: event.event ?? "thing",
    distinct_id: event.distinctId ?? "someone",
    time,
    received: time,
    historical: lane === "historical",
    mode: event.mode ?? "full",
    made_uuid: event.generatedUuid ?? false,
    elements_chain: null,
    properties: event.properties ?? {},
  })}\n`;
}
