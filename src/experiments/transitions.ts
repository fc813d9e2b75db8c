/** Transitions between the states of an experiment (contract: experiments 1.3). */

import type { Flag } from "../flags/fields.ts";
import { getGroups, getVariants } from "../flags/rules/types.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { recordExperiment } from "./activity.ts";
import type { conclusions } from "./api/schemas.ts";
import { assertLaunchable, changeFlag, type ExperimentActor, getFlag } from "./flag-changes.ts";
import {
  type Experiment,
  type ExperimentStatus,
  getExperiment,
  getStatus,
  type NewExperiment,
  writeExperiment,
} from "./store.ts";

export type Transition =
  | "launch"
  | "pause"
  | "resume"
  | "end"
  | "ship_variant"
  | "reset"
  | "archive"
  | "unarchive";

/** States from which a transition is possible, and its past participle for messages. */
const transitions: Record<Transition, { from: readonly ExperimentStatus[]; done: string }> = {
  launch: { from: ["draft"], done: "launched" },
  pause: { from: ["running"], done: "paused" },
  resume: { from: ["paused"], done: "resumed" },
  end: { from: ["running", "paused"], done: "ended" },
  ship_variant: { from: ["running", "paused", "stopped"], done: "shipped" },
  reset: { from: ["running", "paused", "stopped"], done: "reset" },
  archive: { from: ["stopped"], done: "archived" },
  unarchive: { from: ["stopped"], done: "unarchived" },
};

/** What must happen before, by the state an experiment is in. */
const needed: Record<ExperimentStatus, string> = {
  draft: "must be launched",
  running: "must be ended",
  paused: "must be resumed or ended",
  stopped: "must be reset",
};

const launched = "has already been launched";
/** The same where a transition has a sentence of its own. */
const ofOne: Partial<Record<Transition, Partial<Record<ExperimentStatus, string>>>> = {
  launch: { running: launched, paused: launched },
  resume: { running: "must be paused" },
  end: { stopped: "has already ended" },
  archive: { draft: "must be ended", paused: "must be ended" },
};

/** @throws {InvalidFieldError} `invalid_transition`, with the state in the message. */
export function assertTransition(
  transition: Transition,
  status: ExperimentStatus,
  { archived }: { archived: boolean },
): void {
  const { from, done } = transitions[transition];
  if (transition === "archive" && archived) throw invalid("Experiment is already archived.");
  if (transition === "unarchive" && !archived) throw invalid("Experiment is not archived.");
  if (from.includes(status)) return;
  if (transition === "pause" && status === "paused") throw invalid("Experiment is already paused.");
  const problem = ofOne[transition]?.[status] ?? needed[status];
  const step = problem.startsWith("must") ? `${problem} before it can be ${done}` : problem;
  throw invalid(`Experiment ${step}. Its status is ${status}.`);
}

const invalid = (detail: string) => new InvalidFieldError(null, "invalid_transition", detail);

export interface TransitionInput {
  conclusion?: (typeof conclusions)[number] | null | undefined;
  conclusion_comment?: string | null | undefined;
  variant_key?: string | undefined;
  release_to_everyone?: boolean | undefined;
  disable_feature_flag?: boolean | undefined;
}

/** Moves an experiment to another state. @throws {NotFoundError} @throws {InvalidFieldError} `invalid_transition` */
export function transitExperiment(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  id: number,
  transition: Transition,
  input: TransitionInput = {},
): Experiment {
  const { project, now } = actor;
  return deps.metadata.change((t) => {
    const before = getExperiment(t, project.id, id);
    const flag = getFlag(t, before);
    assertTransition(transition, getStatus(before, flag.active), before);
    const flagChange = getFlagChange(transition, flag, input);
    if (flagChange !== undefined) changeFlag(deps, actor, before, flagChange);
    const after = writeExperiment(t, before, columnsAfter(transition, before, input, now), now);
    recordExperiment(t, "updated", before, after, actor);
    return after;
  });
}

function columnsAfter(
  transition: Transition,
  before: Experiment,
  input: TransitionInput,
  now: Date,
): Partial<NewExperiment> {
  const concluded = {
    ...(input.conclusion === undefined ? {} : { conclusion: input.conclusion }),
    ...(input.conclusion_comment === undefined ? {} : { conclusionComment: input.conclusion_comment }),
  };
  switch (transition) {
    case "launch":
      return { startDate: now };
    case "end":
      return { endDate: now, ...concluded };
    case "ship_variant":
      return { endDate: before.endDate ?? now, ...concluded };
    case "reset":
      return { startDate: null, endDate: null, conclusion: null, conclusionComment: null, archived: false };
    case "archive":
      return { archived: true };
    case "unarchive":
      return { archived: false };
    default:
      return {};
  }
}

/** The members of a PATCH of the flag; undefined: it stays as it is. */
function getFlagChange(transition: Transition, flag: Flag, input: TransitionInput): JsonObject | undefined {
  switch (transition) {
    case "launch":
      assertLaunchable(flag);
      return { active: true };
    case "pause":
      return { active: false };
    case "resume":
      return { active: true };
    case "ship_variant":
      return { active: true, filters: shippedFilters(flag, input) };
    case "archive":
      return input.disable_feature_flag && flag.active ? { active: false } : undefined;
    default:
      return undefined;
  }
}

/** Everyone gets the variant; the former condition sets stay below, and `revert` undoes it. */
function shippedFilters(
  { filters }: Flag,
  { variant_key: key = "", release_to_everyone: isForEveryone = true }: TransitionInput,
): JsonObject {
  const keys = getVariants(filters).map((variant) => String(variant.key));
  if (!keys.includes(key))
    throw new InvalidFieldError(
      "variant_key",
      "invalid_input",
      `The feature flag has no variant "${key}". Its variants: ${keys.join(", ")}.`,
    );
  const groups = getGroups(filters);
  if (!isForEveryone) return { groups: groups.map((group) => ({ ...group, variant: key })) };
  const everyone = { properties: [], rollout_percentage: 100, variant: key };
  return { groups: Bun.deepEquals(groups[0], everyone) ? groups : [everyone, ...groups] };
}
