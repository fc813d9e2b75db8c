import { type Static, Type } from "@sinclair/typebox";
import { Argument, Command, Option } from "commander";
import { setMemberLevel } from "../../src/accounts/sessions/members.ts";
import { createSetupLink, setupAddress } from "../../src/accounts/sessions/setup-links.ts";
import {
  assertNotLastOwner,
  createUser,
  findUserByEmail,
  type LevelName,
  setUserActive,
  type User,
} from "../../src/accounts/users.ts";
import { DateTime, strictObject } from "../../src/lib/schema.ts";
import { listAllUsers } from "../../src/operations/users.ts";
import { changeTime } from "../cluster-stores.ts";
import { assertConsole, consoleSettings, getConsoleUrl } from "../console-link.ts";
import { operationCommand } from "../operations/command.ts";
import { organizationOption } from "../options.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { osUserAuthor, resolveOrganization, withMetadata } from "../stores.ts";

interface Options {
  json?: true;
}

const UserRecord = strictObject({
  id: Type.Integer(),
  uuid: Type.String(),
  email: Type.String(),
  first_name: Type.String(),
  is_active: Type.Boolean(),
  created_at: DateTime,
});
const levels = ["member", "admin", "owner"] as const;
const NewUser = strictObject({
  ...UserRecord.properties,
  level: Type.Union(levels.map((level) => Type.Literal(level))),
});

function record(user: User): Static<typeof UserRecord> {
  return {
    id: user.id,
    uuid: user.uuid,
    email: user.email,
    first_name: user.firstName,
    is_active: user.isActive,
    created_at: user.createdAt.toISOString(),
  };
}

const create = withJson(withSettings(new Command("create"), ["data-dir"]), NewUser, "print the user as JSON")
  .description(
    "Create a user. Grant console access with `flagkeep users link`, API access with a personal API key.",
  )
  .argument("<email>", "e-mail address")
  .addOption(new Option("--level <level>", "organization level").choices(levels).default("member"))
  .addOption(organizationOption)
  .addHelpText("after", "\nExample:\n  flagkeep users create ann@example.com --level admin --json")
  .action(
    run((email: string, options: Options & { level: LevelName; organization?: string }) =>
      withMetadata(options, (metadata) => {
        const organizationId = resolveOrganization(metadata, options.organization).id;
        const user = createUser(metadata, {
          by: osUserAuthor(),
          email,
          organizationId,
          level: options.level,
        });
        if (options.json) return printJson({ ...record(user), level: options.level });
        print(`${user.email} is ${options.level === "member" ? "a" : "an"} ${options.level}.`);
      }),
    ),
  );

const switching = (name: "activate" | "deactivate", description: string) =>
  withJson(withSettings(new Command(name), ["data-dir"]), UserRecord, "print the user as JSON")
    .description(description)
    .argument("<email>", "e-mail address")
    .addHelpText("after", `\nExample:\n  flagkeep users ${name} ann@example.com`)
    .action(
      run((email: string, options: Options & { force?: true }) =>
        withMetadata(options, (metadata) => {
          if (name === "deactivate" && !options.force) assertNotLastOwner(metadata.db, email);
          const user = setUserActive(metadata, email, name === "activate", osUserAuthor(), changeTime());
          if (options.json) return printJson(record(user));
          print(`${user.email} is ${user.isActive ? "active" : "inactive"}.`);
        }),
      ),
    );

const MemberLevel = strictObject({ email: Type.String(), level: NewUser.properties.level });

const level = withJson(
  withSettings(new Command("level"), ["data-dir"]),
  MemberLevel,
  "print the member as JSON",
)
  .description("Set a user's organization level: member, admin or owner. The last owner cannot be changed.")
  .argument("<email>", "e-mail address")
  .addArgument(new Argument("<level>", "organization level").choices(levels))
  .addOption(organizationOption)
  .addHelpText("after", "\nExample:\n  flagkeep users level ann@example.com admin")
  .action(
    run((email: string, wanted: LevelName, options: Options & { organization?: string }) =>
      withMetadata(options, (metadata) => {
        const organizationId = resolveOrganization(metadata, options.organization).id;
        const acting = { organizationId, by: osUserAuthor(), now: changeTime() };
        const { user } = setMemberLevel(metadata, acting, email, wanted);
        if (options.json) return printJson({ email: user.email, level: wanted });
        print(`${user.email} is ${wanted === "member" ? "a" : "an"} ${wanted}.`);
      }),
    ),
  );

const SetupLink = strictObject({
  email: Type.String(),
  console_url: Type.String(),
  expires_at: DateTime,
  /** True if the user was created. */
  is_new: Type.Boolean(),
});

const link = withJson(
  withSettings(new Command("link"), ["data-dir", ...consoleSettings]),
  SetupLink,
  "print the link as JSON",
)
  .description("Create a one-time sign-in link to choose a console password; earlier links stop working.")
  .argument("<email>", "e-mail address; a new user is added to the organization")
  .addOption(new Option("--level <level>", "level of a new user").choices(levels).default("member"))
  .option("--organization <id>", "organization a new user joins; optional if there is one")
  .addHelpText(
    "after",
    "\nThe link works once, for 24 hours. Anyone who has it can sign in as that user: keep it secret.\n\n" +
      "Examples:\n  flagkeep users link ann@example.com\n  flagkeep users link new@example.com --level admin --json",
  )
  .action(
    run(async (email: string, options: Options & { level: LevelName; organization?: string }) => {
      const config = configFromOptions(options as never);
      assertConsole(config);
      const base = await getConsoleUrl(config);
      withMetadata(options, (metadata) => {
        const known = findUserByEmail(metadata.db, email);
        const organizationId = () => resolveOrganization(metadata, options.organization).id;
        const user =
          known ??
          createUser(metadata, {
            by: osUserAuthor(),
            email,
            organizationId: organizationId(),
            level: options.level,
          });
        const { token, expiresAt } = createSetupLink(metadata, user, osUserAuthor(), changeTime());
        const created: Static<typeof SetupLink> = {
          email: user.email,
          console_url: setupAddress(base, token),
          expires_at: expiresAt.toISOString(),
          is_new: known === undefined,
        };
        if (options.json) return printJson(created);
        if (created.is_new)
          print(`${user.email} is created: ${options.level === "member" ? "a" : "an"} ${options.level}.`);
        print(created.console_url);
      });
    }),
  );

export const users = new Command("users")
  .description("Create, list and deactivate users; a running server applies changes immediately.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep users create ann@example.com --level admin\n  flagkeep users deactivate ann@example.com",
  )
  .addCommand(create)
  .addCommand(operationCommand(listAllUsers))
  .addCommand(level)
  .addCommand(link)
  .addCommand(
    switching("deactivate", "Deactivate a user and revoke their keys and sessions.").option(
      "--force",
      "also deactivate the last owner",
    ),
  )
  .addCommand(switching("activate", "Reactivate a user and their keys."));
