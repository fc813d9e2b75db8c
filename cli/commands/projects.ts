import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import type { FullProjectBody } from "../../src/accounts/api/project-schemas.ts";
import { archiveProject, graceSecondsMax } from "../../src/accounts/projects.ts";
import { AppError } from "../../src/lib/errors.ts";
import { DateTime, nullable, strictObject } from "../../src/lib/schema.ts";
import { InvalidSettingError, retentionDaysMax } from "../../src/lib/setting-types.ts";
import type { Caller, Members, Operation } from "../../src/operations/operation.ts";
import {
  revokePublicKey,
  revokeSecretKey,
  rotatePublicKey,
  rotateSecretKeyOf,
} from "../../src/operations/project-keys.ts";
import {
  createProjectInOrganization,
  getProject,
  listAllProjects,
  updateOneProject,
} from "../../src/operations/projects.ts";
import type { PersonReader } from "../../src/persons/person-reader.ts";
import { changeTime } from "../cluster-stores.ts";
import { withCaller } from "../operations/command.ts";
import { LocalStores } from "../operations/local-stores.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { organizationOption, projectHelp } from "../options.ts";
import { parseDuration, positiveInteger, print, printJson, printTable, run, withJson } from "../output.ts";
import { withSettings } from "../settings.ts";
import { osUserAuthor, resolveProject, resolveProjects, withMetadata } from "../stores.ts";

const ProjectRecord = strictObject({
  id: Type.Integer(),
  uuid: Type.String(),
  organization: Type.String(),
  name: Type.String(),
  api_key: Type.String({ pattern: "^phc_" }),
  timezone: Type.String(),
  /** Predecessor of this key while it is valid. */
  api_key_backup: nullable(Type.String()),
  api_key_backup_ends_at: nullable(DateTime),
  /** Until when the predecessor of the secret key is valid. */
  secret_api_key_backup_ends_at: nullable(DateTime),
  /** Event retention; 0: unlimited, null: the server's setting. */
  events_retention_days: nullable(Type.Integer({ minimum: 0 })),
  created_at: DateTime,
  archived_at: nullable(DateTime),
});
/** Includes the secret key if it was just created. */
const ProjectWithSecret = strictObject({
  ...ProjectRecord.properties,
  secret_api_key: Type.String({ pattern: "^phs_" }),
});

type FullProject = Static<typeof FullProjectBody>;

/** With milliseconds, as these commands always printed times. */
const toMillis = (time: string): string => new Date(time).toISOString();
const toMillisOrNull = (time: string | null | undefined) => (time ? toMillis(time) : null);

function record(project: FullProject): Static<typeof ProjectRecord> {
  return {
    id: project.id,
    uuid: project.uuid,
    organization: project.organization,
    name: project.name,
    api_key: project.api_token,
    timezone: project.timezone,
    api_key_backup: project.api_token_backup,
    api_key_backup_ends_at: toMillisOrNull(project.api_token_backup_use?.ends_at),
    secret_api_key_backup_ends_at: toMillisOrNull(project.secret_api_token_backup_use?.ends_at),
    events_retention_days: project.events_retention_days,
    created_at: toMillis(project.created_at),
    archived_at: toMillisOrNull(project.archived_at),
  };
}

class SecretKeyHiddenError extends AppError {
  readonly code = "secret_hidden";
  override readonly hint = "Use an unrestricted key with the scope * of an admin or owner.";
}

/** @throws {SecretKeyHiddenError} */
function getSecret({ id, secret_api_token: secret }: FullProject): string {
  if (secret !== null) return secret;
  throw new SecretKeyHiddenError(`The API key may not see the secret key of project ${id}.`);
}

const recordWithSecret = (project: FullProject) => ({
  ...record(project),
  secret_api_key: getSecret(project),
});

/** Commands print no group types, so that they work without `people.sqlite`. */
class ProjectStores extends LocalStores {
  override get persons(): PersonReader {
    return { groupTypes: async () => [] } as Partial<PersonReader> as PersonReader;
  }
}

/** Runs operations where the options select. */
const withProjects = (operation: Operation, options: CallOptions, work: (caller: Caller) => Promise<void>) =>
  withCaller(operation, options, work, (metadata) => new ProjectStores(metadata, options));

/** Runs one operation of a project. */
const inProject = (
  id: number,
  operation: Operation,
  input: Members,
  options: CallOptions,
  show: (project: FullProject) => void,
) =>
  withProjects(listAllProjects, options, async (caller) => {
    show((await caller.in(id).call(operation, input)) as FullProject);
  });

