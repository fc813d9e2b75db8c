/** The engine's own handlers in this process, for a test server: nothing between a route and its answer is made up. */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { duckdbBackend } from "../../src/engine/backend.ts";
import { queryHandlers } from "../../src/engine/queries.ts";
import { RunningQueries } from "../../src/engine/running-queries.ts";
import { openEventDatabase } from "../../src/events/duckdb/database.ts";
import { EventLoader } from "../../src/events/duckdb/loader.ts";
import { DuckdbPersonReplica } from "../../src/events/duckdb/person-replica.ts";
import { sqlitePersonWriter } from "../../src/persons/person-writer.ts";
import { EngineAdapters } from "../../src/serve/engine-ports.ts";
import { TestServer } from "./management-server.ts";
import { temporaryFolder } from "./server.ts";

export class ServerWithEngine implements AsyncDisposable {
  private constructor(
    readonly server: TestServer,
    private readonly close: () => void,
    /** Runs a statement in the event store. */
    readonly run: (sql: string) => Promise<void>,
  ) {}

  static async start(): Promise<ServerWithEngine> {
    const server = new TestServer();
    const { people, metadata, flagSets } = server.deps;
    const workFolder = join(temporaryFolder(), "work");
    mkdirSync(workFolder);
    const settings = {
      memoryLimitBytes: 256 * 1024 * 1024,
      threads: 1,
      temporaryFolder: join(workFolder, "duckdb"),
    };
    const database = await openEventDatabase(":memory:", settings);
    const handlers = queryHandlers({
      backend: duckdbBackend({
        loader: await EventLoader.open(database),
        people,
        mirror: await DuckdbPersonReplica.open(database, people),
        queries: new RunningQueries(database, {
          memoryLimitBytes: settings.memoryLimitBytes,
          onStuck: (why) => {
            throw new Error(why);
          },
        }),
        resultBytesMax: 1_000_000,
      }),
      persons: server.deps.persons,
      personWriter: sqlitePersonWriter(people, async (run) => run()),
      queryTimeoutMs: 10_000,
      isSuspect: () => false,
      onStatement: () => undefined,
      hurry: () => undefined,
    });
    const ports = new EngineAdapters({
      engine: {
        ask: async (name, request) =>
          (await handlers[name as keyof typeof handlers](request as never)) as never,
        stream: () => Promise.reject(new Error("No streams here.")),
      },
      metadata,
      flagSets,
      persons: server.deps.persons,
      now: () => server.now,
    });
    server.deps.personCounter = ports;
    server.deps.cohortFiller = ports;
    server.deps.insights = ports;
    const close = () => {
      database.close();
      rmSync(workFolder, { recursive: true, force: true });
    };
    const run = async (sql: string) => {
      const connection = await database.connect();
      await connection.run(sql).finally(() => connection.closeSync());
    };
    return new ServerWithEngine(server, close, run);
  }

  /** Stores an event of project 1. */
  async addEvent(event: string, distinctId: string, at: Date, properties = "{}"): Promise<void> {
    await this.run(
      `INSERT INTO events (project_id, historical, seq, uuid, uuid_time, event, distinct_id, timestamp, received_at, mode,
         elements_chain, properties) VALUES (1, false, (SELECT count(*) + 1 FROM events), uuid(), NULL, '${event}', '${distinctId}',
         make_timestamp(${at.getTime() * 1_000}), make_timestamp(${at.getTime() * 1_000}), 'full', NULL, '${properties.replaceAll("'", "''")}')`,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    this.server[Symbol.dispose]();
  }
}
