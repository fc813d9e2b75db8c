/** Settings with secrets from files: the addresses of external stores with their passwords, and the token for metrics. */

import { readFileSync } from "node:fs";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import { firstLine } from "../lib/errors.ts";
import type { PostgresAddress } from "../lib/postgres-address.ts";
import { WrongSetting } from "../lib/setting-kinds.ts";
import type { Config } from "./settings.ts";

/**
 * Where events are kept outside of the data directory, with the password from its file or from the environment; null: they
 * are in it.
 *
 * @throws {WrongSetting} the file cannot be read.
 */
export function eventsAddress(
  config: Pick<Config, "events-url" | "events-password-file">,
  environment: Readonly<Record<string, string | undefined>>,
): ClickHouseAddress | null {
  const given = environment.FLAGKEEP_EVENTS_PASSWORD;
  return withPassword(config["events-url"], "events-password-file", config["events-password-file"], given);
}

/** The same for what several fronts share; null: nothing. @throws {WrongSetting} the file cannot be read. */
export function postgresAddress(
  config: Pick<Config, "postgres-url" | "postgres-password-file">,
  environment: Readonly<Record<string, string | undefined>>,
): PostgresAddress | null {
  const given = environment.FLAGKEEP_POSTGRES_PASSWORD;
  return withPassword(
    config["postgres-url"],
    "postgres-password-file",
    config["postgres-password-file"],
    given,
  );
}

/** The file's password goes before the one that was given, and that before the address's own. */
function withPassword<Address extends { password: string }>(
  address: Address | null,
  setting: "events-password-file" | "postgres-password-file",
  file: string,
  given: string | undefined,
): Address | null {
  if (address === null) return null;
  if (file === "") return { ...address, password: given || address.password };
  return { ...address, password: readSecret(setting, file) };
}

/**
 * The token that `/metrics` asks for; empty: none. The file's goes before the one that was given.
 *
 * @throws {WrongSetting} the file cannot be read, or does not contain one token: an empty file does not open the metrics.
 */
export function metricsToken(config: Pick<Config, "metrics-token" | "metrics-token-file">): string {
  const file = config["metrics-token-file"];
  if (file === "") return config["metrics-token"];
  const token = readSecret("metrics-token-file", file).trim();
  if (/^\S+$/.test(token)) return token;
  throw new WrongSetting("--metrics-token-file must contain one token without spaces.");
}

/** What a file has without the end of its line. @throws {WrongSetting} it cannot be read. */
function readSecret(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new WrongSetting(`--${setting} cannot be read: ${firstLine(error)}.`);
  }
}