const list = withJson(
  withSettings(new Command("list"), ["data-dir"]),
  Type.Array(ProjectRecord),
  "print the projects as JSON",
)
  .description("List projects.")
  .option("--all", "include archived projects")
  .addHelpText("after", "\nExample:\n  flagkeep projects list --all --json")
  .action(
    run((options: CallOptions & { all?: true }) =>
      withProjects(listAllProjects, options, async (caller) => {
        if (options.all && getServer(options) !== undefined)
          throw new InvalidSettingError(
            "--all needs the data directory: a server shows unarchived projects.",
          );
        const listed = (await caller.list(listAllProjects, { archived: false })) as { id: number }[];
        const archived = options.all ? await caller.list(listAllProjects, { archived: true }) : [];
        const ids = [...listed, ...(archived as { id: number }[])].map(({ id }) => id);
        const found: Static<typeof ProjectRecord>[] = [];
        for (const id of ids.sort((a, b) => a - b))
          found.push(record((await caller.in(id).call(getProject, {})) as FullProject));
        if (options.json) return printJson(found);
        printTable(
          ["id", "name", "project key", "time zone", "state"],
          found.map((project) => [
            String(project.id),
            project.name,
            project.api_key,
            project.timezone,
            project.archived_at === null ? "open" : "archived",
          ]),
        );
      }),
    ),
  );

const create = withJson(
  withSettings(new Command("create"), ["data-dir"]),
  ProjectWithSecret,
  "print the project as JSON",
)
  .description("Create a project with new keys.")
  .argument("<name>", "display name")
  .option("--timezone <name>", "IANA time zone", "UTC")
  .addOption(organizationOption)
  .addHelpText(
    "after",
    '\nExamples:\n  flagkeep projects create Shop\n  flagkeep projects create "Web shop" --timezone Europe/Berlin --json',
  )
  .action(
    run((name: string, options: CallOptions & { timezone: string }) =>
      withProjects(createProjectInOrganization, options, async (caller) => {
        const input = { name, timezone: options.timezone };
        const created = (await caller.call(createProjectInOrganization, input)) as FullProject;
        if (options.json) return printJson(recordWithSecret(created));
        print(`Project          ${created.name} (${created.id})`);
        print(`Project API key  ${created.api_token}`);
        print(`Secret API key   ${getSecret(created)}`);
      }),
    ),
  );

