import { Type } from "@sinclair/typebox";
import { Command, Option } from "commander";
import {
  type FlagsAccess,
  flagsAccess,
  flagsAccessLevels,
  updateOrganization,
} from "../../src/accounts/organizations.ts";
import { exactly } from "../../src/lib/schema.ts";
import { withJson } from "../json-shape.ts";
import { print, printJson, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenOrganization, operator, withMetadata } from "../stores.ts";

interface Options {
  flagsAccess: FlagsAccess;
  organization?: string;
  json?: true;
}

const ChangedOrganization = exactly({
  id: Type.String(),
  name: Type.String(),
  flags_access: Type.Union(flagsAccess.map((level) => Type.Literal(level))),
});

const set = withJson(
  withSettings(new Command("set"), ["data-dir"]),
  ChangedOrganization,
  "print the organisation as JSON",
)
  .description("Update organization settings.")
  .addOption(
    new Option("--flags-access <level>", "default access of members to flags: edit or view")
      .choices(flagsAccess)
      .makeOptionMandatory(),
  )
  .option("--organization <id>", "organization id; optional if there is one")
  .addHelpText("after", "\nExample:\n  flagkeep organization set --flags-access view")
  .action(
    run((options: Options) =>
      withMetadata(options, (metadata) => {
        const { id } = chosenOrganization(metadata, options.organization);
        const featureFlagsAccessLevel = flagsAccessLevels[options.flagsAccess];
        const changed = updateOrganization(metadata, id, { featureFlagsAccessLevel }, operator());
        if (options.json) {
          return printJson({ id: changed.id, name: changed.name, flags_access: options.flagsAccess });
        }
        print(`Members of ${changed.name} may ${options.flagsAccess} flags unless a role says otherwise.`);
      }),
    ),
  );

export const organization = new Command("organization")
  .description("Update organization settings.")
  .addHelpText("after", "\nExample:\n  flagkeep organization set --flags-access view")
  .addCommand(set);
