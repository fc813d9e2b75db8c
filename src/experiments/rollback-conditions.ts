/** `rollback_conditions` of flags: their forms, and whether they hold (contract: experiments 2.8). */

import { and, eq, isNotNull } from "drizzle-orm";
import type { Project } from "../accounts/project-directory.ts";
import { flag as flags } from "../accounts/schema.ts";
import type { InsightQueries } from "../dashboards/api/compute-insight.ts";
import type { ExperimentRequest } from "../events/insights/experiment.ts";
import { webSettings } from "../events/web/web-query.ts";
import { getVariants } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { dayMs } from "../lib/time.ts";
import type { ComputeDeps } from "./compute.ts";
import { findLaunchedMetric, findViolation } from "./guardrail-watches.ts";
import { readMetric, toMetricRequest } from "./metrics.ts";
import type { MetricLimits } from "./results.ts";
import type { Violation, Watch } from "./rollback-watch.ts";

/** Conditions of one flag that are checked; further ones have no effect. */
export const rollbackConditionsMax = 20;
const insightDays = 7;
const windowMinutesMax = 30 * 24 * 60;
const defaultTolerance = 0.05;
const defaultMinimumPersons = 100;

type Threshold = { operator: "gt" | "lt"; threshold: number };
type RollbackCondition =
  | ({ type: "insight"; source: JsonObject } & Threshold)
  | ({ type: "experiment_metric"; uuid: string } & MetricLimits)
  | ({ type: "event_rate"; source: JsonObject; windowMinutes: number; minimumPersons: number } & Threshold);

interface ConditionDeps extends ComputeDeps {
  insights: InsightQueries;
}

/** Conditions of active flags that were written by a version that acts on them. */
export function conditionWatches(deps: ConditionDeps): Watch[] {
  const { db } = deps.metadata;
  const isArmed = and(
    eq(flags.active, true),
    eq(flags.deleted, false),
    isNotNull(flags.rollbackConditionsAt),
  );
  const found = db
    .select({
      id: flags.id,
      projectId: flags.projectId,
      sent: flags.rollbackConditions,
      at: flags.rollbackConditionsAt,
    })
    .from(flags)
    .where(isArmed)
    .all();
  return found.flatMap(({ id: flagId, projectId, sent, at }) =>
    readConditions(sent).map(({ condition, index }): Watch => {
      return {
        key: `flag ${flagId} ${index} ${at!.getTime()}`,
        projectId,
        flagId,
        find: (now) => findHolding(deps, { projectId, flagId, condition }, now),
        applies: (_, flag) => flag.rollbackConditionsAt?.getTime() === at!.getTime(),
      };
    }),
  );
}

/** The members in one of the forms; all others are free-form and have no effect. */
export function readConditions(sent: Json | null): { condition: RollbackCondition; index: number }[] {
  if (!Array.isArray(sent)) return [];
  return sent.slice(0, rollbackConditionsMax).flatMap((item, index) => {
    const condition = isJsonObject(item) ? readCondition(item) : undefined;
    return condition === undefined ? [] : [{ condition, index }];
  });
}

function readCondition(condition: JsonObject): RollbackCondition | undefined {
  switch (condition.threshold_type) {
    case "insight": {
      const source = readSource(condition.threshold_metric);
      const limit = readThreshold(condition);
      return source && limit && { type: "insight", source, ...limit };
    }
    case "experiment_metric": {
      const { metric_uuid: uuid, tolerance = defaultTolerance, alpha } = condition;
      if (typeof uuid !== "string" || typeof tolerance !== "number") return undefined;
      if (!(tolerance >= 0 && tolerance < 1)) return undefined;
      if (alpha !== undefined && !(typeof alpha === "number" && alpha >= 0.0001 && alpha <= 0.5))
        return undefined;
      return { type: "experiment_metric", uuid, tolerance, alpha };
    }
    case "event_rate": {
      const { event, properties = [], window_minutes: windowMinutes } = condition;
      const minimumPersons = condition.minimum_persons ?? defaultMinimumPersons;
      const source = readSource({ event: event ?? null, properties });
      const limit = readThreshold(condition);
      if (!source || !limit || !isPositive(windowMinutes) || !isPositive(minimumPersons)) return undefined;
      if (windowMinutes > windowMinutesMax) return undefined;
      return { type: "event_rate", source, windowMinutes, minimumPersons, ...limit };
    }
    default:
      return undefined;
  }
}

const isPositive = (value: Json | undefined): value is number => typeof value === "number" && value > 0;

function readThreshold({ operator, threshold }: JsonObject): Threshold | undefined {
  if ((operator !== "gt" && operator !== "lt") || typeof threshold !== "number") return undefined;
  return { operator, threshold };
}

