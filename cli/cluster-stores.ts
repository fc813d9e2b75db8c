/**
 * Runs commands about flags, keys, projects and users on a cluster: on a copy of the store, as on a data directory,
 * while no node can change anything. Changes are committed to the cluster when the command ends.
 */

import type { Command } from "commander";
import { isReplica } from "../src/cluster/replica-marker.ts";
import { postgresAddress } from "../src/config/secrets.ts";
import { AppError } from "../src/lib/errors.ts";
import { paths } from "../src/paths.ts";
import { assertLocalData } from "../src/serve/local-data.ts";
import type { ClusterSession } from "./cluster-session.ts";
import { configFromOptions, getDataDir, withSettings } from "./settings.ts";

/** Commands that only use the metadata store. */
const clusterCommands = [
  "init",
  "flags",
  "keys",
  "projects",
  "users",
  "members",
  "roles",
  "cohorts",
  "organization",
  "experiments",
];

/** Commands among them that also read persons, of which only a node's data directory has copies. */
const personReaders = ["explain"];

/** The command reads persons, and the given data directory has none. */
class NoLocalPersonsError extends AppError {
  readonly code = "no_persons_here";
  override readonly hint = "Run it on a node with its --data-dir, or use the API or console of a node.";
}

let session: ClusterSession | undefined;
/** The data directory given to the command, for example that of a node on this machine. */
let reportedFolder: string | undefined;

/** Adds the cluster options to the commands that can work on a cluster. */
export function withSharedSettings(program: Command): void {
  for (const command of program.commands.filter((each) => clusterCommands.includes(each.name()))) {
    for (const leaf of getLeaves(command)) {
      const longs = leaf.options.map(({ long }) => long);
      if (longs.includes("--data-dir") && !longs.includes("--postgres-url"))
        withSettings(leaf, ["postgres-url", "postgres-password-file"]);
    }
  }
}

/**
 * Opens the cluster's store if the command works on it.
 *
 * @returns whether it does.
 * @throws {ReplicaOnlyError} it should, but its address is missing. @throws {NoLocalPersonsError}
 * @throws {PostgresUnreachableError} @throws {PostgresRejectedError}
 */
export async function openClusterSession(command: Command): Promise<boolean> {
  if (!isShared(command)) return false;
  const options = command.opts();
  const address = postgresAddress(configFromOptions(options), process.env);
  if (personReaders.includes(command.name())) {
    // It changes nothing, and the copies of a running node are never far behind.
    if (address !== null && !isReplica(paths(getDataDir(options)).metadata))
      throw new NoLocalPersonsError("This command requires persons, which only nodes have a copy of.");
    return false;
  }
  if (address === null) {
    assertLocalData(getDataDir(options));
    return false;
  }
  const { ClusterSession } = await import("./cluster-session.ts");
  session = await ClusterSession.start(address);
  reportedFolder = getDataDir(options);
  command.setOptionValue("dataDir", session.folder);
  return true;
}

/**
 * Resolves once the changes are committed to the cluster. @throws {PostgresUnreachableError} the commit is uncertain.
 */
export async function closeClusterSession(): Promise<void> {
  await session?.end();
}

/** The time that a command records for its changes. */
export function changeTime(): Date {
  return session?.now ?? new Date();
}

/** Data directory of a possible node on this machine, for a command on the cluster; otherwise undefined. */
export function nodeDataDir(): string | undefined {
  return reportedFolder;
}

function isShared(command: Command): boolean {
  let top = command;
  while (top.parent?.parent) top = top.parent;
  const usesStore = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
  return usesStore && clusterCommands.includes(top.name());
}

function getLeaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(getLeaves);
}
