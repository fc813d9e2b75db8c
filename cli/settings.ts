/** The server's settings as options of a command. */

import { type Command, Option } from "commander";
import { fromStart, readConfig, readSetting } from "../src/config/read.ts";
import {
  type Config,
  environmentName,
  type SettingName,
  type SettingValue,
  settings,
} from "../src/config/settings.ts";

/** Adds options for settings, with defaults and environment variables in `--help`. */
export function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const { unit, help, default: fallback } = settings[name];
    const shown = fallback === "" ? "" : `; default ${fallback}`;
    command.addOption(new Option(`--${name} <${unit}>`, `${help} [${environmentName(name)}${shown}]`));
  }
  return command;
}

/** Lets scripts pass `--data-dir` to a command that does not use it. */
export function withUnusedDataDir(command: Command): Command {
  return command.addOption(new Option("--data-dir <path>", "not used").hideHelp());
}

/** Reads all settings from a command's options and the environment. */
export function configFromOptions(options: Record<string, unknown>): Config {
  return readConfig(asFlags(options), process.env);
}

/** The absolute path of the data directory. */
export function getDataDir(options: Record<string, unknown>): string {
  return fromStart(readSetting("data-dir", asFlags(options), process.env));
}

/** One setting from a command's options and the environment. @throws {InvalidSettingError} */
export function getSetting<Name extends SettingName>(
  name: Name,
  options: Record<string, unknown>,
): SettingValue<Name> {
  return readSetting(name, asFlags(options), process.env);
}

/** The given settings as arguments, for a suggested command; those from the environment are omitted. */
export function optionHelp(options: Record<string, unknown>, names: readonly SettingName[]): string[] {
  const flags = asFlags(options);
  return names.flatMap((name) => (flags[name] === undefined ? [] : [`--${name}`, flags[name]]));
}

/** commander names the option `--data-dir` `dataDir`. */
function asFlags(options: Record<string, unknown>): Record<string, string | undefined> {
  const entries = Object.entries(options).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    typeof value === "string" ? value : undefined,
  ]);
  return Object.fromEntries(entries);
}
