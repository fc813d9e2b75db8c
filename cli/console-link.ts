/** One-time links to the console, as commands print them. */

import type { Metadata } from "../src/accounts/metadata.ts";
import { insertSetupLink, ownerToSetUp, setupAddress } from "../src/accounts/sessions/setup-links.ts";
import type { Config, SettingName } from "../src/config/settings.ts";
import { AppError } from "../src/lib/errors.ts";
import { askControl } from "../src/rpc/control.ts";
import { consoleBase } from "../src/serve/console-base.ts";
import { frontsDataDir } from "./shared-stores.ts";

/** The settings that say where the console is. */
export const consoleSettings: SettingName[] = ["host", "port", "public-url"];

type ConsoleConfig = Pick<Config, "host" | "port" | "public-url" | "console">;

/**
 * A link for the first owner; undefined once that one has chosen a password, and where there is no console.
 *
 * @param url where the appliance listens, when that is known.
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

/** There is no page that a link could lead to. */
class ConsoleOff extends AppError {
  readonly code = "console_off";
  override readonly hint =
    "Switch it on (FLAGKEEP_CONSOLE=on), or make a personal key: `flagkeep keys create`.";
}

/** @throws {ConsoleOff} */
export function requireConsole(config: Pick<Config, "console">): void {
  if (config.console === "off")
    throw new ConsoleOff("The console is switched off: a link to it would lead nowhere.");
}

/** The fronts are elsewhere, and only they know under which address people reach them. */
class ConsoleUnknown extends AppError {
  readonly code = "console_unknown";
  override readonly hint =
    "Give --public-url as the fronts have it, or run it on the machine of a front with its --data-dir.";
}

/**
 * Where the console of the running server is; where none runs, where it would be by the settings.
 *
 * @throws {ConsoleUnknown} the command works for several fronts, of which none is here.
 */
export async function whereConsoleIs(config: ConsoleConfig & Pick<Config, "data-dir">): Promise<string> {
  if (config["public-url"] !== "") return consoleBase(config);
  const folder = frontsDataDir();
  const running = await runningConsole(folder ?? config["data-dir"]);
  if (running === undefined && folder !== undefined)
    throw new ConsoleUnknown("Under which address people reach the console is not known here.");
  return running ?? consoleBase(config);
}

/** Where the running server says that its console is; undefined where none runs. */
async function runningConsole(dataDir: string): Promise<string | undefined> {
  // One that cannot tell is another version: the settings of the command count then.
  const answer = await askControl<{ base: string }>(dataDir, "console").catch(() => undefined);
  return answer?.base;
}
