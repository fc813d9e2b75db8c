/** Personal API keys, in a data directory or on a server. */

import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { KeyBody, KeyWithValueBody, keyBody } from "../../src/accounts/api/key-schemas.ts";
import { listKeys } from "../../src/accounts/personal-keys.ts";
import { listUsers } from "../../src/accounts/users.ts";
import { AppError } from "../../src/lib/errors.ts";
import { nullable } from "../../src/lib/schema.ts";
import { toApiTimeOrNull } from "../../src/lib/time.ts";
import type { Caller } from "../../src/operations/operation.ts";
import {
  createPersonalKey,
  listPersonalKeys,
  revokePersonalKey,
  rollPersonalKey,
} from "../../src/operations/personal-keys.ts";
import { listAllProjects } from "../../src/operations/projects.ts";
import { getCurrentUser } from "../../src/operations/users.ts";
import { withCaller } from "../operations/command.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import {
  collect,
  durationFromNow,
  positiveInteger,
  print,
  printJson,
  printTable,
  run,
  withJson,
} from "../output.ts";
import { withSettings } from "../settings.ts";
import { AmbiguousSelectorError, withMetadata } from "../stores.ts";

type ApiKey = Static<typeof KeyBody>;
type ApiKeyWithValue = Static<typeof KeyWithValueBody>;

/** The API's key, and its user's e-mail address. */
const user = Type.String();
const KeyRecord = Type.Object({ ...KeyBody.properties, user });
const NewKeyRecord = Type.Object({ ...KeyWithValueBody.properties, user });
const { value: _, ...shownMembers } = KeyRecord.properties;
const ShownKey = Type.Object({ ...shownMembers, revoked_at: nullable(Type.String()) });
const RevokedKey = Type.Object({ ...KeyRecord.properties, revoked: Type.Literal(true) });

/** The id matches no key, or no valid one. */
class KeyNotFoundError extends AppError {
  readonly code = "no_such_key";
  override readonly hint = "`flagkeep keys list` shows the IDs.";
}

interface User {
  email: string;
  isActive: boolean;
}

/** The users of the keys that the caller can see, by id. */
async function getUsers(caller: Caller, options: CallOptions): Promise<Map<number, User>> {
  if (getServer(options) === undefined)
    return withMetadata(options, ({ db }) => new Map(listUsers(db).map((each) => [each.id, each])));
  const { id, email } = (await caller.call(getCurrentUser, { uuid: "@me" })) as { id: number; email: string };
  return new Map([[id, { email, isActive: true }]]);
}

/** An unrevoked key with its user. @throws {KeyNotFoundError} */
async function findKey(caller: Caller, options: CallOptions, id: string): Promise<ApiKey & { user: string }> {
  const keys = (await caller.call(listPersonalKeys, {})) as ApiKey[];
  const key = keys.find((key) => key.id === id);
  if (key === undefined) throw new KeyNotFoundError(`Key ${id} does not exist or is revoked.`);
  return { ...key, user: (await getUsers(caller, options)).get(key.user_id)?.email ?? "" };
}

interface CreateOptions extends Omit<CallOptions, "project"> {
  label: string;
  scope: string[];
  project?: number[];
  expires?: Date;
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
    run(async ({ project: projects, label, scope, expires, ...options }: CreateOptions) => {
      await withCaller(createPersonalKey, options, async (caller) => {
        const owner = options.user ?? (await onlyUser(caller, options));
        await assertProjects(caller, projects ?? []);
        const key = (await caller.call(createPersonalKey, {
          label,
          scopes: scope,
          ...(projects === undefined ? {} : { scoped_teams: projects }),
          ...(expires === undefined ? {} : { expires_at: expires.toISOString() }),
        })) as ApiKeyWithValue;
        if (options.json) return printJson({ ...key, user: owner });
        print(key.value);
        print(`Key ${key.id} of ${owner} with ${key.scopes.join(", ")}. It is shown only once.`);
      });
    }),
  );

/** @throws {AmbiguousSelectorError} several users exist. */
async function onlyUser(caller: Caller, options: CallOptions): Promise<string> {
  const [first, ...others] = [...(await getUsers(caller, options)).values()];
  if (first === undefined || others.length > 0)
    throw new AmbiguousSelectorError("Several users exist.", "Name one with --user EMAIL.");
  return first.email;
}

