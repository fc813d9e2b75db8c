/** Scrubs on a cron schedule. Each scrub runs this executable in a separate process at low priority. */

import type { Subprocess } from "bun";
import { Cron } from "croner";
import type { Config } from "../../config/settings.ts";
import { lowerPriority } from "../../lib/priority.ts";
import type { Log } from "../../log.ts";
import type { Scrub } from "./last-scrub.ts";

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
