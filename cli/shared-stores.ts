/**
 * Commands about flags, keys, projects and users where several fronts share them: the command works on a copy, as it does on
 * a data directory, while no front changes anything; what it has changed is everybody's when it ends.
 */

import type { Command } from "commander";
import { postgresAddress } from "../src/config/secrets.ts";
import { AppError } from "../src/lib/errors.ts";
import { paths } from "../src/paths.ts";
import { isCopy } from "../src/postgres/copy-mark.ts";
import { requireOwnData } from "../src/serve/own-data.ts";
import { configOf, dataDirOf, withSettings } from "./settings.ts";
import type { SharedSession } from "./shared-session.ts";

/** Those that read and change nothing but the store of metadata. */
const sharedCommands = [
  ...["init", "flags", "keys", "projects", "users", "members", "roles", "cohorts", "organization"],
];

/** Those of them that read persons, too, of which only a front's data directory has copies. */
const personReaders = ["explain"];

/** The command reads persons, and there are none where it is told to look. */
class NoPersonsHere extends AppError {
  readonly code = "no_persons_here";
  override readonly hint =
    "Run it on the machine of a front, with --data-dir of that front; or ask a front's API or console.";
}

let session: SharedSession | undefined;
/** The data directory that the command was told, such as that of a front on this machine. */
let toldFolder: string | undefined;

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
 * @returns whether it does. @throws {OnlyCopies} it should, but is not told where it is. @throws {NoPersonsHere}
 * @throws {PostgresUnreachable} @throws {PostgresRefuses}
 */
export async function beginShared(command: Command): Promise<boolean> {
  if (!isShared(command)) return false;
  const options = command.opts();
  const address = postgresAddress(configOf(options), process.env);
  if (personReaders.includes(command.name())) {
    // It changes nothing, and the copies of a front that runs are never far behind.
    if (address !== null && !isCopy(paths(dataDirOf(options)).metadata))
      throw new NoPersonsHere("The persons that this command looks at are copied to the fronts alone.");
    return false;
  }
  if (address === null) {
    requireOwnData(dataDirOf(options));
    return false;
  }
  const { SharedSession } = await import("./shared-session.ts");
  session = await SharedSession.begin(address);
  toldFolder = dataDirOf(options);
  command.setOptionValue("dataDir", session.folder);
  return true;
}

/** What the command has changed is everybody's when this resolves. @throws {PostgresUnreachable} it may not be. */
export async function endShared(): Promise<void> {
  await session?.end();
}

/** Where a front may run on this machine, of a command that works for all of them; undefined of any other. */
export function frontsDataDir(): string | undefined {
  return toldFolder;
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
