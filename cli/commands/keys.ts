import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import type { Metadata } from "../../src/accounts/metadata.ts";
import {
  createKey,
  listKeys,
  type PersonalKey,
  revokeKey,
  rollKey,
} from "../../src/accounts/personal-keys.ts";
import { listUsers } from "../../src/accounts/users.ts";
import { AppError } from "../../src/lib/errors.ts";
import { DateTime, nullable, strictObject } from "../../src/lib/schema.ts";
import { changeTime } from "../cluster-stores.ts";
import { withJson } from "../json-schema.ts";
import { collect, durationFromNow, positiveInteger, print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { AmbiguousSelectorError, osUserAuthor, resolveProjects, withMetadata } from "../stores.ts";

const shownMembers = {
  id: Type.String(),
  label: Type.String(),
  mask_value: Type.String(),
  user: Type.String(),
  scopes: Type.Array(Type.String()),
  scoped_teams: Type.Array(Type.Integer()),
  scoped_organizations: Type.Array(Type.String()),
  created_at: DateTime,
  last_used_at: nullable(DateTime),
  expires_at: nullable(DateTime),
};
/** A key; with its clear value if it was just created. */
const KeyRecord = strictObject({ ...shownMembers, value: nullable(Type.String()) });
const NewKeyRecord = strictObject({ ...shownMembers, value: Type.String({ pattern: "^phx_" }) });
const ShownKey = strictObject({ ...shownMembers, revoked_at: nullable(DateTime) });
const RevokedKey = strictObject({ ...KeyRecord.properties, revoked: Type.Literal(true) });

function record(key: PersonalKey, userEmail: string, value: string | null = null): Static<typeof KeyRecord> {
  return {
    id: key.id,
    label: key.label,
    value,
    mask_value: key.mask,
    user: userEmail,
    scopes: key.scopes,
    scoped_teams: key.projectIds,
    scoped_organizations: key.organizationIds,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
  };
}

/** The id matches no key, or no valid one. */
class KeyNotFoundError extends AppError {
  readonly code = "no_such_key";
  override readonly hint = "`flagkeep keys list` shows the IDs.";
}

interface CreateOptions {
  user?: string;
  label: string;
  scope: string[];
  project?: number[];
  expires?: Date;
  json?: true;
}

const create = withJson(
  withSettings(new Command("create"), ["data-dir"]),
  NewKeyRecord,
  "print the key as JSON; its clear value is in `value`",
)
  .description("Create a personal API key and print its value, which is shown only once.")
  .option("--user <email>", "owner of the key; optional if there is one user")
  .option("--label <text>", "description", "Created on the command line")
  .requiredOption(
    "--scope <scope...>",
    "scope: * or <object>:<read|write>, for example feature_flag:read; repeatable",
  )
  .option("--project <id>", "restrict the key to this project; repeatable", collect(positiveInteger))
  .option("--expires <time>", "lifetime, for example 90d or 12h; default: unlimited", durationFromNow)
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep keys create --scope '*' --label laptop\n" +
      "  flagkeep keys create --user ci@example.com --scope feature_flag:read --project 1 --expires 90d --json",
  )
  .action(
    run((options: CreateOptions) =>
      withMetadata(options, (metadata) => {
        const userEmail = options.user ?? onlyUser(metadata);
        for (const id of options.project ?? []) resolveProjects(metadata, id);
        const { key, value } = createKey(
          metadata,
          {
            userEmail,
            label: options.label,
            scopes: options.scope,
            projectIds: options.project,
            expiresAt: options.expires,
          },
          { by: osUserAuthor(), now: changeTime() },
        );
        if (options.json) return printJson(record(key, userEmail, value));
        print(value);
        print(`Key ${key.id} of ${userEmail} with ${key.scopes.join(", ")}. It is shown only once.`);
      }),
    ),
  );

