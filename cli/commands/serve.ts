import { Command } from "commander";
import { MetadataCorruptError } from "../../src/accounts/db.ts";
import { type Initialized, initialize, isInitialized } from "../../src/accounts/initialize.ts";
import type { Metadata } from "../../src/accounts/metadata.ts";
import { listKeys, revokeKey } from "../../src/accounts/personal-keys.ts";
import type { Project } from "../../src/accounts/project-directory.ts";
import { startSchedule } from "../../src/backup/schedule.ts";
import { unknownVariables } from "../../src/config/read.ts";
import { type Config, type SettingName, settings } from "../../src/config/settings.ts";
import { assertAddressAvailable } from "../../src/http/server.ts";
import { isCorruptSqlite } from "../../src/lib/errors.ts";
import { postgresUrl } from "../../src/lib/store-urls.ts";
import { shellWord } from "../../src/lib/terminal-text.ts";
import { createLog, type Log } from "../../src/log.ts";
import { startScrubs } from "../../src/operate/scrub-schedule.ts";
import { restoreAdvice } from "../../src/operate/sqlite-corruption.ts";
import { paths } from "../../src/paths.ts";
import type { ClusterNode } from "../../src/serve/cluster-node";
import { assertNoEvents, openDataDirectory } from "../../src/serve/data-directory.ts";
import { FlagkeepServer } from "../../src/serve/flagkeep-server.ts";
import { ownerLink } from "../console-link.ts";
import { commandName } from "../data-dir.ts";
import { fail, failServing, isOutputClosed, print, printJson, run } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { engineCommand, selfCommand, sqliteCheckCommand, workerCommand } from "../subprocess.ts";

/** The personal key is printed only on a terminal. */
const isTerminal = process.stdout.isTTY === true;

export const serve = withSettings(new Command("serve"), Object.keys(settings) as SettingName[])
  .description("Start the server: flags, capture and management API on one address.")
  .option(
    "--project-api-key <phc_…>",
    "on an empty data directory: existing project key (phc_…) to adopt, so that deployed apps keep working",
  )
  .addHelpText(
    "after",
    "\nEvery setting also has an environment variable.\n\nExamples:\n  flagkeep serve\n" +
      "  flagkeep serve --data-dir /var/lib/flagkeep --host 0.0.0.0 --public-url https://flags.example.com",
  )
  .action(
    run(async (options: Record<string, unknown>) => {
      outliveReaders();
      const config = configFromOptions(options);
      try {
        await start(config, options);
      } catch (error) {
        // A corrupt people.sqlite does not prevent the start.
        throw isCorruptSqlite(error) ? metadataCorrupt(config["data-dir"], error) : error;
      }
    }),
  );

function metadataCorrupt(dataDir: string, error: unknown): MetadataCorruptError {
  return new MetadataCorruptError(paths(dataDir).metadata, error, restoreAdvice(dataDir));
}

async function start(config: Config, options: Record<string, unknown>): Promise<void> {
  const log = createLog(config["log-level"], config["log-format"]);
  const unknown = unknownVariables(process.env);
  if (unknown.length > 0) log.warn({ variables: unknown }, "ignored unknown environment variables");
  // Before creating the data directory: a failed start leaves nothing behind.
  await assertAddressAvailable(config.host, config.port);
  const directory = openDataDirectory(config["data-dir"]);
  const shared = await getClusterNode(config, log);
  const server = new FlagkeepServer(
    config,
    log,
    directory,
    {
      own: selfCommand(),
      engine: engineCommand(),
      sqliteCheck: sqliteCheckCommand(),
      worker: workerCommand(),
    },
    failServing,
    shared,
  );
  await shared?.attach(server.metadata, failServing);
  const initialized = await server.together(() =>
    firstStart(server.metadata, config["data-dir"], options.projectApiKey as string | undefined),
  );
  const waiting = initialized === undefined ? projectWithoutEvents(server.metadata) : undefined;
  if (shared !== undefined && config["backup-schedule"] !== "")
    log.warn(
      "the backup schedule does nothing: back up PostgreSQL and ClickHouse, see docs/operations/cluster.md",
    );
  const schedule = startSchedule(
    shared === undefined ? config : { ...config, "backup-schedule": "" },
    selfCommand(),
    log,
  );
  stopOnSignals(server, [schedule, startScrubs(config, selfCommand(), log)]);
  const url = await server.start().catch((error: unknown) => {
    server.kill();
    return failServing(isCorruptSqlite(error) ? metadataCorrupt(config["data-dir"], error) : error);
  });
  const link = await server.together(() => ownerLink(server.metadata, config, url));
  announce({ initialized, waiting, link }, url, config);
}

/** Loaded for clusters only, to save the memory of PostgreSQL's client. */
async function getClusterNode(config: Config, log: Log): Promise<ClusterNode | undefined> {
  if (config["postgres-url"] === null) return undefined;
  const { ClusterNode } = await import("../../src/serve/cluster-node");
  return await ClusterNode.open(config, log);
}

