/** Scrubs on a cron schedule. Each scrub runs this executable in a separate process at low priority. */

import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import type { Subprocess } from "bun";
import { Cron } from "croner";
import type { Config } from "../config/settings.ts";
import { replaceFile } from "../journal/disk.ts";
import { lowerPriority } from "../lib/operating-system.ts";
import { DateTime, NonNegativeInt, strictObject } from "../lib/schema.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";

/** In the order in which they are read. */
export const partNames = ["metadata", "people", "journal", "archive", "events"] as const;

/** Result for one store. */
const ScrubbedPart = strictObject({
  part: Type.Union(partNames.map((name) => Type.Literal(name))),
  bytes: NonNegativeInt,
  /** One sentence per corruption found. */
  damage: Type.Array(Type.String()),
});
export type ScrubbedPart = Static<typeof ScrubbedPart>;

/** Result of a scrub, as `scrub --json` prints it and `status` shows it. */
export const Scrub = strictObject({
  ok: Type.Boolean(),
  at: DateTime,
  ms: NonNegativeInt,
  bytes: NonNegativeInt,
  parts: Type.Array(ScrubbedPart),
});
export type Scrub = Static<typeof Scrub>;

/** Result of the last scrub; null before the first. */
export function readLastScrub(dataDir: string): Scrub | null {
  try {
    return JSON.parse(readFileSync(paths(dataDir).lastScrub, "utf8")) as Scrub;
  } catch {
    return null;
  }
}

/** Replaces the last result atomically. */
export async function recordScrub(dataDir: string, found: Scrub): Promise<void> {
  await replaceFile(paths(dataDir).lastScrub, `${JSON.stringify(found)}\n`);
}

/** @returns a function that stops the schedule; undefined when none is configured. */
export function startScrubs(
  config: Pick<Config, "scrub-schedule" | "data-dir">,
  executable: readonly string[],
  log: Pick<Log, "info" | "error">,
): { stop(): Promise<void> } | undefined {
  const expression = config["scrub-schedule"];
  if (expression === "") return undefined;
  let child: Subprocess<"ignore", "pipe", "pipe"> | undefined;
  const command = [...executable, "scrub", "--json", "--data-dir", config["data-dir"]];
  // Missed and overlapping runs are skipped.
  const cron = new Cron(expression, { protect: true, unref: true }, async () => {
    child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe", env: process.env });
    lowerPriority(child.pid);
    const [output, error] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (child.signalCode !== null) return;
    if (output === "") log.error({ error: error.trim() }, "failed to run the scheduled scrub");
    else logResult(JSON.parse(output) as Scrub, log);
  });
  return {
    async stop() {
      cron.stop();
      child?.kill("SIGTERM");
      await child?.exited;
    },
  };
}

function logResult({ ok, bytes, ms, parts }: Scrub, log: Pick<Log, "info" | "error">): void {
  if (ok) log.info({ bytes, ms }, "scrub finished without corruption");
  else log.error({ damage: parts.flatMap(({ damage }) => damage) }, "scrub found corruption");
}
