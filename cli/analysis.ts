/** What commands that read or load many events have in common: settings, and a way to the appliance. */

import type { LastSeqs } from "../src/import/control-route.ts";
import { type ReachedAppliance, withAppliance } from "./reach.ts";
import { engineCommand } from "./roles.ts";
import { configOf } from "./settings.ts";

/** They count when the appliance does not run; a running one has its own. */
export const analysisSettings = [
  "data-dir",
  "events-url",
  "events-password-file",
  "query-timeout",
  "query-result-limit",
  "duckdb-memory-limit",
  "duckdb-threads",
] as const;

/** How long an appliance that is starting is waited for. */
const patienceMs = 15_000;
/** A wait shorter than this is not worth a word. */
const silentWaitMs = 2_000;

/** Everything that was acknowledged before the call can be read behind it. */
export async function waitUntilAllIsLoaded(appliance: ReachedAppliance): Promise<void> {
  await appliance.waitUntilLoaded(await appliance.tell<LastSeqs>("last_seqs"));
}

/** Does the work with the appliance of the data directory, started for it when none runs. */
export async function analysisOf<Result>(
  options: object,
  work: (appliance: ReachedAppliance) => Promise<Result>,
  { patience = patienceMs, mayStartAgain = true, onWait = sayOnce() }: AnalysisOptions = {},
): Promise<Result> {
  return await withAppliance(
    {
      config: configOf(options as Record<string, unknown>),
      engineCommand: engineCommand(),
      patienceMs: patience,
      mayStartAgain,
      onWait,
    },
    work,
  );
}

interface AnalysisOptions {
  patience?: number;
  /** Not for work that has effects before its end. */
  mayStartAgain?: boolean;
  onWait?: OnWait;
}

type OnWait = (entries: number) => void;

function sayOnce(): OnWait {
  const since = performance.now();
  let isSaid = false;
  return (entries) => {
    if (isSaid || performance.now() - since < silentWaitMs) return;
    isSaid = true;
    process.stderr.write(`flagkeep: ${entries} acknowledged events are being loaded first.\n`);
  };
}
