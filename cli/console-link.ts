/** One-time links to the console, as commands print them. */

import type { Metadata } from "../src/accounts/metadata.ts";
import { insertSetupLink, ownerToSetUp, setupAddress } from "../src/accounts/sessions/setup-links.ts";
import type { Config, SettingName } from "../src/config/settings.ts";
import { AppError } from "../src/lib/errors.ts";
import { askControl } from "../src/rpc/control.ts";
import { consoleBase } from "../src/serve/console-base.ts";

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
    return owner && setupAddress(consoleBase(config, url), insertSetupLink(t, owner.id, new Date()).token);
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

/** Where the running server says that its console is; undefined where none runs. */
export async function runningConsole(dataDir: string): Promise<string | undefined> {
  // One that cannot tell is another version: the settings of the command count then.
  const answer = await askControl<{ base: string }>(dataDir, "console").catch(() => undefined);
  return answer?.base;
}
