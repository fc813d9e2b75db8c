import { existsSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { type RoleName, type RoleReadiness, roleNames } from "../../src/http/probes.ts";
import { AppError } from "../../src/lib/errors.ts";
import { strictObject } from "../../src/lib/schema.ts";
import { isInUse } from "../../src/lock.ts";
import type { Status } from "../../src/operate/status-schema.ts";
import { paths } from "../../src/paths.ts";
import { callControl } from "../../src/rpc/control.ts";
import { exitDone, print, printJson, run, withJson } from "../output.ts";
import { getDataDir, withSettings } from "../settings.ts";

class NotReadyError extends AppError {
  readonly code = "not_ready";
  override readonly hint = "See its log, or run `flagkeep doctor`.";
}

const timeoutMs = 5_000;

const Health = strictObject({
  ready: Type.Boolean(),
  /** `ready`, or the reason why not. */
  state: Type.String(),
});

export const healthcheck = withJson(
  withSettings(new Command("healthcheck"), ["data-dir"]),
  Health,
  "print the state as JSON",
)
  .description("Exit with 0 if the server is ready, else with 1; for containers and supervisors.")
  .option("--url <address>", "base URL to check over HTTP instead of the control socket", httpAddress)
  .addOption(new Option("--role <role>", "readiness role to check; default: all").choices(roleNames))
  .addHelpText(
    "after",
    "\nFlags and capture work while the event store opens or rebuilds, flags and queries while the disk is full:\n" +
      "a supervisor that restarts the server should check --role flags.\n\n" +
      "Examples:\n  flagkeep healthcheck --data-dir /var/lib/flagkeep --role flags\n  flagkeep healthcheck --url http://127.0.0.1:8000",
  )
  .action(
    run(async (options: { url?: string; role?: RoleName; json?: true }) => {
      const { url, role } = options;
      const state = url ? await getRemoteState(url, role) : await stateIn(getDataDir(options as never), role);
      const health: Static<typeof Health> = { ready: state === "ready", state };
      if (options.json) printJson(health);
      else if (health.ready) print("ready");
      if (!health.ready) throw new NotReadyError(`The server is not ready (${state}).`);
      process.exit(exitDone);
    }),
  );

function httpAddress(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError("Expected a URL, for example http://127.0.0.1:8000.");
}

async function stateIn(dataDir: string, role: RoleName | undefined): Promise<string> {
  const late = Bun.sleep(timeoutMs).then(() => "no response in 5 s");
  return await Promise.race([
    late,
    callControl<Status>(dataDir, "status").then((status) =>
      status === undefined ? describeSilence(dataDir) : getState(status.roles, role),
    ),
  ]);
}

/** Why the control socket does not respond. */
function describeSilence(dataDir: string): string {
  const used = existsSync(dataDir) && isInUse(paths(dataDir).lock, dataDir);
  return used ? "the process that uses the data directory does not respond" : "not running";
}

async function getRemoteState(url: string, role: RoleName | undefined): Promise<string> {
  try {
    const address = `${url.replace(/\/+$/, "")}/_readiness${role === undefined ? "" : `?role=${role}`}`;
    const response = await fetch(address, { signal: AbortSignal.timeout(timeoutMs) });
    if (response.ok) return "ready";
    const { roles } = (await response.json().catch(() => ({}))) as { roles?: RoleReadiness[] };
    return roles === undefined ? `HTTP ${response.status}` : getState(roles, role);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** `ready`, or what cannot be served and why. */
function getState(roles: readonly RoleReadiness[], requested: RoleName | undefined): string {
  const hindered = roles.filter(
    ({ role, ready }) => !ready && (requested === undefined || role === requested),
  );
  if (hindered.length === 0) return "ready";
  return hindered.map(({ role, reason }) => `${role}: ${reason?.replace(/\.$/, "")}`).join("; ");
}
