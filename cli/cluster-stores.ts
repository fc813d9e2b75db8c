/**
 * Runs commands about flags, keys, projects and users on a cluster: on a copy of the store, as on a data directory,
 * while no node can change anything. Changes are committed to the cluster when the command ends.
 */

import type { Command } from "commander";
import { isReplica } from "../src/cluster/replica-marker.ts";
import { postgresAddress } from "../src/config/secrets.ts";
import { AppError } from "../src/lib/errors.ts";
import { paths } from "../src/paths.ts";
import type { PersonReader } from "../src/persons/person-reader.ts";
import { assertLocalData } from "../src/serve/local-data.ts";
import type { ClusterSession } from "./cluster-session.ts";
import { getPath } from "./output.ts";
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

/** Commands that read persons: of a node's data directory, or of PostgreSQL if they are rows there. */
const personReaders = ["flags explain", "persons list", "persons get"];

/** The command reads persons, and the given data directory has none. */
class NoLocalPersonsError extends AppError {
  readonly code = "no_persons_here";
  override readonly hint = "Run it on a node with its --data-dir, or use the API or console of a node.";
}

let session: ClusterSession | undefined;
let personRows: PersonReader | undefined;
/** The data directory given to the command, for example that of a node on this machine. */
let reportedFolder: string | undefined;

/** Adds the cluster options to the commands that can work on a cluster. */
export function withSharedSettings(program: Command): void {
  for (const leaf of getLeaves(program).filter(isClusterCommand)) {
    const longs = leaf.options.map(({ long }) => long);
    if (longs.includes("--data-dir") && !longs.includes("--postgres-url"))
      withSettings(leaf, ["postgres-url", "postgres-password-file"]);
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
  const dataDir = getDataDir(options);
  const readsPersons = personReaders.includes(getCommandPath(command));
  // It changes nothing, and the copies of a running node are never far behind.
  if (readsPersons && (await hasPersonCopies(dataDir))) return false;
  if (address === null) {
    assertLocalData(dataDir);
    return false;
  }
  const { ClusterSession } = await import("./cluster-session.ts");
  session = await ClusterSession.start(address);
  if (readsPersons) {
    personRows = session.persons;
    if (personRows === undefined && !isReplica(paths(dataDir).metadata))
      throw new NoLocalPersonsError("This command requires persons, which only nodes have a copy of.");
  }
  reportedFolder = dataDir;
  command.setOptionValue("dataDir", session.folder);
  return true;
}

/**
 * Resolves once the changes are committed to the cluster. @throws {PostgresUnreachableError} the commit is uncertain.
 */
export async function closeClusterSession(): Promise<void> {
  await session?.end();
}

/** Whether a data directory is that of a node, and persons are replicated to it. */
async function hasPersonCopies(dataDir: string): Promise<boolean> {
  if (!isReplica(paths(dataDir).metadata)) return false;
  const { withPeople } = await import("./stores.ts");
  return withPeople({ dataDir }, ({ $client }) => $client.query("SELECT 1 FROM person").get() !== null);
}

/** Persons of the cluster, for a command that reads them; undefined: those of the data directory. */
export function clusterPersons(): PersonReader | undefined {
  return personRows;
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
  const usesStore = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
  return usesStore && isClusterCommand(command);
}

function isClusterCommand(command: Command): boolean {
  const path = getCommandPath(command);
  return personReaders.includes(path) || clusterCommands.includes(path.split(" ")[0]!);
}

/** For example `flags explain`. */
const getCommandPath = (command: Command) => getPath(command).split(" ").slice(1).join(" ");

function getLeaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(getLeaves);
}
