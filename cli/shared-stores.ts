/**
 * Commands about flags, keys, projects and users where several fronts share them: the command works on a copy, as it does on
 * a data directory, while no front changes anything; what it has changed is everybody's when it ends.
 */

import type { Command } from "commander";
import { postgresAddress } from "../src/config/store-addresses.ts";
import { requireOwnData } from "../src/serve/own-data.ts";
import { configOf, dataDirOf, withSettings } from "./settings.ts";
import type { SharedSession } from "./shared-session.ts";

/** Those that read and change nothing but the store of metadata. */
const sharedCommands = [
  ...["init", "flags", "keys", "projects", "users", "members", "roles", "cohorts", "organization"],
];

let session: SharedSession | undefined;

/** Lets the commands that can work for all fronts be told where these have their data. */
export function withSharedSettings(program: Command): void {
  for (const command of program.commands.filter((each) => sharedCommands.includes(each.name()))) {
    for (const leaf of leavesOf(command)) {
      const longs = leaf.options.map(({ long }) => long);
      if (longs.includes("--data-dir") && !longs.includes("--postgres-url"))
        withSettings(leaf, ["postgres-url", "postgres-password-file"]);
    }
  }
}

/**
 * Brings the store of all fronts here, when the command works on it.
 *
 * @returns whether it does. @throws {OnlyCopies} it should, but is not told where it is.
 * @throws {PostgresUnreachable} @throws {PostgresRefuses}
 */
export async function beginShared(command: Command): Promise<boolean> {
  if (!isShared(command)) return false;
  const options = command.opts();
  const address = postgresAddress(configOf(options), process.env);
  if (address === null) {
    requireOwnData(dataDirOf(options));
    return false;
  }
  const { SharedSession } = await import("./shared-session.ts");
  session = await SharedSession.begin(address);
  command.setOptionValue("dataDir", session.folder);
  return true;
}

/** What the command has changed is everybody's when this resolves. @throws {PostgresUnreachable} it may not be. */
export async function endShared(): Promise<void> {
  await session?.end();
}

function isShared(command: Command): boolean {
  let top = command;
  while (top.parent?.parent) top = top.parent;
  const usesStore = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
  return usesStore && sharedCommands.includes(top.name());
}

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}
