import { Command, Option } from "commander";
import { createUser, type LevelName, setUserActive, type User, usersById } from "../../src/metadata/users.ts";
import { print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenOrganization, withMetadata } from "../stores.ts";

interface Options {
  json?: true;
}

/** The shape of a user in `--json`. */
function record(user: User) {
  return {
    id: user.id,
    uuid: user.uuid,
    email: user.email,
    first_name: user.firstName,
    is_active: user.isActive,
    created_at: user.createdAt.toISOString(),
  };
}

const create = withSettings(new Command("create"), ["data-dir"])
  .description(
    "Add a person to the organisation. A personal key lets them in: `flagkeep keys create --user`.",
  )
  .argument("<email>", "the person's address")
  .addOption(
    new Option("--level <level>", "what they may do").choices(["member", "admin", "owner"]).default("member"),
  )
  .option("--organization <id>", "which organisation; may be left out when there is one")
  .option("--json", "print the user as JSON")
  .addHelpText("after", "\nExample:\n  flagkeep users create ann@example.com --level admin --json")
  .action(
    run((email: string, options: Options & { level: LevelName; organization?: string }) =>
      withMetadata(options, (metadata) => {
        const organizationId = chosenOrganization(metadata, options.organization).id;
        const user = createUser(metadata, { email, organizationId, level: options.level });
        if (options.json) return printJson({ ...record(user), level: options.level });
        print(`${user.email} is ${options.level === "member" ? "a" : "an"} ${options.level}.`);
      }),
    ),
  );

const list = withSettings(new Command("list"), ["data-dir"])
  .description("List the people who administer this server.")
  .option("--json", "print the users as JSON")
  .addHelpText("after", "\nExample:\n  flagkeep users list --json")
  .action(
    run((options: Options) =>
      withMetadata(options, (metadata) => {
        const found = [...usersById(metadata.db).values()];
        if (options.json) return printJson(found.map(record));
        printTable(
          ["id", "email", "name", "state"],
          found.map((user) => [
            String(user.id),
            user.email,
            user.firstName,
            user.isActive ? "active" : "inactive",
          ]),
        );
      }),
    ),
  );

const switching = (name: "activate" | "deactivate", description: string) =>
  withSettings(new Command(name), ["data-dir"])
    .description(description)
    .argument("<email>", "the person's address")
    .option("--json", "print the user as JSON")
    .addHelpText("after", `\nExample:\n  flagkeep users ${name} ann@example.com`)
    .action(
      run((email: string, options: Options) =>
        withMetadata(options, (metadata) => {
          const user = setUserActive(metadata, email, name === "activate");
          if (options.json) return printJson(record(user));
          print(`${user.email} is ${user.isActive ? "active" : "inactive"}.`);
        }),
      ),
    );

export const users = new Command("users")
  .description("Add, list and switch off people; changes work at once, also in a running appliance.")
  .addCommand(create)
  .addCommand(list)
  .addCommand(switching("deactivate", "Switch a person off: all their keys stop working at once."))
  .addCommand(switching("activate", "Switch a person on again, and their keys with them."));
