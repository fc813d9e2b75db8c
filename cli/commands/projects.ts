import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Project } from "../../src/accounts/project-directory.ts";
import { formerKeyOf, type KeyKind } from "../../src/accounts/project-keys.ts";
import {
  archiveProject,
  createProject,
  endFormerKey,
  graceSecondsMax,
  requireAnotherProject,
  rotateProjectKey,
  rotateSecretKey,
  updateProject,
} from "../../src/accounts/projects.ts";
import { exactly, Instant, orNull } from "../../src/lib/schema.ts";
import { retentionDaysMax } from "../../src/lib/setting-kinds.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, print, printJson, printTable, run, secondsOf } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenOrganization, chosenProject, chosenProjects, operator, withMetadata } from "../stores.ts";

interface Options {
  json?: true;
}

const ProjectRecord = exactly({
  id: Type.Integer(),
  uuid: Type.String(),
  organization: Type.String(),
  name: Type.String(),
  api_key: Type.String({ pattern: "^phc_" }),
  timezone: Type.String(),
  /** The key before this one, while it counts as well. */
  api_key_backup: orNull(Type.String()),
  api_key_backup_ends_at: orNull(Instant),
  /** Until when the secret key before the present one counts as well. */
  secret_api_key_backup_ends_at: orNull(Instant),
  /** How long events are kept: 0 for ever, null as the server's setting says. */
  events_retention_days: orNull(Type.Integer({ minimum: 0 })),
  created_at: Instant,
  archived_at: orNull(Instant),
});
/** With the secret key, where that was made just now. */
const ProjectWithSecret = exactly({
  ...ProjectRecord.properties,
  secret_api_key: Type.String({ pattern: "^phs_" }),
});

