import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { AppError } from "../../src/lib/errors.ts";
import { exactly } from "../../src/lib/schema.ts";
import type { Status } from "../../src/operate/status-shape.ts";
import { askControl } from "../../src/rpc/control.ts";
import { withJson } from "../json-shape.ts";
import { exitDone, print, printJson, run } from "../output.ts";
import { dataDirOf, withSettings } from "../settings.ts";

/** The appliance cannot serve requests at this moment. */
class NotReady extends AppError {
  readonly code = "not_ready";
  override readonly hint = "See its log, or run `flagkeep doctor`.";
}

const timeoutMs = 5_000;

const Health = exactly({
  ready: Type.Boolean(),
  /** `ready`, or what hinders it. */
  state: Type.String(),
});

export const healthcheck = withJson(
  withSettings(new Command("healthcheck"), ["data-dir"]),
  Health,
  "print the state as JSON",
)
  .description(
    "End with 0 when the appliance can serve requests, else with 1: for containers and supervisors.",
  )
  .option("--url <address>", "ask over HTTP instead of through the data directory")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep healthcheck --data-dir /var/lib/flagkeep\n  flagkeep healthcheck --url http://127.0.0.1:8000",
  )
  .action(
    run(async (options: { url?: string; json?: true }) => {
      const state = options.url ? await stateOver(options.url) : await stateIn(dataDirOf(options as never));
      const health: Static<typeof Health> = { ready: state === "ready", state };
      if (options.json) printJson(health);
      else if (health.ready) print("ready");
      if (!health.ready) throw new NotReady(`The appliance is not ready (${state}).`);
      process.exit(exitDone);
    }),
  );

async function stateIn(dataDir: string): Promise<string> {
  const late = Bun.sleep(timeoutMs).then(() => "no answer in 5 s");
  return await Promise.race([
    late,
    askControl<Status>(dataDir, "status").then((status) => status?.state ?? "not running"),
  ]);
}

async function stateOver(url: string): Promise<string> {
  try {
    const address = `${url.replace(/\/+$/, "")}/_readiness`;
    const response = await fetch(address, { signal: AbortSignal.timeout(timeoutMs) });
    return response.ok ? "ready" : `HTTP ${response.status}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
