/**
 * Works out the settings: a value comes from the command line, else from the environment, else from the default.
 *
 * A wrong one fails at start with the setting, the value and what would be right.
 */

import { resolve } from "node:path";
import { type MemoryShares, memoryBudget, memoryShares } from "../lib/memory-budget.ts";
import { type Setting, WrongSetting } from "../lib/setting-kinds.ts";
import { paths } from "../paths.ts";
import { type Config, environmentName, type SettingName, type SettingValue, settings } from "./settings.ts";

/** Variables that are no settings of `serve` but are read: secrets, which have no flag. */
const secretVariables = [
  "FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID",
  "FLAGKEEP_BACKUP_S3_SECRET_ACCESS_KEY",
  "FLAGKEEP_BACKUP_PASSPHRASE",
  "FLAGKEEP_EVENTS_PASSWORD",
  "FLAGKEEP_POSTGRES_PASSWORD",
];

/** Variables that look like ours and are none: misspelt, or of another version. */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([...Object.keys(settings).map(environmentName), ...secretVariables]);
  return Object.keys(environment)
    .filter((name) => name.startsWith("FLAGKEEP_") && !known.has(name))
    .sort();
}

/**
 * Works out one setting.
 *
 * @throws {WrongSetting} with a sentence for the operator.
 */
export function readSetting<Name extends SettingName>(
  name: Name,
  flags: Readonly<Record<string, string | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
): SettingValue<Name> {
  const { parse, default: fallback } = settings[name] as Setting<SettingValue<Name>>;
  const fromFlag = flags[name];
  const fromEnvironment = environment[environmentName(name)] || undefined;
  const value = fromFlag ?? fromEnvironment ?? fallback;
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof WrongSetting)) throw error;
    const source = fromFlag !== undefined ? `--${name}` : environmentName(name);
    // There may be a password in it.
    if (name === "events-url" || name === "postgres-url")
      throw new WrongSetting(`${source} must be ${error.message}.`);
    throw new WrongSetting(`${source} is "${value}", but it must be ${error.message}.`);
  }
}

const filePaths = [
  ...(["backup-destination", "backup-s3-credentials-file", "backup-key-file"] as const),
  ...(["events-password-file", "postgres-password-file"] as const),
];

/** Commands that work in the data directory make it the working directory, and paths go on to mean what they meant. */
const startedIn = process.cwd();

/** The absolute path of what somebody named who called this process. */
export const fromStart = (path: string): string => resolve(startedIn, path);

/**
 * Works out all settings; the data directory becomes an absolute path.
 *
 * @throws {WrongSetting} for the first one that cannot be used.
 */
export function readConfig(
  flags: Readonly<Record<string, string | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
): Config {
  const names = Object.keys(settings) as SettingName[];
  const entries = names.map((name) => [name, readSetting(name, flags, environment)] as const);
  const config = Object.fromEntries(entries) as { -readonly [Name in SettingName]: SettingValue<Name> };
  config["data-dir"] = fromStart(config["data-dir"]);
  const budget = memoryBudget(config.memory);
  for (const [name, share] of Object.entries(budget === null ? {} : memoryShares(budget))) {
    const isGiven = flags[name] !== undefined || Boolean(environment[environmentName(name)]);
    if (!isGiven) config[name as keyof MemoryShares] = share;
  }
  // The working directory becomes another one.
  for (const name of filePaths) {
    if (config[name] !== "" && !config[name].startsWith("s3://")) config[name] = fromStart(config[name]);
  }
  return config;
}

/** Where backups go: what is set, else a folder in the data directory. */
export function backupDestination(config: Config): string {
  return config["backup-destination"] || paths(config["data-dir"]).backups;
}
