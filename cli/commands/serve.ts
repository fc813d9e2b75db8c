import { Command } from "commander";
import { type Initialised, initialise, isInitialised } from "../../src/accounts/initialise.ts";
import { listKeys, revokeKey } from "../../src/accounts/personal-keys.ts";
import { type BackupSchedule, startSchedule } from "../../src/backup/schedule.ts";
import { type Config, type SettingName, settings } from "../../src/config.ts";
import { createLog } from "../../src/log.ts";
import { Appliance } from "../../src/serve/appliance.ts";
import { fail, failServing, isOutputGone, print, printJson, run } from "../output.ts";
import { engineCommand, ownCommand } from "../roles.ts";
import { configOf, withSettings } from "../settings.ts";

/** The personal key is printed only where a person sees it. */
const isForPerson = process.stdout.isTTY === true;

export const serve = withSettings(new Command("serve"), Object.keys(settings) as SettingName[])
  .description("Start the appliance: flags, capture and management API on one address.")
  .option(
    "--project-api-key <phc_…>",
    "on an empty data directory: adopt a project key that deployed apps use already",
  )
  .addHelpText(
    "after",
    "\nEvery setting can be given by its environment variable as well.\n\nExamples:\n  flagkeep serve\n" +
      "  flagkeep serve --data-dir /var/lib/flagkeep --host 0.0.0.0 --public-url https://flags.example.com",
  )
  .action(
    run(async (options: Record<string, unknown>) => {
      outliveReaders();
      const config = configOf(options);
      const log = createLog(config["log-level"], config["log-format"]);
      const appliance = new Appliance(config, log, engineCommand(), failServing);
      const made = isInitialised(appliance.metadata.db)
        ? undefined
        : initialise(appliance.metadata, {
            organization: "Default Organization",
            project: "Default Project",
            email: "owner@example.com",
            projectApiKey: options.projectApiKey as string | undefined,
          });
      // Where no person reads it, a key that nobody knows would stay behind.
      if (made !== undefined && !isForPerson) {
        for (const { id } of listKeys(appliance.metadata.db)) revokeKey(appliance.metadata, id);
      }
      const schedule = startSchedule(config, ownCommand(), log);
      stopOnSignals(appliance, schedule);
      const url = await appliance.start().catch((error: unknown) => {
        appliance.kill();
        return failServing(error);
      });
      announce(made, url, config);
    }),
  );

function announce(made: Initialised | undefined, url: string, config: Config): void {
  try {
    if (config["log-format"] === "json")
      printJson({ level: "info", time: new Date().toISOString(), msg: "listening", url });
    else print(`Flagkeep is listening on ${url}`);
    if (made !== undefined) welcome(made, url, config);
  } catch (error) {
    if (!isOutputGone(error)) throw error;
  }
}

/** Whoever reads the output may go away; capture and flags go on. */
function outliveReaders(): void {
  process.stdout.removeListener("error", fail);
  process.stdout.on("error", () => undefined);
}

/** A first signal stops in order; a second one ends the process at once. */
function stopOnSignals(appliance: Appliance, schedule: BackupSchedule | undefined): void {
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) {
      appliance.kill();
      process.exit(1);
    }
    isStopping = true;
    Promise.all([schedule?.stop(), appliance.stop()]).then(() => process.exit(0), failServing);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/** What the owner of a new data directory needs to know, once. */
function welcome(made: Initialised, url: string, config: Config): void {
  if (config["log-format"] === "json") {
    printJson({
      level: "info",
      time: new Date().toISOString(),
      msg: "initialised",
      project_id: made.project.id,
      project_api_key: made.project.api_key,
      personal_key_command: `flagkeep keys create --scope '*' --data-dir ${config["data-dir"]}`,
    });
    return;
  }
  print();
  print("This is a new data directory. Its project has the key");
  print(`  ${made.project.api_key}`);
  print("Send a first event:");
  print(`  curl ${url}/capture/ -H 'Content-Type: application/json' \\`);
  print(`    -d '{"api_key":"${made.project.api_key}","event":"hello","distinct_id":"me"}'`);
  if (isForPerson) {
    print("Your personal key for the management API, shown this once:");
    print(`  ${made.personal_api_key}`);
    print("List the event:");
    print(
      `  curl ${url}/api/projects/${made.project.id}/events/ -H 'Authorization: Bearer ${made.personal_api_key}'`,
    );
  } else {
    print("Make a personal key for the management API:");
    print(`  flagkeep keys create --scope '*' --data-dir ${config["data-dir"]}`);
  }
  print();
}