function record(project: Project): Static<typeof ProjectRecord> {
  const now = new Date();
  const former = formerKeyOf(project, "public", now);
  return {
    id: project.id,
    uuid: project.uuid,
    organization: project.organizationId,
    name: project.name,
    api_key: project.apiToken,
    timezone: project.timezone,
    api_key_backup: former?.token ?? null,
    api_key_backup_ends_at: former?.endsAt.toISOString() ?? null,
    secret_api_key_backup_ends_at: formerKeyOf(project, "secret", now)?.endsAt.toISOString() ?? null,
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
  .description("List the projects.")
  .option("--all", "archived ones as well")
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
  .description("Make a project with fresh keys.")
  .argument("<name>", "what people call it")
  .option("--timezone <name>", "IANA name of its time zone", "UTC")
  .option("--organization <id>", "whose it is; may be left out when there is one organisation")
  .addHelpText(
    "after",
    '\nExamples:\n  flagkeep projects create Shop\n  flagkeep projects create "Web shop" --timezone Europe/Berlin --json',
  )
  .action(
    run((name: string, options: Options & { timezone: string; organization?: string }) =>
      withMetadata(options, (metadata) => {
        const organizationId = chosenOrganization(metadata, options.organization).id;
        const made = createProject(
          metadata,
          { organizationId, name, timezone: options.timezone },
          operator(),
        );
        if (options.json) return printJson({ ...record(made), secret_api_key: made.secretToken });
        print(`Project          ${made.name} (${made.id})`);
        print(`Project API key  ${made.apiToken}`);
        print(`Secret API key   ${made.secretToken}`);
      }),
    ),
  );

const rename = withJson(
  withSettings(new Command("rename"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("Give a project another name; its keys stay.")
  .argument("<id>", "the project's id", positiveInteger)
  .argument("<name>", "the new name")
  .addHelpText("after", '\nExample:\n  flagkeep projects rename 2 "Web shop"')
  .action(
    run((id: number, name: string, options: Options) =>
      withMetadata(options, (metadata) => {
        chosenProjects(metadata, id);
        const project = updateProject(metadata, id, { name }, operator());
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
  .description("Print the public key of a project, which apps send with every event.")
  .argument("[id]", "the project's id; may be left out when there is one project", positiveInteger)
  .option("--secret", "the secret key instead, which servers use for local evaluation")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects show-key\n  flagkeep projects show-key 2 --secret --json",
  )
  .action(
    run((id: number | undefined, options: Options & { secret?: true }) =>
      withMetadata(options, (metadata) => {
        const project = chosenProject(metadata, id, "its ID behind `show-key`");
        if (options.json) return printJson({ ...record(project), secret_api_key: project.secretToken });
        print(options.secret ? project.secretToken : project.apiToken);
      }),
    ),
  );

const graceOption = (fallback: string) =>
  new Option("--grace <time>", "how long the old key counts beside the new one; 0: it ends at once")
    .argParser((text) => {
      const seconds = secondsOf(text);
      if (seconds <= graceSecondsMax) return seconds;
      throw new InvalidArgumentError("It can be 90d at most.");
    })
    .default(secondsOf(fallback), fallback);

function printOldKey(project: Project, kind: KeyKind): void {
  const former = formerKeyOf(project, kind, new Date());
  print(
    former === undefined
      ? "The old key is refused from now on."
      : `The old key counts until ${former.endsAt.toISOString()}; \`flagkeep status\` tells how much it is used.`,
  );
}

const rotateKey = withJson(
  withSettings(new Command("rotate-key"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON; the new key is in `api_key`",
)
  .description(
    "Give a project a new public key; the old one still works for a while, and `status` tells how much it is used.",
  )
  .argument("<id>", "the project's id", positiveInteger)
  .addOption(graceOption("7d"))
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects rotate-key 2\n  flagkeep projects rotate-key 2 --grace 30d --json\n  flagkeep projects rotate-key 2 --grace 0",
  )
  .action(
    run((id: number, options: Options & { grace: number }) =>
      withMetadata(options, (metadata) => {
        chosenProjects(metadata, id);
        const project = rotateProjectKey(metadata, id, operator(), { graceSeconds: options.grace });
        if (options.json) return printJson(record(project));
        print(project.apiToken);
        printOldKey(project, "public");
      }),
    ),
  );

const endOldKey = withJson(
  withSettings(new Command("end-old-key"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("End at once the key that a project had before `rotate-key` or `rotate-secret`.")
  .argument("<id>", "the project's id", positiveInteger)
  .option("--secret", "the secret key instead of the public one")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects end-old-key 2\n  flagkeep projects end-old-key 2 --secret",
  )
  .action(
    run((id: number, options: Options & { secret?: true }) =>
      withMetadata(options, (metadata) => {
        chosenProjects(metadata, id);
        const project = endFormerKey(metadata, id, options.secret ? "secret" : "public", operator());
        if (options.json) return printJson(record(project));
        print(
          `Only the present ${options.secret ? "secret " : ""}key of project ${project.id} counts from now on.`,
        );
      }),
    ),
  );

const retention = withJson(
  withSettings(new Command("retention"), ["data-dir"]),
  ProjectRecord,
  "print the project as JSON",
)
  .description("Say how long a project's events are kept; older ones are deleted for good.")
  .argument("<id>", "the project's id", positiveInteger)
  .argument("<time>", "days such as 400d, `never`, or `default`: as the server's setting says", retentionDays)
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects retention 2 400d\n  flagkeep projects retention 2 never\n  flagkeep projects retention 2 default",
  )
  .action(
    run((id: number, days: { days: number | null }, options: Options) =>
      withMetadata(options, (metadata) => {
        chosenProjects(metadata, id);
        const project = updateProject(metadata, id, { eventsRetentionDays: days.days }, operator());
        if (options.json) return printJson(record(project));
        const kept =
          days.days === null
            ? "as long as the server's setting --events-retention says"
            : days.days === 0
              ? "for ever"
              : `${days.days} days; older ones go within a minute of a running server, and cannot be brought back`;
        print(`Events of project ${project.id} are kept ${kept}.`);
      }),
    ),
  );

function retentionDays(text: string): { days: number | null } {
  if (text === "default") return { days: null };
  if (text === "never") return { days: 0 };
  const days = Number(/^([1-9]\d{0,4})d$/.exec(text)?.[1] ?? Number.NaN);
  if (days <= retentionDaysMax) return { days };
  throw new InvalidArgumentError("It must be days such as 400d, never or default.");
}

const rotateSecret = withJson(
  withSettings(new Command("rotate-secret"), ["data-dir"]),
  ProjectWithSecret,
  "print the project as JSON; the new key is in `secret_api_key`",
)
  .description("Give a project a new secret key; servers that use the old one are refused, after --grace.")
  .argument("<id>", "the project's id", positiveInteger)
  .addOption(graceOption("0"))
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep projects rotate-secret 2 --json\n  flagkeep projects rotate-secret 2 --grace 1d",
  )
  .action(
    run((id: number, options: Options & { grace: number }) =>
      withMetadata(options, (metadata) => {
        chosenProjects(metadata, id);
        const project = rotateSecretKey(metadata, id, operator(), { graceSeconds: options.grace });
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
  .description("Close a project: its keys stop working, its data stay.")
  .argument("<id>", "the project's id", positiveInteger)
  .option("--undo", "open it again")
  .option("--force", "also when it is the last open one")
  .addHelpText("after", "\nExamples:\n  flagkeep projects archive 2\n  flagkeep projects archive 2 --undo")
  .action(
    run((id: number, options: Options & { undo?: true; force?: true }) =>
      withMetadata(options, (metadata) => {
        chosenProjects(metadata, id);
        if (!options.undo && !options.force) requireAnotherProject(metadata, id);
        const project = archiveProject(metadata, id, !options.undo, operator());
        if (options.json) return printJson(record(project));
        print(`Project ${project.id} (${project.name}) is ${options.undo ? "open again" : "archived"}.`);
      }),
    ),
  );

export const projects = new Command("projects")
  .description("Make, list and change projects; changes work at once, also in a running appliance.")
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