const list = withJson(
  withSettings(new Command("list"), ["data-dir"]),
  Type.Array(KeyRecord),
  "print the keys as JSON",
)
  .description("List active personal API keys, newest first.")
  .addHelpText("after", "\nExample:\n  flagkeep keys list --json")
  .action(
    run((options: { json?: true }) =>
      withMetadata(options, (metadata) => {
        const keys = listKeys(metadata.db);
        const owners = new Map(listUsers(metadata.db).map((user) => [user.email, user]));
        if (options.json) return printJson(keys.map((key) => record(key, key.userEmail)));
        printTable(
          ["id", "key", "user", "label", "scopes", "projects", "expires", "last used"],
          keys.map((key) => [
            key.id,
            key.mask,
            owners.get(key.userEmail)?.isActive === false ? `${key.userEmail} (inactive)` : key.userEmail,
            key.label,
            key.scopes.join(","),
            key.projectIds.join(",") || "all",
            key.expiresAt?.toISOString().slice(0, 16) ?? "never",
            key.lastUsedAt?.toISOString().slice(0, 16) ?? "never",
          ]),
        );
      }),
    ),
  );

const revoke = withJson(
  withSettings(new Command("revoke"), ["data-dir"]),
  RevokedKey,
  "print the revoked key as JSON",
)
  .description("Revoke a personal API key immediately.")
  .argument("<id>", "id shown by `flagkeep keys list`")
  .addHelpText("after", "\nExample:\n  flagkeep keys revoke 01a1fb87-7da1-73f7-80e7-91982e7a2fa3")
  .action(
    run((id: string, options: { json?: true }) =>
      withMetadata(options, (metadata) => {
        const { userEmail } = workingKey(metadata, id);
        const key = revokeKey(metadata, id, changeTime(), osUserAuthor());
        if (options.json) return printJson({ ...record(key, userEmail), revoked: true });
        print(`Key ${key.id} (${key.mask}) is revoked.`);
      }),
    ),
  );

const show = withJson(withSettings(new Command("show"), ["data-dir"]), ShownKey, "print the key as JSON")
  .description("Show a personal API key; its value is not stored.")
  .argument("<id>", "id shown by `flagkeep keys list`")
  .addHelpText("after", "\nExample:\n  flagkeep keys show 01a1fb87-7da1-73f7-80e7-91982e7a2fa3")
  .action(
    run((id: string, options: { json?: true }) =>
      withMetadata(options, (metadata) => {
        const key = listKeys(metadata.db, { includeRevoked: true }).find((one) => one.id === id);
        if (key === undefined) throw new KeyNotFoundError(`Key ${id} does not exist.`);
        const { value: _, ...shown } = record(key, key.userEmail);
        const all = { ...shown, revoked_at: key.revokedAt?.toISOString() ?? null };
        if (options.json) return printJson(all);
        for (const [name, value] of Object.entries(all)) print(`${name.padEnd(22)}${value ?? "-"}`);
      }),
    ),
  );

const roll = withJson(
  withSettings(new Command("roll"), ["data-dir"]),
  NewKeyRecord,
  "print the key as JSON; its clear value is in `value`",
)
  .description("Roll a personal API key: print a new value once; the old value stops working immediately.")
  .argument("<id>", "id shown by `flagkeep keys list`")
  .addHelpText("after", "\nExample:\n  flagkeep keys roll 01a1fb87-7da1-73f7-80e7-91982e7a2fa3 --json")
  .action(
    run((id: string, options: { json?: true }) =>
      withMetadata(options, (metadata) => {
        const { userEmail } = workingKey(metadata, id);
        const { key, value } = rollKey(metadata, id, changeTime(), osUserAuthor());
        if (options.json) return printJson(record(key, userEmail, value));
        print(value);
        print(`Key ${key.id} of ${userEmail} is rolled. It is shown only once.`);
      }),
    ),
  );

export const keys = new Command("keys")
  .description(
    "Create, list, roll and revoke personal API keys; a running server applies changes immediately.",
  )
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep keys create --scope 'feature_flag:read' --label ci\n  flagkeep keys list",
  )
  .addCommand(create)
  .addCommand(list)
  .addCommand(show)
  .addCommand(revoke)
  .addCommand(roll);

/** An unrevoked key. @throws {KeyNotFoundError} */
function workingKey(metadata: Metadata, id: string) {
  const key = listKeys(metadata.db).find((one) => one.id === id);
  if (key === undefined) throw new KeyNotFoundError(`Key ${id} does not exist or is revoked.`);
  return key;
}

function onlyUser(metadata: Metadata): string {
  const users = listUsers(metadata.db);
  if (users.length !== 1)
    throw new AmbiguousSelectorError("Several users exist.", "Name one with --user EMAIL.");
  return users[0]!.email;
}
