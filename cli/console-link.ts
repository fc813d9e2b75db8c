/** One-time links to the console that commands print. */

import type { Metadata } from "../src/accounts/metadata.ts";
import { insertSetupLink, ownerToSetUp, setupAddress } from "../src/accounts/sessions/setup-links.ts";
import type { Config, SettingName } from "../src/config/settings.ts";
import { AppError } from "../src/lib/errors.ts";
import { callControl } from "../src/rpc/control.ts";
import { consoleBase } from "../src/serve/console-base.ts";
import { nodeDataDir } from "./cluster-stores.ts";

/** Settings that determine the console's URL. */
export const consoleSettings: SettingName[] = ["host", "port", "public-url"];

type ConsoleConfig = Pick<Config, "host" | "port" | "public-url" | "console">;

/**
 * A link for the first owner; undefined if the owner has a password, or the console is off.
 *
 * @param url where the server listens, if known.
 */
export function ownerLink(metadata: Metadata, config: ConsoleConfig, url?: string): string | undefined {
  if (config.console === "off") return undefined;
  return metadata.change((t) => {
    const owner = ownerToSetUp(t);
    return (
      owner && setupAddress(consoleBase(config, url), insertSetupLink(t, owner.id, null, new Date()).token)
    );
  });
}

/** Without the console, a link has no target. */
class ConsoleDisabledError extends AppError {
  readonly code = "console_off";
  override readonly hint =
    "Enable it (FLAGKEEP_CONSOLE=on), or create a personal key: `flagkeep keys create`.";
}

/** @throws {ConsoleDisabledError} */
export function assertConsole(config: Pick<Config, "console">): void {
  if (config.console === "off")
    throw new ConsoleDisabledError("The console is disabled, so a link to it cannot work.");
}

/** Nodes run elsewhere, and only they know the public URL. */
class ConsoleAddressUnknownError extends AppError {
  readonly code = "console_unknown";
  override readonly hint =
    "Set --public-url as on the nodes, or run the command on a node with its --data-dir.";
}

/**
 * URL of the console: of the running server, else as derived from the settings.
 *
 * @throws {ConsoleAddressUnknownError} the command works on a cluster, and no node runs here.
 */
export async function getConsoleUrl(config: ConsoleConfig & Pick<Config, "data-dir">): Promise<string> {
  if (config["public-url"] !== "") return consoleBase(config);
  const folder = nodeDataDir();
  const running = await getRunningConsoleUrl(folder ?? config["data-dir"]);
  if (running === undefined && folder !== undefined)
    throw new ConsoleAddressUnknownError("The public URL of the console is unknown.");
  return running ?? consoleBase(config);
}

/** URL of the console according to the running server; undefined if none runs. */
async function getRunningConsoleUrl(dataDir: string): Promise<string | undefined> {
  // A server of another version may not know the call: the command's settings apply then.
  const answer = await callControl<{ base: string }>(dataDir, "console").catch(() => undefined);
  return answer?.base;
}
