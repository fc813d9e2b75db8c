/**
 * Resolves settings: the command line takes precedence over the environment, then the default.
 *
 * An invalid value fails at start with the setting, the value and what is expected.
 */

import { resolve } from "node:path";
import { type MemoryAllocation, memoryBudget, memoryShares } from "../lib/memory-budget.ts";
import { InvalidSettingError, type Setting } from "../lib/setting-types.ts";
import { paths } from "../paths.ts";
import { type Config, environmentName, type SettingName, type SettingValue, settings } from "./settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that are read but are not settings of `serve`: secrets, which have no flag, and those of other commands.
 */
const otherVariables = [
  "FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID",
  "FLAGKEEP_BACKUP_S3_SECRET_ACCESS_KEY",
  "FLAGKEEP_BACKUP_PASSPHRASE",
  "FLAGKEEP_EVENTS_PASSWORD",
  "FLAGKEEP_POSTGRES_PASSWORD",
  // For `flagkeep mcp`.
  "FLAGKEEP_API_KEY",
  "FLAGKEEP_URL",
];

/** Unknown FLAGKEEP_ variables: misspelled, or for another version. */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set([...Object.keys(settings).map(environmentName), ...otherVariables]);
  return Object.keys(environment)
    .filter((name) => name.startsWith("FLAGKEEP_") && !known.has(name) && !isServiceLink(name, environment))
    .sort();
}

/** Recognized by value or name: FLAGKEEP_PORT=tcp://10.0.0.1:80, FLAGKEEP_SERVICE_HOST=10.0.0.1. */
const linkValue = /^(?:tcp|udp|sctp):\/\//;
const linkName =
  /_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/;

/** Kubernetes gives every pod the address of a service called `flagkeep` in variables that look like ours. */
function isServiceLink(name: string, environment: Environment): boolean {
  return linkValue.test(environment[name] ?? "") || linkName.test(name);
}

function getVariable(name: string, environment: Environment): string | undefined {
  return isServiceLink(name, environment) ? undefined : environment[name];
}

/**
 * Resolves one setting.
 *
 * @throws {InvalidSettingError} with a sentence for the operator.
 */
export function readSetting<Name extends SettingName>(
  name: Name,
  flags: Readonly<Record<string, string | undefined>>,
  environment: Environment,
): SettingValue<Name> {
  const { parse, default: fallback } = settings[name] as Setting<SettingValue<Name>>;
  const fromFlag = flags[name];
  const fromEnvironment = getVariable(environmentName(name), environment) || undefined;
  const value = fromFlag ?? fromEnvironment ?? fallback;
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof InvalidSettingError)) throw error;
    const source = fromFlag !== undefined ? `--${name}` : environmentName(name);
    // The value may contain a password.
    if (name === "events-url" || name === "postgres-url")
      throw new InvalidSettingError(`${source} must be ${error.message}.`);
    throw new InvalidSettingError(`${source} is "${value}", but it must be ${error.message}.`);
  }
}

const filePaths = [
  "backup-destination",
  "backup-s3-credentials-file",
  "backup-key-file",
  "events-password-file",
  "postgres-password-file",
  "metrics-token-file",
] as const;

/** Commands that work in the data directory make it the working directory; paths stay relative to the initial one. */
const startedIn = process.cwd();

/** The absolute path of an argument, relative to the caller's folder. */
export const fromStart = (path: string): string => resolve(startedIn, path);

/**
 * Resolves all settings; the data directory becomes an absolute path.
 *
 * @throws {InvalidSettingError} for the first invalid one.
 */
export function readConfig(
  flags: Readonly<Record<string, string | undefined>>,
  environment: Environment,
): Config {
  const names = Object.keys(settings) as SettingName[];
  const entries = names.map((name) => [name, readSetting(name, flags, environment)] as const);
  const config = Object.fromEntries(entries) as { -readonly [Name in SettingName]: SettingValue<Name> };
  config["data-dir"] = fromStart(config["data-dir"]);
  const budget = memoryBudget(config.memory);
  for (const [name, share] of Object.entries(budget === null ? {} : memoryShares(budget))) {
    const isGiven = flags[name] !== undefined || Boolean(environment[environmentName(name)]);
    if (!isGiven) config[name as keyof MemoryAllocation] = share;
  }
  if (config["postgres-url"] !== null && (config.workers ?? 1) > 1)
    throw new InvalidSettingError(
      "--workers must be 1 with --postgres-url: run several nodes instead of several workers.",
    );
  // Made absolute because the working directory changes later.
  for (const name of filePaths) {
    if (config[name] !== "" && !config[name].startsWith("s3://")) config[name] = fromStart(config[name]);
  }
  return config;
}

/** Backup location: the setting, else a folder in the data directory. */
export function backupDestination(config: Config): string {
  return config["backup-destination"] || paths(config["data-dir"]).backups;
}
