/** Scrubs at the times of a cron expression: this executable is started again for each, behind everything else. */

import type { Subprocess } from "bun";
import { Cron } from "croner";
import type { Config } from "../../config/settings.ts";
import { putBehind } from "../../lib/priority.ts";
import type { Log } from "../../log.ts";
import type { Scrub } from "./last-scrub.ts";

/** @returns stops what was begun; undefined when none are wanted. */
export function startScrubs(
  config: Pick<Config, "scrub-schedule" | "data-dir">,
  executable: readonly string[],
  log: Pick<Log, "info" | "error">,
): { stop(): Promise<void> } | undefined {
  const expression = config["scrub-schedule"];
  if (expression === "") return undefined;
  let child: Subprocess<"ignore", "pipe", "pipe"> | undefined;
  const command = [...executable, "scrub", "--json", "--data-dir", config["data-dir"]];
  // One that is late is left out; the next one comes.
  const cron = new Cron(expression, { protect: true, unref: true }, async () => {
    child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe", env: process.env });
    putBehind(child.pid);
    const [output, error] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (child.signalCode !== null) return;
    if (output === "") log.error({ error: error.trim() }, "the scheduled scrub failed");
    else tell(JSON.parse(output) as Scrub, log);
  });
  return {
    async stop() {
      cron.stop();
      child?.kill("SIGTERM");
      await child?.exited;
    },
  };
}

function tell({ ok, bytes, ms, parts }: Scrub, log: Pick<Log, "info" | "error">): void {
  if (ok) log.info({ bytes, ms }, "everything on disk was read, and nothing is damaged");
  else log.error({ damage: parts.flatMap(({ damage }) => damage) }, "a part of what is on disk is damaged");
}
