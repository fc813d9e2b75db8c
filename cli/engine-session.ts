/** Settings and server connection of commands that read or load many events. */

import type { LastSeqs } from "../src/import/control-route.ts";
import { type ServerConnection, withServer } from "./connection.ts";
import { configFromOptions } from "./settings.ts";
import { engineCommand } from "./subprocess.ts";

/** Apply only if no server runs; a running one has its own. */
export const engineSessionSettings = [
  "data-dir",
  "events-url",
  "events-password-file",
  "query-timeout",
  "query-result-limit",
  "duckdb-memory-limit",
  "duckdb-threads",
] as const;

/** How long to wait for a starting server. */
const patienceMs = 15_000;
/** Shorter waits are not reported. */
const silentWaitMs = 2_000;

/** Waits until everything acknowledged before the call can be read. */
export async function waitForIngestion(server: ServerConnection): Promise<void> {
  await server.waitUntilLoaded(await server.send<LastSeqs>("last_seqs"));
}

/** Runs the work with the data directory's server; starts one if none runs. */
export async function openEngineSession<Result>(
  options: object,
  work: (server: ServerConnection) => Promise<Result>,
  { patience = patienceMs, mayStartAgain = true, onWait = reportOnce() }: EngineSessionOptions = {},
): Promise<Result> {
  return await withServer(
    {
      config: configFromOptions(options as Record<string, unknown>),
      engineCommand: engineCommand(),
      patienceMs: patience,
      mayStartAgain,
      onWait,
    },
    work,
  );
}

interface EngineSessionOptions {
  patience?: number;
  /** Not for work with side effects before its end. */
  mayStartAgain?: boolean;
  onWait?: OnWait;
}

type OnWait = (entries: number) => void;

function reportOnce(): OnWait {
  const since = performance.now();
  let isReported = false;
  return (entries) => {
    if (isReported || performance.now() - since < silentWaitMs) return;
    isReported = true;
    process.stderr.write(`flagkeep: ${entries} acknowledged events are being loaded first.\n`);
  };
}
