/** Commands that schedule changes of a flag: one change, or the steps of a gradual rollout. */

import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { ScheduledBody } from "../../src/flags/api/flag-schemas.ts";
import type { FlagAnswer } from "../../src/flags/fields.ts";
import { getRolloutSteps, parsePercentages, rolloutStepsMax } from "../../src/flags/rules/shared-rules.ts";
import { getGroups } from "../../src/flags/rules/types.ts";
import { withoutDisplayNames } from "../../src/flags/store/flag-conflicts.ts";
import { rolloutOperation } from "../../src/flags/store/pending-changes.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { parseInstant } from "../../src/lib/timestamp.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { scheduleChangeOfFlag, scheduledFormerJson } from "../../src/operations/scheduled-changes.ts";
import { parseDuration, positiveInteger, print, printJson, run } from "../output.ts";
import { creatorHelp } from "../stores.ts";
import {
  type CommonOptions,
  flagByKey,
  percentage,
  rolloutFields,
  withFlagOptions,
  withFlags,
} from "./flags-common.ts";

type Scheduled = Static<typeof ScheduledBody>;
const Printed = Type.Object({ ...ScheduledBody.properties, ...scheduledFormerJson.properties });
const toPrinted = (change: Scheduled) => ({ ...change, ...scheduledFormerJson.build(change) });

interface Step {
  payload: JsonObject;
  at: Date;
}

/** Schedules all changes of a flag; in a data directory none if one is invalid. */
async function scheduleAll(caller: Caller, { id }: FlagAnswer, steps: readonly Step[]): Promise<Scheduled[]> {
  const inputs = steps.map(({ payload, at }) => ({ record_id: id, payload, scheduled_at: at.toISOString() }));
  return (await caller.callAll(scheduleChangeOfFlag, inputs)) as Scheduled[];
}

/** @throws {InvalidArgumentError} */
function futureTime(text: string): Date {
  const micros = parseInstant(text);
  if (micros === undefined) throw new InvalidArgumentError("Expected a date and time.");
  return new Date(micros / 1_000);
}

interface ScheduleOptions extends CommonOptions {
  at: Date;
  on?: true;
  off?: true;
  rollout?: number;
}

export const schedule = withFlagOptions(new Command("schedule"), Printed)
  .description("Schedule a flag change; the server applies it if its user may still edit the flag then.")
  .argument("<key>", "flag key")
  .requiredOption(
    "--at <time>",
    "time of the change, for example 2026-01-31T09:00:00+01:00; UTC without a zone",
    futureTime,
  )
  .option("--on", "turn the flag on")
  .option("--off", "turn the flag off")
  .option("--rollout <percent>", "rollout percentage of the flag's only condition set", percentage)
  .option("--user <email>", creatorHelp)
  .addHelpText(
    "after",
    "\nExample:\n  flagkeep flags schedule new-checkout --at 2026-11-24T09:00:00+01:00 --rollout 100",
  )
  .action(
    run((key: string, options: ScheduleOptions) =>
      withFlags(options, async (caller) => {
        const flag = await flagByKey(caller, key);
        const [created] = await scheduleAll(caller, flag, [
          { payload: getPayload(flag, options), at: options.at },
        ]);
        if (options.json) return printJson(toPrinted(created!));
        print(`Change ${created!.id} of flag ${flag.key} is scheduled for ${options.at.toISOString()}.`);
      }),
    ),
  );

/** @throws {InvalidFieldError} */
function getPayload(flag: FlagAnswer, { on, off, rollout }: ScheduleOptions): JsonObject {
  if (on && off) throw new InvalidFieldError(null, "invalid_input", "--on and --off contradict each other.");
  const value: JsonObject = {
    ...(on || off ? { active: on === true } : {}),
    ...(rollout === undefined ? {} : scheduledRollout(flag, rollout)),
  };
  if (Object.keys(value).length === 0)
    throw new InvalidFieldError(null, "invalid_input", "Nothing to change: use --on, --off or --rollout.");
  return { operation: "update", value };
}

/**
 * An integer changes the condition set as it is at that time. A fraction, which only filters can contain, uses the
 * current one.
 */
function scheduledRollout(flag: FlagAnswer, rollout: number): JsonObject {
  if (Number.isInteger(rollout)) return { rollout_percentage: rollout };
  return rolloutFields(withoutDisplayNames(flag.filters) as JsonObject, rollout);
}

interface RolloutOptions extends CommonOptions {
  at: Date;
  every: number;
  steps: number[];
  conditionSet?: number;
}

export const rollout = withFlagOptions(new Command("rollout"), Type.Array(Printed))
  .description(
    "Schedule a gradual rollout of a condition set; a guardrail or rollback condition that fails ends it.",
  )
  .argument("<key>", "flag key")
  .requiredOption("--at <time>", "time of the first step, for example 2026-01-31T09:00:00+01:00", futureTime)
  .addOption(
    new Option("--every <duration>", "time between two steps")
      .argParser(parseInterval)
      .default(parseInterval("1d"), "1d"),
  )
  .addOption(
    new Option("--steps <percentages>", "rising percentages, separated by commas")
      .argParser(parseSteps)
      .default([5, 25, 50, 100], "5,25,50,100"),
  )
  .option("--condition-set <number>", "condition set, from 1; optional if there is one", positiveInteger)
  .option("--user <email>", creatorHelp)
  .addHelpText(
    "after",
    "\nExample:\n  flagkeep flags rollout new-checkout --at 2026-11-24T09:00:00+01:00 --every 1d --steps 5,25,50,100",
  )
  .action(
    run((key: string, options: RolloutOptions) =>
      withFlags(options, async (caller) => {
        const flag = await flagByKey(caller, key);
        const { conditionSet = getOnlySet(getGroups(flag.filters).length) } = options;
        const steps = getRolloutSteps(options.steps, options.at, options.every * 1_000);
        const created = await scheduleAll(
          caller,
          flag,
          steps.map(({ percentage: rollout_percentage, at }) => ({
            payload: {
              operation: rolloutOperation,
              value: { condition_index: conditionSet - 1, rollout_percentage },
            },
            at,
          })),
        );
        if (options.json) return printJson(created.map(toPrinted));
        for (const [index, { id }] of created.entries()) {
          const { percentage, at } = steps[index]!;
          print(`Change ${id} of flag ${flag.key}: ${percentage}% at ${at.toISOString()}.`);
        }
      }),
    ),
  );

/** @throws {InvalidFieldError} */
function getOnlySet(count: number): number {
  if (count <= 1) return 1;
  const detail = `The flag has ${count} condition sets. Choose one with --condition-set.`;
  throw new InvalidFieldError(null, "invalid_input", detail);
}

/** @throws {InvalidArgumentError} */
function parseSteps(text: string): number[] {
  const found = parsePercentages(text);
  if (found === undefined)
    throw new InvalidArgumentError(
      `Expected up to ${rolloutStepsMax} rising percentages, for example 5,25,50,100.`,
    );
  return found;
}

/** @throws {InvalidArgumentError} */
function parseInterval(text: string): number {
  const seconds = parseDuration(text);
  if (seconds < 60)
    throw new InvalidArgumentError("Expected a duration of at least 1m, for example 1d or 6h.");
  return seconds;
}
