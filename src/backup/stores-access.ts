/** Gives a backup access to the stores: under the lock of a stopped server, or through the engine of a running one. */

import { existsSync } from "node:fs";
import { EngineClient, EngineUnavailableError } from "../engine/client.ts";
import { acquireStoresLock, DirectoryInUseError, type Lock } from "../lock.ts";
import { paths } from "../paths.ts";
import { controlSocketName } from "../rpc/control.ts";
import type { CheckpointHolder } from "./snapshot.ts";

/** How long to wait for a starting engine. */
const engineStartMs = 20_000;

/**
 * The working directory becomes the data directory: the engine's socket name is relative.
 *
 * @throws {DirectoryInUseError}    another command uses the stores.
 * @throws {EngineUnavailableError} a server is running, but its engine does not respond.
 */
export async function withQuiescedStores<Result>(
  dataDir: string,
  work: (holder: CheckpointHolder | undefined) => Promise<Result>,
): Promise<Result> {
  process.chdir(dataDir);
  let lock: Lock;
  try {
    lock = await acquireStoresLock(paths(dataDir), dataDir);
  } catch (error) {
    if (!(error instanceof DirectoryInUseError)) throw error;
    return await work(engineHolder(error));
  }
  try {
    return await work(undefined);
  } finally {
    lock.release();
  }
}

function engineHolder(inUse: DirectoryInUseError): CheckpointHolder {
  const engine = new EngineClient();
  return {
    async start(ms) {
      try {
        await engine.requestWithRetry("holdCheckpoints", { ms, checkpointFirst: true }, engineStartMs);
      } catch (error) {
        const isOther = error instanceof EngineUnavailableError && !existsSync(controlSocketName);
        throw isOther ? inUse : error;
      }
    },
    hold: (ms) => engine.ask("holdCheckpoints", { ms }).then(nothing, unlessDeleted),
    release: () => engine.ask("holdCheckpoints", { ms: 0 }).then(nothing, unlessDeleted),
  };
}

function nothing(): void {}

/** The hold ends with its engine: if the next engine writes the file, the headers show it. */
function unlessDeleted(error: unknown): void {
  if (!(error instanceof EngineUnavailableError)) throw error;
}
