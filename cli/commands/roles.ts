import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Command } from "commander";
import type { Metadata } from "../../src/accounts/metadata.ts";
import { flagsAccess, flagsAccessOf } from "../../src/accounts/organizations.ts";
import {
  addRoleMember,
  createRole,
  deleteRole,
  getRoleByName,
  listRoles,
  type Role,
  removeRoleMember,
} from "../../src/accounts/roles.ts";
import { findUserByEmail } from "../../src/accounts/users.ts";
import { NotFound } from "../../src/lib/errors.ts";
import { exactly, Instant } from "../../src/lib/schema.ts";
import { withJson } from "../json-shape.ts";
import { print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenOrganization, creatingAuthor, creatorWords, operator, withMetadata } from "../stores.ts";

interface Options {
  organization?: string;
  json?: true;
}

const everything = { limit: Number.MAX_SAFE_INTEGER, offset: 0 };

const RoleRecord = exactly({
  id: Type.String(),
  name: Type.String(),
  flags_access: Type.Union(flagsAccess.map((level) => Type.Literal(level))),
  /** Addresses. */
  members: Type.Array(Type.String()),
  created_at: Instant,
});
const DeletedRole = exactly({ ...RoleRecord.properties, deleted: Type.Literal(true) });

function record(role: Role): Static<typeof RoleRecord> {
  return {
    id: role.id,
    name: role.name,
    flags_access: flagsAccessOf(role.featureFlagsAccessLevel),
    members: role.members.map(({ user }) => user.email),
    created_at: role.createdAt.toISOString(),
  };
}

/** A command about roles, with the options they all have. */
const command = (name: string, description: string, example: string, shape: TSchema = RoleRecord) =>
  withJson(withSettings(new Command(name), ["data-dir"]), shape)
    .description(description)
    .option("--organization <id>", "organization id; optional if there is one")
    .addHelpText("after", `\nExample:\n  flagkeep roles ${example}`);

/** Opens the store and finds the organisation. */
function withOrganization(options: Options, work: (metadata: Metadata, organizationId: string) => void) {
  withMetadata(options, (metadata) => work(metadata, chosenOrganization(metadata, options.organization).id));
}

const create = command("create", "Create a role.", "create Release --json")
  .argument("<name>", "display name")
  .option("--user <email>", creatorWords)
  .action(
    run((name: string, options: Options & { user?: string }) =>
      withOrganization(options, (metadata, organizationId) => {
        const by = creatingAuthor(metadata, organizationId, options.user);
        const role = createRole(metadata, { organizationId, name, by }, new Date());
        if (options.json) return printJson(record(role));
        print(`Role ${role.name} (${role.id}) is made.`);
      }),
    ),
  );

const list = command("list", "List roles and their members.", "list --json", Type.Array(RoleRecord)).action(
  run((options: Options) =>
    withOrganization(options, ({ db }, organizationId) => {
      const found = listRoles(db, organizationId, everything).roles.map(record);
      if (options.json) return printJson(found);
      printTable(
        ["id", "name", "flags", "members"],
        found.map((role) => [role.id, role.name, role.flags_access, role.members.join(", ")]),
      );
    }),
  ),
);

const remove = command(
  "delete",
  "Delete a role and the flag access it grants.",
  "delete Release",
  DeletedRole,
)
  .argument("<name>", "role name")
  .action(
    run((name: string, options: Options) =>
      withOrganization(options, (metadata, organizationId) => {
        const role = getRoleByName(metadata.db, organizationId, name);
        deleteRole(metadata, { organizationId, id: role.id, by: operator() }, new Date());
        if (options.json) return printJson({ ...record(role), deleted: true });
        print(`Role ${role.name} is removed.`);
      }),
    ),
  );

const addMember = command("add-member", "Add a user to a role.", "add-member Release ann@example.com")
  .argument("<role>", "role name")
  .argument("<email>", "e-mail address")
  .action(
    run((name: string, email: string, options: Options) =>
      withOrganization(options, (metadata, organizationId) => {
        const { id: roleId } = getRoleByName(metadata.db, organizationId, name);
        const user = findUserByEmail(metadata.db, email);
        if (user === undefined) throw new NotFound(`There is no user with the address ${email}.`);
        addRoleMember(metadata, { organizationId, roleId, userUuid: user.uuid, by: operator() }, new Date());
        printMembers(getRoleByName(metadata.db, organizationId, name), options);
      }),
    ),
  );

const removeMember = command(
  "remove-member",
  "Remove a user from a role.",
  "remove-member Release ann@example.com",
)
  .argument("<role>", "role name")
  .argument("<email>", "e-mail address")
  .action(
    run((name: string, email: string, options: Options) =>
      withOrganization(options, (metadata, organizationId) => {
        const role = getRoleByName(metadata.db, organizationId, name);
        const user = findUserByEmail(metadata.db, email);
        const member = role.members.find((one) => one.user.id === user?.id);
        if (member === undefined) throw new NotFound(`${email} does not have the role ${role.name}.`);
        removeRoleMember(
          metadata,
          { organizationId, roleId: role.id, id: member.id, by: operator() },
          new Date(),
        );
        printMembers(getRoleByName(metadata.db, organizationId, name), options);
      }),
    ),
  );

function printMembers(role: Role, { json }: Options): void {
  if (json) printJson(record(role));
  else print(`Role ${role.name}: ${record(role).members.join(", ") || "nobody"}.`);
}

export const roles = new Command("roles")
  .description("Manage roles, which grant flag editing where members can only view.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep roles create Editors\n  flagkeep roles add-member Editors ann@example.com",
  )
  .addCommand(create)
  .addCommand(list)
  .addCommand(remove)
  .addCommand(addMember)
  .addCommand(removeMember);
