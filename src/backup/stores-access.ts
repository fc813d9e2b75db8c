/** Lets a backup read the stores: under the lock of a stopped appliance, or with the engine of a running one. */

import { existsSync } from "node:fs";
import { EngineClient, EngineUnavailable } from "../engine/client.ts";
import { DirectoryInUse, type Lock, takeStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { controlSocketName } from "../rpc/control.ts";
import type { CheckpointHolder } from "./snapshot.ts";

/** How long an engine that is just starting is waited for. */
const engineStartMs = 20_000;

/**
 * The working directory becomes the data directory: the name of the engine's socket is relative.
 *
 * @throws {DirectoryInUse}    another command has the stores.
 * @throws {EngineUnavailable} an appliance runs, its engine does not answer.
 */
export async function withStoppedOrHeld<Result>(
  dataDir: string,
  work: (holder: CheckpointHolder | undefined) => Promise<Result>,
): Promise<Result> {
  process.chdir(dataDir);
  let lock: Lock;
  try {
    lock = await takeStoresLock(paths(dataDir), dataDir);
  } catch (error) {
    if (!(error instanceof DirectoryInUse)) throw error;
    return await work(engineHolder(error));
  }
  try {
    return await work(undefined);
  } finally {
    lock.release();
  }
}

function engineHolder(inUse: DirectoryInUse): CheckpointHolder {
  const engine = new EngineClient();
  return {
    async begin(ms) {
      try {
        await engine.askPatiently("holdCheckpoints", { ms, checkpointFirst: true }, engineStartMs);
      } catch (error) {
        const isOther = error instanceof EngineUnavailable && !existsSync(controlSocketName);
        throw isOther ? inUse : error;
      }
    },
    hold: (ms) => engine.ask("holdCheckpoints", { ms }).then(nothing, unlessGone),
    release: () => engine.ask("holdCheckpoints", { ms: 0 }).then(nothing, unlessGone),
  };
}

function nothing(): void {}

/** An engine that died holds nothing any more: if the next one writes the file, its headers tell. */
function unlessGone(error: unknown): void {
  if (!(error instanceof EngineUnavailable)) throw error;
}
