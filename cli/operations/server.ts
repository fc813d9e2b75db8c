/** Selects the data directory or the server that a command works on. */

import { type Command, Option } from "commander";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import { getPath } from "../output.ts";

/** Options that select where operations run and on what. */
export interface CallOptions {
  dataDir?: string;
  url?: string;
  key?: string;
  organization?: string;
  project?: number;
  /** Creator of the objects that a command creates. */
  user?: string;
  /** Applies changes of protected flags without a change request. */
  confirm?: true;
  json?: true;
}

/** A server and the personal API key for requests. */
export interface Server {
  url: string;
  key: string;
}

/** Adds the options that name a server. */
export function withServer(command: Command): void {
  command
    .option("--url <address>", "base URL of a server to use instead of a data directory [FLAGKEEP_URL]")
    .option("--key <key>", "personal API key for --url [FLAGKEEP_API_KEY]");
}

/** Adds these options to commands that need the data directory, so that they can reject them with an explanation. */
export function withoutServer(command: Command): void {
  if (command.options.some(({ long }) => long === "--url")) return;
  for (const name of ["--url", "--key"])
    command.addOption(new Option(`${name} <value>`, "not used").hideHelp());
}

/** Commands of the operator at the data directory, and what an administrator does on a server instead. */
const remoteCommands: Readonly<Record<string, string>> = {
  "users create": "members add",
  "users level": "members set --level",
  "users link": "members link",
  "users activate": "members set --is-active",
  "users deactivate": "members set --no-is-active",
  top: "status",
  "export events": "query --format",
};

/** @throws {InvalidSettingError} the command does not work on a server. */
export function assertNoServer(command: Command): void {
  const args = command.options.filter(
    (option) => option.hidden && command.getOptionValueSource(option.attributeName()) === "cli",
  );
  if (!args.some(({ long }) => long === "--url" || long === "--key")) return;
  const name = getPath(command).replace(/^flagkeep /, "");
  const other = remoteCommands[name];
  throw new InvalidSettingError(
    `\`${name}\` needs the data directory and does not work with --url.${other === undefined ? "" : ` Use \`flagkeep ${other}\`.`}`,
  );
}

export function isRemote(command: Command): boolean {
  const offers = command.options.some(({ long, hidden }) => long === "--key" && !hidden);
  return offers && toUrl(command.opts()) !== undefined;
}

/**
 * The server that a command is called for; undefined for a data directory.
 *
 * FLAGKEEP_URL, which `flagkeep mcp` reads too, never overrides an explicit data directory.
 *
 * @throws {InvalidSettingError} an unusable URL, or no key.
 */
export function getServer(options: CallOptions): Server | undefined {
  const url = toUrl(options);
  if (url === undefined) return undefined;
  if (options.dataDir !== undefined)
    throw new InvalidSettingError("--url and --data-dir exclude each other.");
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new InvalidSettingError(
      `Invalid URL "${url}": expected an address such as https://flags.example.com.`,
    );
  const key = options.key ?? process.env.FLAGKEEP_API_KEY;
  if (!key)
    throw new InvalidSettingError("A server requires a personal API key. Use --key or set FLAGKEEP_API_KEY.");
  return { url: url.replace(/\/+$/, ""), key };
}

function toUrl(options: Pick<CallOptions, "url" | "dataDir">): string | undefined {
  if (options.url !== undefined) return options.url;
  const { FLAGKEEP_URL: url, FLAGKEEP_DATA_DIR: dataDir } = process.env;
  return options.dataDir === undefined && !dataDir && url ? url : undefined;
}
