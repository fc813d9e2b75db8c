/** Schedules a gradual rollout of a flag. */

import { Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { assertEditor, scheduleFlagChange } from "../../src/flags/api/pending-changes.ts";
import { getRolloutSteps, parsePercentages, rolloutStepsMax } from "../../src/flags/rules/shared-rules.ts";
import { getGroups } from "../../src/flags/rules/types.ts";
import { rolloutOperation } from "../../src/flags/store/pending-changes.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { changeTime } from "../cluster-stores.ts";
import { parseDuration, positiveInteger, print, printJson, run } from "../output.ts";
import { creatorWords, getCreator, withProject } from "../stores.ts";
import { type CommonOptions, getFlag, withProjectAndJson } from "./flags-common.ts";
import { futureTime, ScheduledRecord, scheduledRecord, userOf } from "./flags-pending.ts";

interface RolloutOptions extends CommonOptions {
  at: Date;
  every: number;
  steps: number[];
  conditionSet?: number;
  user?: string;
}

export const rollout = withProjectAndJson(new Command("rollout"), Type.Array(ScheduledRecord))
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
  .option("--user <email>", creatorWords)
  .addHelpText(
    "after",
    "\nExample:\n  flagkeep flags rollout new-checkout --at 2026-11-24T09:00:00+01:00 --every 1d --steps 5,25,50,100",
  )
  .action(
    run((key: string, options: RolloutOptions) =>
      withProject(options, (stores) => {
        const flag = getFlag(stores, key);
        const { metadata, project, writing } = stores;
        const user = getCreator(metadata, project.organizationId, options.user) ?? userOf(stores, undefined);
        assertEditor(writing, flag, user.id, `${user.email} may not edit this flag.`);
        const { conditionSet = getOnlySet(getGroups(flag.filters).length) } = options;
        const steps = getRolloutSteps(options.steps, options.at, options.every * 1_000);
        const by = { userId: user.id, now: changeTime() };
        const created = writing.metadata.change(() =>
          steps.map(({ percentage, at: scheduledAt }) => {
            const value = { condition_index: conditionSet - 1, rollout_percentage: percentage };
            return scheduleFlagChange(
              writing,
              flag,
              { payload: { operation: rolloutOperation, value }, scheduledAt },
              by,
            );
          }),
        );
        if (options.json)
          return printJson(created.map((change) => scheduledRecord(change, new Map([[flag.id, flag.key]]))));
        for (const [index, { id, scheduledAt }] of created.entries())
          print(
            `Change ${id} of flag ${flag.key}: ${steps[index]!.percentage}% at ${scheduledAt.toISOString()}.`,
          );
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
