/** Secrets read from files: passwords of external stores, and the metrics token. */

import { readFileSync } from "node:fs";
import { firstLine } from "../lib/errors.ts";
import { InvalidSettingError } from "../lib/setting-types.ts";
import type { ClickHouseAddress, PostgresAddress } from "../lib/store-urls.ts";
import type { Config } from "./settings.ts";

/**
 * Address of the external event store, with the password from its file or the environment; null: events are in the data
 * directory.
 *
 * @throws {InvalidSettingError} the file cannot be read.
 */
export function eventsAddress(
  config: Pick<Config, "events-url" | "events-password-file">,
  environment: Readonly<Record<string, string | undefined>>,
): ClickHouseAddress | null {
  const password = environment.FLAGKEEP_EVENTS_PASSWORD;
  return withPassword(config["events-url"], "events-password-file", config["events-password-file"], password);
}

/** The same for the cluster's PostgreSQL; null: not set. @throws {InvalidSettingError} the file cannot be read. */
export function postgresAddress(
  config: Pick<Config, "postgres-url" | "postgres-password-file">,
  environment: Readonly<Record<string, string | undefined>>,
): PostgresAddress | null {
  const password = environment.FLAGKEEP_POSTGRES_PASSWORD;
  return withPassword(
    config["postgres-url"],
    "postgres-password-file",
    config["postgres-password-file"],
    password,
  );
}

/** Precedence: the file's password, then the given one, then that of the address. */
function withPassword<Address extends { password: string }>(
  address: Address | null,
  setting: "events-password-file" | "postgres-password-file",
  file: string,
  password: string | undefined,
): Address | null {
  if (address === null) return null;
  if (file === "") return { ...address, password: password || address.password };
  return { ...address, password: readSecret(setting, file) };
}

/**
 * Token that `/metrics` requires; empty: none. The file takes precedence over the given value.
 *
 * @throws {InvalidSettingError} the file cannot be read, or does not contain exactly one token: an empty file must not
 *   make the metrics public.
 */
export function metricsToken(config: Pick<Config, "metrics-token" | "metrics-token-file">): string {
  const file = config["metrics-token-file"];
  if (file === "") return config["metrics-token"];
  const token = readSecret("metrics-token-file", file).trim();
  if (/^\S+$/.test(token)) return token;
  throw new InvalidSettingError("--metrics-token-file must contain one token without spaces.");
}

/** Content of a file without the trailing newline. @throws {InvalidSettingError} it cannot be read. */
function readSecret(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new InvalidSettingError(`--${setting} cannot be read: ${firstLine(error)}.`);
  }
}
