import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Project } from "../../src/accounts/project-directory.ts";
import { type KeyKind, previousKey } from "../../src/accounts/project-keys.ts";
import {
  archiveProject,
  assertNotLastProject,
  createProject,
  graceSecondsMax,
  revokePreviousKey,
  rotateProjectKey,
  rotateSecretKey,
  updateProject,
} from "../../src/accounts/projects.ts";
import { DateTime, nullable, strictObject } from "../../src/lib/schema.ts";
import { retentionDaysMax } from "../../src/lib/setting-types.ts";
import { changeTime } from "../cluster-stores.ts";
import { withJson } from "../json-schema.ts";
import { parseDuration, positiveInteger, print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import {
  osUserAuthor,
  resolveOrganization,
  resolveProject,
  resolveProjects,
  withMetadata,
} from "../stores.ts";

interface Options {
  json?: true;
}

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

function record(project: Project): Static<typeof ProjectRecord> {
  const now = new Date();
  const former = previousKey(project, "public", now);
  return {
    id: project.id,
    uuid: project.uuid,
    organization: project.organizationId,
    name: project.name,
    api_key: project.apiToken,
    timezone: project.timezone,
    api_key_backup: former?.token ?? null,
    api_key_backup_ends_at: former?.endsAt.toISOString() ?? null,
    secret_api_key_backup_ends_at: previousKey(project, "secret", now)?.endsAt.toISOString() ?? null,
    events_retention_days: project.eventsRetentionDays,
    created_at: project.createdAt.toISOString(),
    archived_at: project.archivedAt?.toISOString() ?? null,
  };
}

const list = withJson(
  withSettings(new Command("list"), ["data-dir"]),
  Type.Array(ProjectRecord),
  "print the projects as JSON",
)
  .description("List projects.")
  .option("--all", "include archived projects")
  .addHelpText("after", "\nExample:\n  flagkeep projects list --all --json")
  .action(
    run((options: Options & { all?: true }) =>
      withMetadata(options, ({ projects }) => {
        const found = projects.list({ includeArchived: options.all });
        if (options.json) return printJson(found.map(record));
        printTable(
          ["id", "name", "project key", "time zone", "state"],
          found.map((project) => [
            String(project.id),
            project.name,
            project.apiToken,
            project.timezone,
            project.archivedAt === null ? "open" : "archived",
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
  .option("--organization <id>", "organization id; optional if there is one")
  .addHelpText(
    "after",
    '\nExamples:\n  flagkeep projects create Shop\n  flagkeep projects create "Web shop" --timezone Europe/Berlin --json',
  )
  .action(
    run((name: string, options: Options & { timezone: string; organization?: string }) =>
      withMetadata(options, (metadata) => {
        const organizationId = resolveOrganization(metadata, options.organization).id;
        const created = createProject(
          metadata,
          { organizationId, name, timezone: options.timezone },
          osUserAuthor(),
          changeTime(),
        );
        if (options.json) return printJson({ ...record(created), secret_api_key: created.secretToken });
        print(`Project          ${created.name} (${created.id})`);
        print(`Project API key  ${created.apiToken}`);
        print(`Secret API key   ${created.secretToken}`);
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
    run((id: number, name: string, options: Options) =>
      withMetadata(options, (metadata) => {
        resolveProjects(metadata, id);
        const project = updateProject(metadata, id, { name }, osUserAuthor(), changeTime());
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
  .argument("[id]", "project id; optional if there is one project", positiveInteger)
  .option("--secret", "print the secret key for local evaluation instead")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects show-key\n  flagkeep projects show-key 2 --secret --json",
  )
  .action(
    run((id: number | undefined, options: Options & { secret?: true }) =>
      withMetadata(options, (metadata) => {
        const project = resolveProject(metadata, id, "its ID after `show-key`");
        if (options.json) return printJson({ ...record(project), secret_api_key: project.secretToken });
        print(options.secret ? project.secretToken : project.apiToken);
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

function printOldKey(project: Project, kind: KeyKind): void {
  const former = previousKey(project, kind, new Date());
  print(
    former === undefined
      ? "The old key is rejected from now on."
      : `The old key is valid until ${former.endsAt.toISOString()}; \`flagkeep status\` shows its usage.`,
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
    run((id: number, options: Options & { grace: number }) =>
      withMetadata(options, (metadata) => {
        resolveProjects(metadata, id);
        const project = rotateProjectKey(metadata, id, osUserAuthor(), {
          graceSeconds: options.grace,
          now: changeTime(),
        });
        if (options.json) return printJson(record(project));
        print(project.apiToken);
        printOldKey(project, "public");
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
    run((id: number, options: Options & { secret?: true }) =>
      withMetadata(options, (metadata) => {
        resolveProjects(metadata, id);
        const project = revokePreviousKey(
          metadata,
          id,
          options.secret ? "secret" : "public",
          osUserAuthor(),
          changeTime(),
        );
        if (options.json) return printJson(record(project));
        print(
          `Only the current ${options.secret ? "secret " : ""}key of project ${project.id} is valid from now on.`,
        );
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
    run((id: number, days: { days: number | null }, options: Options) =>
      withMetadata(options, (metadata) => {
        resolveProjects(metadata, id);
        const project = updateProject(
          metadata,
          id,
          { eventsRetentionDays: days.days },
          osUserAuthor(),
          changeTime(),
        );
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
    run((id: number, options: Options & { grace: number }) =>
      withMetadata(options, (metadata) => {
        resolveProjects(metadata, id);
        const project = rotateSecretKey(metadata, id, osUserAuthor(), {
          graceSeconds: options.grace,
          now: changeTime(),
        });
        if (options.json) return printJson({ ...record(project), secret_api_key: project.secretToken });
        print(project.secretToken);
        printOldKey(project, "secret");
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
    run((id: number, options: Options & { undo?: true; force?: true }) =>
      withMetadata(options, (metadata) => {
        resolveProjects(metadata, id);
        if (!options.undo && !options.force) assertNotLastProject(metadata, id);
        const project = archiveProject(metadata, id, !options.undo, osUserAuthor(), changeTime());
        if (options.json) return printJson(record(project));
        print(`Project ${project.id} (${project.name}) is ${options.undo ? "active again" : "archived"}.`);
      }),
    ),
  );

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