const rename = withJson(
  withSettings(new Command("rename"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("Rename a project; its keys are kept.")
  .argument("<id>", "project id", positiveInteger)
  .argument("<name>", "new name")
  .addHelpText("after", '\nExample:\n  flagkeep projects rename 2 "Web shop"')
  .action(
    run((id: number, name: string, options: CallOptions) =>
      inProject(id, updateOneProject, { name }, options, (project) => {
        if (options.json) return printJson(record(project));
        print(`Project ${project.id} is now called ${project.name}.`);
      }),
    ),
  );

const showKey = withJson(
  withSettings(new Command("show-key"), ["data-dir"]),
  ProjectWithSecret,
  "print the project with both keys as JSON",
)
  .description("Print the public key of a project.")
  .argument("[id]", projectHelp, positiveInteger)
  .option("--secret", "print the secret key for local evaluation instead")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects show-key\n  flagkeep projects show-key 2 --secret --json",
  )
  .action(
    run((id: number | undefined, options: CallOptions & { secret?: true }) =>
      withProjects(listAllProjects, options, async (caller) => {
        const chosen =
          getServer(options) === undefined
            ? withMetadata(options, (metadata) => resolveProject(metadata, id, "its ID after `show-key`").id)
            : id;
        // On a server, without an id, the current project of the key's user.
        const projectCaller = chosen === undefined ? caller : caller.in(chosen);
        const project = (await projectCaller.call(getProject, {})) as FullProject;
        if (options.json) return printJson(recordWithSecret(project));
        print(options.secret ? getSecret(project) : project.api_token);
      }),
    ),
  );

const graceOption = (fallback: string) =>
  new Option("--grace <time>", "time the old key stays valid; 0 revokes it immediately")
    .argParser((text) => {
      const seconds = parseDuration(text);
      if (seconds <= graceSecondsMax) return seconds;
      throw new InvalidArgumentError("The maximum is 90d.");
    })
    .default(parseDuration(fallback), fallback);

function printOldKey(former: FullProject["api_token_backup_use"]): void {
  print(
    former === null
      ? "The old key is rejected from now on."
      : `The old key is valid until ${toMillis(former.ends_at)}; \`flagkeep status\` shows its usage.`,
  );
}

const rotateKey = withJson(
  withSettings(new Command("rotate-key"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON; the new key is in `api_key`",
)
  .description("Rotate the public key of a project; `status` shows how often the old key is still used.")
  .argument("<id>", "project id", positiveInteger)
  .addOption(graceOption("7d"))
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects rotate-key 2\n  flagkeep projects rotate-key 2 --grace 30d --json\n  flagkeep projects rotate-key 2 --grace 0",
  )
  .action(
    run((id: number, options: CallOptions & { grace: number }) =>
      inProject(id, rotatePublicKey, { grace_seconds: options.grace }, options, (project) => {
        if (options.json) return printJson(record(project));
        print(project.api_token);
        printOldKey(project.api_token_backup_use);
      }),
    ),
  );

const endOldKey = withJson(
  withSettings(new Command("revoke-old-key"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("Revoke the previous key of a project after `rotate-key` or `rotate-secret`.")
  .argument("<id>", "project id", positiveInteger)
  .option("--secret", "revoke the secret key instead of the public one")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects revoke-old-key 2\n  flagkeep projects revoke-old-key 2 --secret",
  )
  .action(
    run((id: number, options: CallOptions & { secret?: true }) =>
      inProject(id, options.secret ? revokeSecretKey : revokePublicKey, {}, options, (project) => {
        if (options.json) return printJson(record(project));
        const kind = options.secret ? "secret " : "";
        print(`Only the current ${kind}key of project ${project.id} is valid from now on.`);
      }),
    ),
  );

const retention = withJson(
  withSettings(new Command("retention"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("Set a project's event retention; older events are deleted permanently.")
  .argument("<id>", "project id", positiveInteger)
  .argument(
    "<time>",
    "retention in days, for example 400d, `never`, or `default` for the server's setting",
    retentionDays,
  )
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects retention 2 400d\n  flagkeep projects retention 2 never\n  flagkeep projects retention 2 default",
  )
  .action(
    run((id: number, days: { days: number | null }, options: CallOptions) =>
      inProject(id, updateOneProject, { events_retention_days: days.days }, options, (project) => {
        if (options.json) return printJson(record(project));
        const retained =
          days.days === null
            ? "as set by the server's --events-retention"
            : days.days === 0
              ? "forever"
              : `${days.days} days; a running server deletes older ones permanently within a minute`;
        print(`Events of project ${project.id} are kept ${retained}.`);
      }),
    ),
  );

function retentionDays(text: string): { days: number | null } {
  if (text === "default") return { days: null };
  if (text === "never") return { days: 0 };
  const days = Number(/^([1-9]\d{0,4})d$/.exec(text)?.[1] ?? Number.NaN);
  if (days <= retentionDaysMax) return { days };
  throw new InvalidArgumentError("Expected days, for example 400d, never or default.");
}

const rotateSecret = withJson(
  withSettings(new Command("rotate-secret"), ["data-dir"]),
  ProjectWithSecret,
  "print the project as JSON; the new key is in `secret_api_key`",
)
  .description("Rotate the secret key of a project; the old key is rejected after --grace.")
  .argument("<id>", "project id", positiveInteger)
  .addOption(graceOption("0"))
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects rotate-secret 2 --json\n  flagkeep projects rotate-secret 2 --grace 1d",
  )
  .action(
    run((id: number, options: CallOptions & { grace: number }) =>
      inProject(id, rotateSecretKeyOf, { grace_seconds: options.grace }, options, (project) => {
        if (options.json) return printJson(recordWithSecret(project));
        print(getSecret(project));
        printOldKey(project.secret_api_token_backup_use);
      }),
    ),
  );

const archive = withJson(
  withSettings(new Command("archive"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("Archive a project: its keys stop working, its data is kept.")
  .argument("<id>", "project id", positiveInteger)
  .option("--undo", "restore an archived project")
  .option("--force", "also archive the last active project")
  .addHelpText("after", "\nExamples:\n  flagkeep projects archive 2\n  flagkeep projects archive 2 --undo")
  .action(
    run((id: number, options: CallOptions & { undo?: true; force?: true }) => {
      const archived = !options.undo;
      if (options.force) forceArchive(id, archived, options);
      const operation = options.force ? getProject : updateOneProject;
      return inProject(id, operation, options.force ? {} : { archived }, options, (project) => {
        if (options.json) return printJson(record(project));
        print(`Project ${project.id} (${project.name}) is ${options.undo ? "active again" : "archived"}.`);
      });
    }),
  );

/** Archives the last active project too, which the API rejects. @throws {InvalidSettingError} on a server. */
function forceArchive(id: number, archived: boolean, options: CallOptions): void {
  if (getServer(options) !== undefined)
    throw new InvalidSettingError(
      "--force needs the data directory: a server keeps the last active project.",
    );
  withMetadata(options, (metadata) => {
    resolveProjects(metadata, id);
    archiveProject(metadata, id, archived, osUserAuthor(), changeTime());
  });
}

for (const command of [list, create, rename, showKey, rotateKey, endOldKey, rotateSecret, retention, archive])
  withServer(command);

export const projects = new Command("projects")
  .description("Create, list and update projects; a running server applies changes immediately.")
  .addHelpText("after", "\nExamples:\n  flagkeep projects create Shop\n  flagkeep projects list --json")
  .addCommand(list)
  .addCommand(create)
  .addCommand(rename)
  .addCommand(showKey)
  .addCommand(rotateKey)
  .addCommand(endOldKey)
  .addCommand(rotateSecret)
  .addCommand(retention)
  .addCommand(archive);