/** Events to count, as in a metric; the rules of metrics apply. */
function readSource(sent: Json | undefined): JsonObject | undefined {
  if (!isJsonObject(sent) || typeof sent.event !== "string" || sent.event === "") return undefined;
  try {
    return readMetric({ metric_type: "mean", source: sent }, "").source as JsonObject;
  } catch {
    return undefined;
  }
}

const exceeds = (value: number, { operator, threshold }: Threshold) =>
  operator === "gt" ? value > threshold : value < threshold;

interface Checked<Condition = RollbackCondition> {
  projectId: number;
  flagId: number;
  condition: Condition;
}

async function findHolding(deps: ConditionDeps, checked: Checked, now: Date): Promise<Violation | undefined> {
  const { projectId, condition } = checked;
  const project = deps.metadata.projects.find(projectId);
  if (project === undefined) return undefined;
  switch (condition.type) {
    case "insight":
      return await checkInsight(deps, { ...checked, condition }, project, now);
    case "event_rate":
      return await checkRate(deps, { ...checked, condition }, project, now);
    case "experiment_metric": {
      const found = findLaunchedMetric(deps, { ...checked, uuid: condition.uuid });
      if (found === undefined) return undefined;
      return await findViolation(deps, found.experiment, found.metric, now, condition);
    }
  }
}

/** The mean per day of the last days. */
async function checkInsight(
  { insights }: ConditionDeps,
  { flagId, condition }: Checked<Extract<RollbackCondition, { type: "insight" }>>,
  project: Project,
  now: Date,
): Promise<Violation | undefined> {
  const from = new Date(now.getTime() - insightDays * dayMs);
  const query = {
    kind: "TrendsQuery",
    interval: "day",
    series: [{ ...condition.source, kind: "EventsNode" }],
    dateRange: { date_from: from.toISOString(), date_to: now.toISOString(), explicitDate: true },
  };
  const { timezone, weekStartDay } = project;
  const how = { timezone, weekStartDay, web: webSettings(project), now, refresh: "force_blocking" } as const;
  const { results } = await insights.run(project.id, query, how);
  const series = Array.isArray(results) ? results.filter(isJsonObject)[0] : undefined;
  const days = Array.isArray(series?.data) ? series.data : [];
  const mean = days.reduce((sum: number, day) => sum + Number(day), 0) / insightDays;
  if (!exceeds(mean, condition)) return undefined;
  const event = String(condition.source.event);
  return violation(flagId, condition, { event, mean_per_day: mean }, `${event}: ${format(mean)} per day`);
}

/** The share of the persons who got the flag on in the window and then had the event. */
async function checkRate(
  { metadata, experiments }: ConditionDeps,
  { projectId, flagId, condition }: Checked<Extract<RollbackCondition, { type: "event_rate" }>>,
  { timezone }: Project,
  now: Date,
): Promise<Violation | undefined> {
  const flag = findFlag(metadata.db, projectId, flagId);
  if (flag === undefined || experiments === undefined) return undefined;
  const metric = { metric_type: "mean", source: condition.source, threshold: 1 };
  const end = now.getTime() + 1;
  const request: ExperimentRequest = {
    flagKey: flag.key,
    variants: ["true", ...getVariants(flag.filters).map(({ key }) => String(key))],
    multiple: "first_seen",
    maturedOnly: false,
    periodStarts: [],
    start: Math.round(end - condition.windowMinutes * 60_000) * 1_000,
    end: end * 1_000,
    metrics: [toMetricRequest(metric, 0)],
  };
  const how = { timezone, now, refresh: "force_blocking" } as const;
  const { sums } = await experiments.experimentSums(projectId, request, how);
  const all = sums.metrics[0] ?? [];
  const persons = all.reduce((n, sums) => n + sums.n, 0);
  const affected = all.reduce((n, sums) => n + sums.y, 0);
  if (persons < condition.minimumPersons || !exceeds(affected / persons, condition)) return undefined;
  const event = String(condition.source.event);
  return violation(
    flagId,
    condition,
    { event, persons, persons_with_event: affected, share: affected / persons },
    `${event}: ${affected} of ${persons} persons with the flag in ${condition.windowMinutes} minutes`,
  );
}

const format = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 2 });

function violation(
  flagId: number,
  { type, operator, threshold }: Extract<RollbackCondition, Threshold>,
  figures: JsonObject,
  text: string,
): Violation {
  const limit = `${operator === "gt" ? "above" : "below"} the threshold of ${threshold}`;
  return {
    jobType: "rollback_condition",
    jobId: String(flagId),
    note: `Rollback condition: ${text}, ${limit}.`,
    payload: { threshold_type: type, operator, threshold, ...figures },
  };
}
