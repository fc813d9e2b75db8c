/** What the operations of experiments share, and their list. */

import { userFinder } from "../accounts/users.ts";
import {
  ExperimentPage,
  type ExperimentRecord,
  exampleExperiment as example,
  experimentBody,
} from "../experiments/api/schemas.ts";
import type { ComputeDeps } from "../experiments/compute.ts";
import type { ExperimentActor } from "../experiments/flag-changes.ts";
import { usesEvent } from "../experiments/roled-metrics.ts";
import {
  type Experiment,
  type ExperimentStatus,
  experimentOrders,
  experimentStatuses,
  listExperiments,
} from "../experiments/store.ts";
import { flagAnswers } from "../flags/api/feature-flags.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { readBoolean, readChoice, readIdFilter } from "../http/params.ts";
import { enumeration, int, object, optional, string } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import {
  type CommandArgument,
  getAuthor,
  type Lookup,
  listOperation,
  type ProjectContext,
} from "./operation.ts";

export const experimentTag = "Experiments";
const tag = experimentTag;

export type ExperimentStores = FlagWriteDeps & ComputeDeps;
export type ExperimentContext = ProjectContext<ExperimentStores>;

export function getExperimentActor({ project, actor, now }: ProjectContext<unknown>): ExperimentActor {
  return {
    project,
    now,
    by: getAuthor(actor),
    user: actor.kind === "user" ? actor.user : undefined,
    limits: actor.kind === "user" ? actor.limits : undefined,
    skipsApproval: actor.kind === "operator" && actor.skipsApproval,
  };
}

export function body(context: ExperimentContext, experiment: Experiment): ExperimentRecord {
  return bodies(context, [experiment])[0]!;
}

function bodies(context: ExperimentContext, all: readonly Experiment[]): ExperimentRecord[] {
  const { stores, project } = context;
  const { db } = stores.metadata;
  const answers = flagAnswers(stores, getExperimentActor(context));
  const users = userFinder(db);
  return all.map((experiment) =>
    experimentBody(db, experiment, {
      flag: answers.one(findFlag(db, project.id, experiment.flagId)!),
      users,
    }),
  );
}

const byName: Lookup = {
  in: () => listAllExperiments,
  input: () => ({ archived: "all" }),
  matches: (experiment: ExperimentRecord, argument) =>
    String(experiment.id) === argument || experiment.name === argument,
  value: (experiment: ExperimentRecord) => experiment.id,
  missing: (argument) => `Experiment ${argument} does not exist.`,
};
export const experimentArgument: CommandArgument = {
  name: "experiment",
  description: "experiment id or name",
  member: "id",
  lookup: byName,
};

const archivedNames = ["false", "true", "all"] as const;
const statusNames = [...experimentStatuses, "complete", "all"] as const;

export const listAllExperiments = listOperation({
  id: "experiments.list",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "List experiments",
  description: "Newest first, without deleted and archived ones.",
  mcp: { name: "list_experiments" },
  http: { method: "GET", path: "/experiments", answer: "One page of experiments." },
  cli: {
    name: "experiments list",
    examples: ["experiments list --status running --json", "experiments list --archived"],
    // Without a value, `true`.
    options: { archived: { flags: "--archived [value]", choices: archivedNames } },
    table: {
      headings: ["id", "name", "flag", "status", "started"],
      row: (experiment: ExperimentRecord) => [
        String(experiment.id),
        experiment.name,
        experiment.feature_flag_key,
        experiment.status,
        experiment.start_date?.slice(0, 10) ?? "",
      ],
    },
  },
  input: object({
    status: optional(enumeration(statusNames, { description: "`complete` is `stopped`." })),
    archived: optional(
      enumeration(archivedNames, {
        default: "false",
        description: "`true` lists only archived experiments, `all` also those.",
      }),
    ),
    feature_flag_id: optional(int()),
    created_by_id: optional(int()),
    search: optional(string({ description: "Part of the name or of the flag's key." })),
    event: optional(string({ description: "Experiments with a metric that counts this event." })),
    order: optional(
      string({ description: `One of ${experimentOrders.join(", ")}; with \`-\` before it descending.` }),
    ),
  }),
  output: ExperimentPage,
  example,
  readQuery: (query) => ({
    status: readStatus(query),
    archived: readArchived(query),
    flagId: readIdFilter(query, "feature_flag_id"),
    createdById: readIdFilter(query, "created_by_id"),
    search: query.get("search") ?? undefined,
    event: query.get("event") || undefined,
    order: query.get("order") ?? undefined,
  }),
  run: (context: ExperimentContext, { limit, offset, event, ...filter }) => {
    const { stores, project, now } = context;
    const { db } = stores.metadata;
    const { experiments, count } = listExperiments(
      db,
      project.id,
      event === undefined ? filter : { ...filter, matches: (row) => usesEvent(db, row, event) },
      { limit, offset },
      now,
    );
    return { count, results: bodies(context, experiments) };
  },
});

/** @throws {InvalidFieldError} */
function readStatus(query: URLSearchParams): ExperimentStatus | undefined {
  const status = readChoice(query, "status", statusNames);
  if (status === "complete") return "stopped";
  return status === "all" ? undefined : status;
}

/** Archived experiments are hidden by default, as by PostHog. @throws {InvalidFieldError} */
function readArchived(query: URLSearchParams): boolean | undefined {
  const isAll = query.get("archived")?.trim().toLowerCase() === "all";
  return isAll ? undefined : (readBoolean(query, "archived", "all") ?? false);
}

/** Options for members whose values are JSON. */
export function jsonOptions(members: readonly string[], names: Record<string, string> = {}) {
  return Object.fromEntries(
    members.map((member) => {
      const name = names[member] ?? member.replaceAll("_", "-");
      const parse = (argument: string) => {
        try {
          return parseExactJson(argument);
        } catch {
          throw new InvalidFieldError(member, "invalid_input", `--${name} is not valid JSON.`);
        }
      };
      return [member, { flags: `--${name} <json>`, description: `\`${member}\` of the API, as JSON`, parse }];
    }),
  );
}
