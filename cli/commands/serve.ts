import { Command } from "commander";
import { type Initialised, initialise, isInitialised } from "../../src/accounts/initialise.ts";
import type { Metadata } from "../../src/accounts/metadata.ts";
import { listKeys, revokeKey } from "../../src/accounts/personal-keys.ts";
import type { Project } from "../../src/accounts/project-directory.ts";
import { startSchedule } from "../../src/backup/schedule.ts";
import { unknownVariables } from "../../src/config/read.ts";
import { type Config, type SettingName, settings } from "../../src/config/settings.ts";
import { requireFreeAddress } from "../../src/http/address.ts";
import { postgresUrl } from "../../src/lib/postgres-address.ts";
import { shellWord } from "../../src/lib/shell-text.ts";
import { createLog, type Log } from "../../src/log.ts";
import { startScrubs } from "../../src/operate/scrub/schedule.ts";
import { Appliance } from "../../src/serve/appliance.ts";
import { requireNoEvents, takeDirectory } from "../../src/serve/data-directory.ts";
import type { SharedFront } from "../../src/serve/shared-front.ts";
import { commandName } from "../command-name.ts";
import { ownerLink } from "../console-link.ts";
import { fail, failServing, isOutputGone, print, printJson, run } from "../output.ts";
import { engineCommand, ownCommand } from "../roles.ts";
import { configOf, withSettings } from "../settings.ts";

/** The personal key is printed only where a person sees it. */
const isForPerson = process.stdout.isTTY === true;

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
      const config = configOf(options);
      const log = createLog(config["log-level"], config["log-format"]);
      const unknown = unknownVariables(process.env);
      if (unknown.length > 0)
        log.warn({ variables: unknown }, "these variables are no settings and do nothing");
      // Before the data directory is made: a start that fails leaves nothing.
      await requireFreeAddress(config.host, config.port);
      const directory = takeDirectory(config["data-dir"]);
      const shared = await sharedFrontOf(config, log);
      const appliance = new Appliance(
        config,
        log,
        directory,
        { own: ownCommand(), engine: engineCommand() },
        failServing,
        shared,
      );
      await shared?.attach(appliance.metadata);
      const made = await appliance.together(() =>
        firstStart(appliance.metadata, config["data-dir"], options.projectApiKey as string | undefined),
      );
      const waiting = made === undefined ? projectWithoutEvents(appliance.metadata) : undefined;
      if (shared !== undefined && config["backup-schedule"] !== "")
        log.warn(
          "the backup schedule does nothing: back up PostgreSQL and ClickHouse, see docs/operations/cluster.md",
        );
      const schedule = startSchedule(
        shared === undefined ? config : { ...config, "backup-schedule": "" },
        ownCommand(),
        log,
      );
      stopOnSignals(appliance, [schedule, startScrubs(config, ownCommand(), log)]);
      const url = await appliance.start().catch((error: unknown) => {
        appliance.kill();
        return failServing(error);
      });
      const link = await appliance.together(() => ownerLink(appliance.metadata, config, url));
      announce({ made, waiting, link }, url, config);
    }),
  );

/** Loaded where there are several: elsewhere PostgreSQL's client would be in memory for nothing. */
async function sharedFrontOf(config: Config, log: Log): Promise<SharedFront | undefined> {
  if (config["postgres-url"] === null) return undefined;
  const { SharedFront } = await import("../../src/serve/shared-front.ts");
  return await SharedFront.open(config, log);
}

/** Makes the first organisation of an empty data directory. @throws {MetadataMissing} */
function firstStart(metadata: Metadata, dataDir: string, projectApiKey?: string): Initialised | undefined {
  if (isInitialised(metadata.db)) return undefined;
  requireNoEvents(dataDir);
  const made = initialise(metadata, {
    organization: "Default Organization",
    project: "Default Project",
    email: "owner@example.com",
    projectApiKey,
  });
  // Where no person reads it, a key that nobody knows would stay behind.
  if (!isForPerson) for (const { id } of listKeys(metadata.db)) revokeKey(metadata, id);
  return made;
}

/** The first project, as long as no project has had an event. */
function projectWithoutEvents({ projects }: Metadata): Project | undefined {
  const open = projects.list();
  return open.some(({ ingestedEvent }) => ingestedEvent) ? undefined : open[0];
}

/** What a start has to say besides the address. */
interface News {
  made: Initialised | undefined;
  waiting: Project | undefined;
  /** Where the first owner chooses a password, if there is a console. */
  link: string | undefined;
}

function announce({ made, waiting, link }: News, url: string, config: Config): void {
  try {
    if (config["log-format"] === "json")
      printJson({ level: "info", time: new Date().toISOString(), msg: "listening", url });
    else print(`Flagkeep is listening on ${url}`);
    if (made !== undefined) welcome(made, url, config);
    if (waiting !== undefined) remind(waiting, url, config);
    if (link !== undefined) invite(link, config);
  } catch (error) {
    if (!isOutputGone(error)) throw error;
  }
}

/** Nobody can sign in before the first owner has chosen a password. */
function invite(link: string, config: Config): void {
  if (config["log-format"] === "json") {
    const time = new Date().toISOString();
    printJson({ level: "info", time, msg: "nobody has signed in yet", console_url: link });
    return;
  }
  print(`Open ${link}`);
  print("to choose a password for the console; the link works once, for 24 hours.");
}

/** Whoever reads the output may go away; capture and flags go on. */
function outliveReaders(): void {
  process.stdout.removeListener("error", fail);
  process.stdout.on("error", () => undefined);
}

/** A first signal stops in order; a second one ends the process at once. */
function stopOnSignals(
  appliance: Appliance,
  schedules: readonly ({ stop(): Promise<void> } | undefined)[],
): void {
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) {
      appliance.kill();
      process.exit(1);
    }
    isStopping = true;
    Promise.all([...schedules.map((schedule) => schedule?.stop()), appliance.stop()]).then(
      () => process.exit(0),
      failServing,
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/** Until the first event arrives: the operator may have missed the first start's output. */
function remind({ id, name, apiToken }: Project, url: string, config: Config): void {
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
  howToSend(apiToken, url);
  print();
}

function howToSend(apiKey: string, url: string): void {
  print(`  ${apiKey}`);
  print("Send a first event:");
  print(`  curl ${url}/capture/ -H 'Content-Type: application/json' \\`);
  print(`    -d '{"api_key":"${apiKey}","event":"hello","distinct_id":"me"}'`);
}

/** What the owner of a new data directory needs to know. */
function welcome(made: Initialised, url: string, config: Config): void {
  if (config["log-format"] === "json") {
    printJson({
      level: "info",
      time: new Date().toISOString(),
      msg: "initialised",
      project_id: made.project.id,
      project_api_key: made.project.api_key,
      personal_key_command: keyCommand(config),
    });
    return;
  }
  print();
  print("Created a data directory. Project key:");
  howToSend(made.project.api_key, url);
  if (isForPerson) {
    print("Personal API key for the management API, shown only once:");
    print(`  ${made.personal_api_key}`);
    print("List the event:");
    print(
      `  curl ${url}/api/projects/${made.project.id}/events/ -H 'Authorization: Bearer ${made.personal_api_key}'`,
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
  const place =
    address === null
      ? `--data-dir ${shellWord(config["data-dir"])}`
      : `--postgres-url '${postgresUrl({ ...address, password: "" })}'`;
  return `${commandName()} keys create --scope '*' ${place}`;
}
