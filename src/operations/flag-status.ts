/** Flag status (contract: management-api 5.9), dependent flags (5.7), and the flags that use a cohort. */

import type { Static } from "@sinclair/typebox";
import { flagTag as tag } from "../flags/api/feature-flags.ts";
import { flagsByCohort } from "../flags/rules/dependents.ts";
import { getRolloutSummary, getStatus } from "../flags/rules/status.ts";
import { findFlag } from "../flags/store/flag.ts";
import { dependentFlags } from "../flags/store/flag-dependencies.ts";
import type { FlagSets } from "../flags/store/flag-sets.ts";
import { criticalByCohort } from "../flags/store/protected-flags.ts";
import {
  ApiFailure,
  bool,
  enumeration,
  int,
  list,
  named,
  num,
  object,
  optional,
  record,
  string,
  union,
} from "../http/schemas.ts";
import { type FlagContext as Context, getFlagById } from "./flag-actor.ts";
import { flagArgument } from "./flag-argument.ts";
import { byKey, keyArgument } from "./flag-tools.ts";
import { listAllFlags } from "./flags.ts";
import { operation, type ProjectContext } from "./operation.ts";

const StatusBody = named(
  "FlagStatus",
  object({
    status: enumeration(["active", "inactive", "stale", "deleted", "unknown", "archived"]),
    reason: string({ description: "For people." }),
    reason_states_rollout: optional(bool()),
    rollout: optional(
      object({
        effectively_full_rollout: bool(),
        has_targeting_conditions: bool(),
        max_rollout_percentage: num(),
        is_multivariate: bool(),
      }),
    ),
  }),
);

const exampleAnswer = {
  status: "stale" as const,
  reason: 'This boolean flag will always evaluate to "true"',
  reason_states_rollout: true,
  rollout: {
    effectively_full_rollout: true,
    has_targeting_conditions: false,
    max_rollout_percentage: 100,
    is_multivariate: false,
  },
};
const unknown = { status: "unknown" as const, reason: "Flag could not be found" };

/** Flags listed per cohort. */
const namedPerCohort = 100;

const NamedFlag = object({ id: int(), key: string(), name: string({ blank: true }) });

type StatusRecord = Static<typeof StatusBody>;

const getFlagStatus = operation({
  id: "flags.status",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Get flag status",
  description: "`stale`: not evaluated for 30 days, or the same value for everyone for 30 days.",
  http: {
    method: "GET",
    path: "/feature_flags/:id/status",
    answer: "The status.",
    status: ({ status }: StatusRecord) => (status === "unknown" ? 404 : 200),
    errors: {
      404: {
        description: "The flag or project does not exist.",
        schema: union(StatusBody, ApiFailure),
        example: unknown,
      },
    },
  },
  cli: {
    name: "flags status",
    description: "Show whether a flag is active, inactive or stale.",
    examples: ["flags status new-checkout"],
    arguments: [flagArgument("id")],
    done: ({ status, reason }: StatusRecord) => (reason === "" ? status : `${status}: ${reason}`),
  },
  mcp: { name: "flag_status", target: byKey(() => listAllFlags), arguments: { key: keyArgument } },
  input: object({ id: int() }),
  output: StatusBody,
  example: exampleAnswer,
  run: ({ stores, project, now }: Context, { id }): StatusRecord => {
    const flag = findFlag(stores.metadata.db, project.id, id);
    if (!flag) return unknown;
    const status = getStatus(flag, now);
    const rollout = getRolloutSummary(flag.filters);
    return {
      status: status.status,
      reason: status.reason,
      reason_states_rollout: status.reasonStatesRollout,
      rollout: {
        effectively_full_rollout: rollout.isFullRollout,
        has_targeting_conditions: rollout.hasTargetingConditions,
        max_rollout_percentage: rollout.maxRolloutPercentage,
        is_multivariate: rollout.isMultivariate,
      },
    };
  },
});

const listDependentFlags = operation({
  id: "flags.dependents",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List the active flags that depend on a flag",
  http: { method: "GET", path: "/feature_flags/:id/dependent_flags", answer: "Not paginated." },
  cli: {
    name: "flags dependents",
    examples: ["flags dependents new-checkout --json"],
    arguments: [flagArgument("id")],
    done: (flags: readonly { key: string }[]) =>
      flags.map(({ key }) => key).join("\n") || "No active flag depends on it.",
  },
  input: object({ id: int() }),
  output: list(NamedFlag),
  example: [{ id: 17, key: "new-receipt", name: "" }],
  run: (context: Context, { id }) =>
    dependentFlags(context.stores.metadata.db, context.project.id, getFlagById(context, id).id),
});

const listFlagsByCohort = operation({
  id: "flags.by_cohort",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List the flags that use each cohort",
  description: `Includes inactive flags and indirect use through other cohorts. At most ${namedPerCohort} per cohort. \`critical_flags\`: keys of the flags tagged \`critical\` that a change of the cohort affects, also through other flags.`,
  http: {
    method: "GET",
    path: "/feature_flags/by_cohort",
    answer: "Flags by cohort id, without unused cohorts.",
  },
  input: object({}),
  output: record(),
  example: { "7": { count: 1, flags: [{ id: 17, key: "new-receipt", name: "" }], critical_flags: [] } },
  run: ({ stores: { metadata, flagSets }, project }: Context & ProjectContext<{ flagSets: FlagSets }>) => {
    const { definitions, cohorts } = flagSets.get(project.id);
    const uses = flagsByCohort(definitions, cohorts);
    const critical = criticalByCohort(metadata.db, project.id, uses.keys());
    return Object.fromEntries(
      [...uses].map(([id, flags]) => [
        id,
        {
          count: flags.length,
          flags: flags.slice(0, namedPerCohort).map(({ id, key, name }) => ({ id, key, name })),
          critical_flags: critical.get(id) ?? [],
        },
      ]),
    );
  },
});

/** In the order of the documentation. */
export const flagStatusOperations = [getFlagStatus, listDependentFlags, listFlagsByCohort];
