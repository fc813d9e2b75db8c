/**
 * How many requests for flags one thread answers: 100 active flags, stored person with 60 properties.
 *
 * Run: bun test/bench/evaluate.ts
 */

import { cpus } from "node:os";
import { localEvaluationBody, localEvaluationReply } from "../../src/flags/definitions/local-evaluation.ts";
import { evaluate } from "../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest } from "../../src/flags/evaluate/model.ts";
import type { FlagDefinition } from "../../src/flags/rules/types.ts";
import { renderFlags } from "../../src/flags/sdk/flags-reply.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";
import { cohort, dependsOn, flag, inCohort, person, when } from "../flags/make.ts";

const variants: JsonObject = {
  multivariate: {
    variants: [
      { key: "control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ],
  },
};

/** Of ten flags: four rollouts, two experiments, and one each by text, by date and version, by pattern, by cohort and flag. */
function getFilters(i: number): JsonObject {
  switch (i % 10) {
    case 0:
    case 1:
      return { ...when([], 37.5), ...variants };
    case 2:
      return when([person("email", "icontains", "@acme.com"), person("plan", "exact", ["pro", "team"])], 50);
    case 3:
      return when([
        person("signed_up", "is_date_after", "-90d"),
        person("app_version", "semver_gte", "2.3.0"),
      ]);
    case 4:
      return when([person("email", "regex", "^[\\w.+-]+@(?:acme|globex)\\.(?:com|org)$")]);
    case 5:
      return when([inCohort((i % 3) + 1), ...(i > 10 ? [dependsOn(String(i - 9))] : [])]);
    default:
      return when([], (i * 7) % 100);
  }
}

const flags: FlagDefinition[] = Array.from({ length: 100 }, (_, i) =>
  flag(i + 1, `flag-number-${i + 1}`, getFilters(i)),
);
const cohorts = [1, 2, 3].map((id) =>
  cohort(id, {
    type: "OR",
    values: [{ type: "AND", values: [person("plan", "exact", "pro"), person("seats", "gt", "10")] }],
  }),
);
const properties: JsonObject = {
  ...Object.fromEntries(
    Array.from({ length: 55 }, (_, i): [string, Json] => [`property_${i}`, `value ${i}`]),
  ),
  email: "someone@acme.com",
  plan: "pro",
  seats: 25,
  signed_up: "2026-01-02T03:04:05Z",
  app_version: "2.10.1",
};

function requestFor(i: number, rest: Partial<EvaluationRequest> = {}): EvaluationRequest {
  return {
    distinctId: `user-${i}`,
    now: 1_767_225_600_000 + i,
    timezone: "UTC",
    person: { properties },
    ...rest,
  };
}

function measure(name: string, rounds: number, run: (i: number) => unknown): void {
  for (let i = 0; i < rounds / 4; i++) run(i);
  const started = Bun.nanoseconds();
  for (let i = 0; i < rounds; i++) run(i);
  const microseconds = (Bun.nanoseconds() - started) / 1_000 / rounds;
  const perSecond = Math.round(1_000_000 / microseconds).toLocaleString("en");
  console.log(`${name.padEnd(52)} ${microseconds.toFixed(1).padStart(9)} µs ${perSecond.padStart(10)} /s`);
}

console.log(`${cpus().length} cores, Bun ${Bun.version}, 100 active flags`);
const set = compileFlagSet(flags, cohorts, []);
const stamp = { requestId: "0190a1b2-0000-7000-8000-000000000000", evaluatedAt: new Date(0) };
measure("evaluate", 5_000, (i) => evaluate(set, requestFor(i)));
measure("evaluate, team in Berlin", 5_000, (i) =>
  evaluate(set, requestFor(i, { timezone: "Europe/Berlin" })),
);
measure("evaluate, one flag asked for", 20_000, (i) =>
  evaluate(set, requestFor(i, { selection: { flagKeys: ["flag-number-2"] } })),
);
measure("evaluate and render with details", 3_000, (i) =>
  JSON.stringify(renderFlags(evaluate(set, requestFor(i)), "details", stamp)),
);
measure("compile the set", 100, () => compileFlagSet(flags, cohorts, []));
const input = { flags, cohorts, groupTypes: [], projectId: 1, sendCohorts: true };
measure("definitions for local evaluation, with entity tag", 100, () =>
  localEvaluationReply(localEvaluationBody(input)),
);