/** Creates the first organization of an empty data directory. @throws {MissingMetadataError} */
function firstStart(metadata: Metadata, dataDir: string, projectApiKey?: string): Initialized | undefined {
  if (isInitialized(metadata.db)) return undefined;
  assertNoEvents(dataDir);
  const initialized = initialize(metadata, {
    organization: "Default Organization",
    project: "Default Project",
    email: "owner@example.com",
    projectApiKey,
  });
  // If no user sees the output, an unknown key would stay valid.
  if (!isTerminal) for (const { id } of listKeys(metadata.db)) revokeKey(metadata, id);
  return initialized;
}

/** The first project, while no project has an event. */
function projectWithoutEvents({ projects }: Metadata): Project | undefined {
  const open = projects.list();
  return open.some(({ ingestedEvent }) => ingestedEvent) ? undefined : open[0];
}

/** Start messages in addition to the URL. */
interface News {
  initialized: Initialized | undefined;
  waiting: Project | undefined;
  /** URL at which the first owner chooses a password; undefined without the console. */
  link: string | undefined;
}

function announce({ initialized, waiting, link }: News, url: string, config: Config): void {
  try {
    if (config["log-format"] === "json")
      printJson({ level: "info", time: new Date().toISOString(), msg: "listening", url });
    else print(`Flagkeep is listening on ${url}`);
    if (initialized !== undefined) welcome(initialized, url, config);
    if (waiting !== undefined) printReminder(waiting, url, config);
    if (link !== undefined) printOwnerLink(link, config);
  } catch (error) {
    if (!isOutputClosed(error)) throw error;
  }
}

/** Sign-in is impossible before the first owner has chosen a password. */
function printOwnerLink(link: string, config: Config): void {
  if (config["log-format"] === "json") {
    const time = new Date().toISOString();
    printJson({ level: "info", time, msg: "no user has signed in yet", console_url: link });
    return;
  }
  print(`Open ${link}`);
  print("to choose a password for the console; the link works once within 24 hours.");
}

/** The reader of the output may exit; capture and flags continue. */
function outliveReaders(): void {
  process.stdout.removeListener("error", fail);
  process.stdout.on("error", () => undefined);
}

/** The first signal stops gracefully; a second one exits immediately. */
function stopOnSignals(
  server: FlagkeepServer,
  schedules: readonly ({ stop(): Promise<void> } | undefined)[],
): void {
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) {
      server.kill();
      process.exit(1);
    }
    isStopping = true;
    Promise.all([...schedules.map((schedule) => schedule?.stop()), server.stop()]).then(
      () => process.exit(0),
      failServing,
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/** Until the first event arrives: the operator may have missed the first start's output. */
function printReminder({ id, name, apiToken }: Project, url: string, config: Config): void {
  if (config["log-format"] === "json") {
    printJson({
      level: "info",
      time: new Date().toISOString(),
      msg: "no event received yet",
      project_id: id,
      project_api_key: apiToken,
    });
    return;
  }
  print();
  print(`No event received yet. Key of project ${id} (${name}):`);
  printFirstEvent(apiToken, url);
  print();
}

function printFirstEvent(apiKey: string, url: string): void {
  print(`  ${apiKey}`);
  print("Send a first event:");
  print(`  curl ${url}/capture/ -H 'Content-Type: application/json' \\`);
  print(`    -d '{"api_key":"${apiKey}","event":"hello","distinct_id":"me"}'`);
}

/** What the owner of a new data directory needs to know. */
function welcome(initialized: Initialized, url: string, config: Config): void {
  if (config["log-format"] === "json") {
    printJson({
      level: "info",
      time: new Date().toISOString(),
      msg: "initialized",
      project_id: initialized.project.id,
      project_api_key: initialized.project.api_key,
      personal_key_command: keyCommand(config),
    });
    return;
  }
  print();
  print("Created a data directory. Project key:");
  printFirstEvent(initialized.project.api_key, url);
  if (isTerminal) {
    print("Personal API key for the management API, shown only once:");
    print(`  ${initialized.personal_api_key}`);
    print("List the event:");
    print(
      `  curl ${url}/api/projects/${initialized.project.id}/events/ -H 'Authorization: Bearer ${initialized.personal_api_key}'`,
    );
  } else {
    print("Create a personal API key for the management API, in a second terminal:");
    print(`  ${keyCommand(config)}`);
  }
  print();
}

/** On a cluster node the data directory has only copies. */
function keyCommand(config: Config): string {
  const address = config["postgres-url"];
  const dataOption =
    address === null
      ? `--data-dir ${shellWord(config["data-dir"])}`
      : `--postgres-url '${postgresUrl({ ...address, password: "" })}'`;
  return `${commandName()} keys create --scope '*' ${dataOption}`;
}
