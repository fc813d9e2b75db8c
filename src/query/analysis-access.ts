/**
 * Lets a command ask what the engine answers: through the engine's socket when the appliance runs, else by opening
 * the stores itself under the lock.
 */

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { type Analysis, type AnalysisName, analysisHandlers } from "../engine/analysis.ts";
import { EngineClient, EngineUnavailable, QueryTimedOut } from "../engine/client.ts";
import { engineSocketName } from "../engine/messages.ts";
import { openEventDatabase } from "../events/database.ts";
import { setNativeFolder } from "../events/native-folder.ts";
import { PersonMirror } from "../events/person-mirror.ts";
import { DirectoryInUse, type Lock, takeLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";

/** How long a command waits for an engine that is starting. */
const engineStartMs = 15_000;

export interface AnalysisSettings {
  /** Absolute. */
  dataDir: string;
  memoryLimitBytes: number;
  threads: number;
  queryTimeoutMs: number;
}

export type Ask = <Name extends AnalysisName>(
  name: Name,
  request: Parameters<Analysis[Name]>[0],
) => ReturnType<Analysis[Name]>;

/**
 * Does the work with a way to ask, and closes what was opened for it.
 *
 * The working directory becomes the data directory: the name of the engine's socket is relative.
 *
 * @throws {DirectoryInUse} another command holds the stores and no engine answers.
 */
export async function withAnalysis<Result>(
  settings: AnalysisSettings,
  work: (ask: Ask) => Promise<Result>,
): Promise<Result> {
  const place = paths(settings.dataDir);
  process.chdir(settings.dataDir);
  let lock: Lock;
  try {
    lock = takeLock(place.lock, settings.dataDir);
  } catch (error) {
    if (!(error instanceof DirectoryInUse)) throw error;
    return await work(askEngine(error));
  }
  try {
    return await withOwnStores(settings, work);
  } finally {
    lock.release();
  }
}

/** The engine of a running appliance may be starting: it is asked again until it answers. */
function askEngine(inUse: DirectoryInUse): Ask {
  const engine = new EngineClient();
  const ask = async (name: AnalysisName, request: never) => {
    const end = performance.now() + engineStartMs;
    for (;;) {
      try {
        return await engine.ask(name, request);
      } catch (error) {
        if (!(error instanceof EngineUnavailable)) throw error;
        if (performance.now() > end) throw existsSync(engineSocketName) ? error : inUse;
        await Bun.sleep(100);
      }
    }
  };
  return ask as Ask;
}

async function withOwnStores<Result>(
  settings: AnalysisSettings,
  work: (ask: Ask) => Promise<Result>,
): Promise<Result> {
  const place = paths(settings.dataDir);
  setNativeFolder(place.native);
  mkdirSync(place.work, { recursive: true, mode: 0o700 });
  const database = await openEventDatabase(place.events, {
    memoryLimitBytes: settings.memoryLimitBytes,
    threads: settings.threads,
    temporaryFolder: join(place.work, "duckdb"),
  });
  const people = openPeople(place.people);
  const limited =
    (limitMs: number | undefined) =>
    async <Answer>(query: (connection: DuckDBConnection) => Promise<Answer>): Promise<Answer> => {
      const connection = await database.connect();
      let isLate = false;
      const stop = () => {
        isLate = true;
        connection.interrupt();
      };
      const timer = limitMs === undefined ? undefined : setTimeout(stop, limitMs);
      try {
        return await query(connection);
      } catch (error) {
        throw isLate ? new QueryTimedOut() : error;
      } finally {
        clearTimeout(timer);
        connection.closeSync();
      }
    };
  try {
    const mirror = await PersonMirror.open(database, people, place.work);
    const handlers = analysisHandlers({
      ...{ people, mirror, workFolder: place.work },
      run: limited(settings.queryTimeoutMs),
      runLong: limited(undefined),
    });
    return await work(((name: AnalysisName, request: never) => handlers[name](request)) as Ask);
  } finally {
    people.$client.close();
    database.close();
  }
}
