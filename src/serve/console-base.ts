/** URL of the console in a browser. */

import type { Config } from "../config/settings.ts";

const anyHost = new Set(["0.0.0.0", "::", ""]);

/**
 * URL of the console in a browser, without a trailing slash.
 *
 * @param url where the server listens, when that is known.
 */
export function consoleBase(config: Pick<Config, "host" | "port" | "public-url">, url?: string): string {
  if (config["public-url"] !== "") return config["public-url"].replace(/\/+$/, "");
  const at = new URL(url ?? "http://localhost");
  const port = url === undefined ? String(config.port || 8000) : at.port;
  const host = anyHost.has(config.host) ? "127.0.0.1" : config.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port || 80}`;
}
