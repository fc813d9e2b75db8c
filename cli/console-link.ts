/** One-time links to the console, as commands print them. */

import type { Metadata } from "../src/accounts/metadata.ts";
import { insertSetupLink, ownerToSetUp, setupAddress } from "../src/accounts/sessions/setup-links.ts";
import type { Config, SettingName } from "../src/config/settings.ts";
import { AppError } from "../src/lib/errors.ts";

/** The settings that say where the console is. */
export const consoleSettings: SettingName[] = ["host", "port", "public-url"];

type ConsoleConfig = Pick<Config, "host" | "port" | "public-url" | "console">;

const anyHost = new Set(["0.0.0.0", "::", ""]);

/**
 * Where a browser reaches the console, without a slash at the end.
 *
 * @param url where the appliance listens, when that is known.
 */
export function consoleBase(config: ConsoleConfig, url?: string): string {
  if (config["public-url"] !== "") return config["public-url"].replace(/\/+$/, "");
  const at = new URL(url ?? "http://localhost");
  const port = url === undefined ? String(config.port || 8000) : at.port;
  const host = anyHost.has(config.host) ? "127.0.0.1" : config.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port || 80}`;
}

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
