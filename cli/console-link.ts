/** One-time links to the console, as commands print them. */

import type { Metadata } from "../src/accounts/metadata.ts";
import { insertSetupLink, ownerToSetUp, setupAddress } from "../src/accounts/sessions/setup-links.ts";
import type { Config, SettingName } from "../src/config/settings.ts";

/** The settings that say where the console is. */
export const consoleSettings: SettingName[] = ["host", "port", "public-url"];

const anyHost = new Set(["0.0.0.0", "::", ""]);

/**
 * Where a browser reaches the console, without a slash at the end.
 *
 * @param url where the appliance listens, when that is known.
 */
export function consoleBase(config: Pick<Config, "host" | "port" | "public-url">, url?: string): string {
  if (config["public-url"] !== "") return config["public-url"].replace(/\/+$/, "");
  const at = new URL(url ?? "http://localhost");
  const port = url === undefined ? String(config.port || 8000) : at.port;
  const host = anyHost.has(config.host) ? "127.0.0.1" : config.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port || 80}`;
}

/** A link for the first owner; undefined once that one has chosen a password. */
export function ownerLink(metadata: Metadata, base: string): string | undefined {
  return metadata.change((t) => {
    const owner = ownerToSetUp(t);
    return owner && setupAddress(base, insertSetupLink(t, owner.id, new Date()).token);
  });
}