/** @throws {AmbiguousSelectorError} one does not exist. */
async function assertProjects(caller: Caller, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  const listed = [false, true].map((archived) => caller.list(listAllProjects, { archived }));
  const known = new Set(((await Promise.all(listed)).flat() as { id: number }[]).map(({ id }) => id));
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined)
    throw new AmbiguousSelectorError(
      `Project ${unknown} does not exist.`,
      "See `flagkeep projects list --all`.",
    );
}

const list = withJson(
  withSettings(new Command("list"), ["data-dir"]),
  Type.Array(KeyRecord),
  "print the keys as JSON",
)
  .description("List active personal API keys, newest first; on a server, those of the key's user.")
  .addHelpText("after", "\nExample:\n  flagkeep keys list --json")
  .action(
    run((options: CallOptions) =>
      withCaller(listPersonalKeys, options, async (caller) => {
        const keys = (await caller.call(listPersonalKeys, {})) as ApiKey[];
        const users = await getUsers(caller, options);
        const email = (key: ApiKey) => users.get(key.user_id)?.email ?? "";
        if (options.json) return printJson(keys.map((key) => ({ ...key, user: email(key) })));
        printTable(
          ["id", "key", "user", "label", "scopes", "projects", "expires", "last used"],
          keys.map((key) => [
            key.id,
            key.mask_value,
            users.get(key.user_id)?.isActive === false ? `${email(key)} (inactive)` : email(key),
            key.label,
            key.scopes.join(","),
            key.scoped_teams.join(",") || "all",
            key.expires_at?.slice(0, 16) ?? "never",
            key.last_used_at?.slice(0, 16) ?? "never",
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
    run((id: string, options: CallOptions) =>
      withCaller(revokePersonalKey, options, async (caller) => {
        const key = await findKey(caller, options, id);
        await caller.call(revokePersonalKey, { id });
        if (options.json) return printJson({ ...key, revoked: true });
        print(`Key ${key.id} (${key.mask_value}) is revoked.`);
      }),
    ),
  );

const show = withJson(withSettings(new Command("show"), ["data-dir"]), ShownKey, "print the key as JSON")
  .description("Show a personal API key, in a data directory also a revoked one; its value is not stored.")
  .argument("<id>", "id shown by `flagkeep keys list`")
  .addHelpText("after", "\nExample:\n  flagkeep keys show 01a1fb87-7da1-73f7-80e7-91982e7a2fa3")
  .action(
    run(async (id: string, options: CallOptions) => {
      const all = getServer(options) === undefined ? showHere(id, options) : await showActive(id, options);
      if (options.json) return printJson(all);
      for (const [name, value] of Object.entries(all)) print(`${name.padEnd(22)}${value ?? "-"}`);
    }),
  );

type ShownKey = Static<typeof ShownKey>;

function showHere(id: string, options: CallOptions): ShownKey {
  return withMetadata(options, (metadata) => {
    const key = listKeys(metadata.db, { includeRevoked: true }).find((key) => key.id === id);
    if (key === undefined) throw new KeyNotFoundError(`Key ${id} does not exist.`);
    const { value: _, ...shown } = keyBody(key);
    return { ...shown, user: key.userEmail, revoked_at: toApiTimeOrNull(key.revokedAt) };
  });
}

/** The API has no revoked keys. */
async function showActive(id: string, options: CallOptions): Promise<ShownKey> {
  let shown: ShownKey | undefined;
  await withCaller(listPersonalKeys, options, async (caller) => {
    const { value: _, ...key } = await findKey(caller, options, id);
    shown = { ...key, revoked_at: null };
  });
  return shown!;
}

const roll = withJson(
  withSettings(new Command("roll"), ["data-dir"]),
  NewKeyRecord,
  "print the key as JSON; its clear value is in `value`",
)
  .description("Roll a personal API key: print a new value once; the old value stops working immediately.")
  .argument("<id>", "id shown by `flagkeep keys list`")
  .addHelpText("after", "\nExample:\n  flagkeep keys roll 01a1fb87-7da1-73f7-80e7-91982e7a2fa3 --json")
  .action(
    run((id: string, options: CallOptions) =>
      withCaller(rollPersonalKey, options, async (caller) => {
        const { user: owner } = await findKey(caller, options, id);
        const key = (await caller.call(rollPersonalKey, { id })) as ApiKeyWithValue;
        if (options.json) return printJson({ ...key, user: owner });
        print(key.value);
        print(`Key ${key.id} of ${owner} is rolled. It is shown only once.`);
      }),
    ),
  );

for (const command of [create, list, show, revoke, roll]) withServer(command);

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
