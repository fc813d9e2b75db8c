import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { Initialized, initialize, isInitialized } from "../../src/accounts/initialize.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { openPayloadKey } from "../../src/flags/store/payload-key.ts";
import { strictObject } from "../../src/lib/schema.ts";
import { shellWord } from "../../src/lib/terminal-text.ts";
import { paths } from "../../src/paths.ts";
import { assertNoEvents, openDataDirectory } from "../../src/serve/data-directory.ts";
import { consoleSettings, ownerLink } from "../console-link.ts";
import { commandName } from "../data-dir.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, getDataDir, optionHelp, withSettings } from "../settings.ts";

const InitResult = strictObject({
  ...Initialized.properties,
  /** One-time link for choosing the owner's password, valid for 24 hours. Empty if the console is off. */
  console_url: Type.String(),
});

interface Options {
  organization: string;
  project: string;
  email: string;
  projectApiKey?: string;
  json?: true;
}

export const init = withJson(withSettings(new Command("init"), ["data-dir", ...consoleSettings]), InitResult)
  .description(
    "Create a data directory with an organization, a project, its owner and a first personal API key.",
  )
  .option("--organization <name>", "name of the organization", "Default Organization")
  .option("--project <name>", "name of the project", "Default Project")
  .option("--email <address>", "e-mail address of the owner", "owner@example.com")
  .option(
    "--project-api-key <phc_…>",
    "existing project key (phc_…) to adopt, so that deployed apps keep working",
  )
  .addHelpText(
    "after",
    "\nThe keys are printed once; the personal API key is stored hashed.\n\nExamples:\n" +
      "  flagkeep init --data-dir /var/lib/flagkeep --email me@example.com\n" +
      "  flagkeep init --project-api-key phc_… --json",
  )
  .action(
    run((options: Options) => {
      const dataDir = getDataDir(options as never);
      const lock = openDataDirectory(dataDir);
      const metadata = openMetadata(paths(dataDir).metadata);
      if (!isInitialized(metadata.db)) assertNoEvents(dataDir);
      const initialized = initialize(metadata, options);
      openPayloadKey(paths(dataDir).payloadKey, metadata);
      const setup: Static<typeof InitResult> = {
        ...initialized,
        console_url: ownerLink(metadata, configFromOptions(options as never)) ?? "",
      };
      metadata.close();
      lock.release();
      if (options.json) return printJson(setup);
      print(`Organization     ${setup.organization.name} (${setup.organization.id})`);
      print(`Project          ${setup.project.name} (${setup.project.id})`);
      print(`Project API key  ${setup.project.api_key}`);
      print(`Secret API key   ${setup.project.secret_api_key}`);
      print(`Owner            ${setup.user.email}`);
      print(`Personal key     ${setup.personal_api_key}`);
      if (setup.console_url !== "") print(`Console          ${setup.console_url}`);
      print();
      print("The personal key is shown only once. Start the server with");
      print(`  ${serveCommand(options as never)}`);
      if (setup.console_url === "") return;
      print("then open the console link within 24 hours to choose a password; it works once.");
    }),
  );

/** Includes the settings of this call that `serve` would otherwise not have. */
function serveCommand(options: Record<string, unknown>): string {
  const sent = optionHelp(options, ["data-dir", ...consoleSettings]);
  return [commandName(), "serve", ...sent.map(shellWord)].join(" ");
}
