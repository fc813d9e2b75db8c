/** The same request again gets what a server would answer that never saw it before. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ResultCache } from "../../../src/flags/evaluate/caches.ts";
import { Evaluation } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import { getGroups } from "../../../src/flags/rules/types.ts";
import { addCohortMembers } from "../../../src/persons/cohort-members.ts";
import { event, set } from "../../persons/support.ts";
import { dependsOn, inCohort, person, when } from "../make.ts";
import { TestEvaluation } from "./support.ts";

const people = ["ann", "bob"];
const plans = ["free", "pro"];
const dayMs = 86_400_000;

/** What may happen between two requests; `pick` is any number. */
type Step =
  | { step: "ask"; who: number; form: number; agent: number; query: number }
  | { step: "set" | "list" | "group" | "flag" | "late"; who: number; pick: number };

const steps = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        step: fc.constant("ask" as const),
        who: fc.nat(2),
        form: fc.nat(3),
        agent: fc.nat(1),
        query: fc.nat(1),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        step: fc.constantFrom("set", "list", "group", "flag", "late"),
        who: fc.nat(1),
        pick: fc.nat(5),
      }),
    },
  ),
  { minLength: 5, maxLength: 40 },
) as fc.Arbitrary<Step[]>;

/** Which kinds of flags the project has: what is remembered depends on what they look at. */
const kinds = fc.subarray(["dates", "lists", "groups", "cohorts", "dependencies"]);

describe("the same request again", () => {
  test("gets the response of a first request, whatever happened in between", async () => {
    await fc.assert(
      fc.asyncProperty(kinds, steps, async (flagKinds, history) => {
        using server = new TestEvaluation();
        const list = server.cohort({ name: "list", isStatic: true });
        const veterans = server.cohort({
          name: "veterans",
          filters: { properties: { type: "OR", values: [person("since", "is_date_before", "-3d")] } },
        });
        const flags = [
          server.flag("pro", when([person("plan", "exact", "pro")])),
          server.flag("browser", when([]), { evaluationRuntime: "client" }),
          server.flag("half", when([], 50)),
          ...(flagKinds.includes("dates")
            ? [server.flag("old", when([person("since", "is_date_before", "-2d")]))]
            : []),
          ...(flagKinds.includes("lists") ? [server.flag("listed", when([inCohort(list)]))] : []),
          ...(flagKinds.includes("groups") ? [server.flag("large", aboutLargeCompanies)] : []),
          ...(flagKinds.includes("cohorts") ? [server.flag("veteran", when([inCohort(veterans)]))] : []),
        ];
        if (flagKinds.includes("dependencies")) {
          for (const { id, key } of [...flags])
            flags.push(server.flag(`needs-${key}`, when([dependsOn(id)])));
        }
        // Here the store has one connection, and a connection does not see that it made a group type itself.
        happen(server, { step: "group", who: 0, pick: 0 }, { list, flags });
        for (const step of history) {
          if (step.step !== "ask") {
            happen(server, step, { list, flags });
            continue;
          }
          const request = getRequest(server, step);
          const answer = await read(await server.send(...request));
          const fresh = server.freshApp();
          const [path, init] = request;
          const expected = await read(
            await fresh.handle(new Request(`http://localhost${path}`, { method: "POST", ...init })),
          );
          expect(answer).toEqual(expected);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("sees the stored person change back and forth", async () => {
    using server = new TestEvaluation();
    server.flag("pro", when([person("plan", "exact", "pro")]));
    for (const [plan, expected] of [
      ["pro", true],
      ["free", false],
      ["pro", true],
    ] as const) {
      server.people.apply(set("ann", { plan }));
      expect(await server.values({ distinct_id: "ann" })).toEqual({ pro: expected });
      expect(await server.values({ distinct_id: "ann" })).toEqual({ pro: expected });
    }
  });

  test("sees the stored group change", async () => {
    using server = new TestEvaluation();
    happen(server, { step: "group", who: 0, pick: 1 }, { list: 0, flags: [] });
    server.flag("large", aboutLargeCompanies);
    const asked = { distinct_id: "ann", groups: { company: "ann" } };
    expect(await server.values(asked)).toEqual({ large: true });
    happen(server, { step: "group", who: 0, pick: 0 }, { list: 0, flags: [] });
    expect(await server.values(asked)).toEqual({ large: false });
  });

  test("sees the time go by", async () => {
    using server = new TestEvaluation();
    const early = person("since", "is_date_before", "-2d");
    const veterans = server.cohort({
      name: "veterans",
      filters: { properties: { type: "OR", values: [early] } },
    });
    const outer = server.cohort({
      name: "outer",
      filters: { properties: { type: "OR", values: [inCohort(veterans)] } },
    });
    server.flag("old", when([early]));
    server.flag("veteran", when([inCohort(veterans)]));
    server.flag("outer", when([inCohort(outer)]));
    server.people.apply(set("ann", { since: server.now.toISOString() }));
    expect(await server.values({ distinct_id: "ann" })).toEqual({ old: false, veteran: false, outer: false });
    server.now = new Date(server.now.getTime() + 3 * dayMs);
    expect(await server.values({ distinct_id: "ann" })).toEqual({ old: true, veteran: true, outer: true });
  });

  test("sees a user join a list", async () => {
    using server = new TestEvaluation();
    const list = server.cohort({ name: "list", isStatic: true });
    server.flag("listed", when([inCohort(list)]));
    server.people.apply(set("ann", { plan: "pro" }));
    expect(await server.values({ distinct_id: "ann" })).toEqual({ listed: false });
    addCohortMembers(server.people.db, 1, list, { distinctIds: ["ann"] });
    expect(await server.values({ distinct_id: "ann" })).toEqual({ listed: true });
  });
});

describe("the memory", () => {
  const evaluation = new Evaluation([], false);

  test("is cached for the same set, query and properties only", () => {
    const set1 = compileFlagSet([], [], []);
    const set2 = compileFlagSet([], [], []);
    const memory = new ResultCache();
    memory.keep(set1, "words", "{}", evaluation);
    expect(memory.find(set1, "words", "{}")).toBe(evaluation);
    expect(memory.find(set1, "words", undefined)).toBeUndefined();
    expect(memory.find(set1, "words", '{"a":1}')).toBeUndefined();
    expect(memory.find(set1, "other words", "{}")).toBeUndefined();
    expect(memory.find(set2, "words", "{}")).toBeUndefined();
  });

  test("does not cache endless requests and failed responses", () => {
    const flags = compileFlagSet([], [], []);
    const memory = new ResultCache();
    const words = "x".repeat(100_000);
    memory.keep(flags, words, "{}", evaluation);
    expect(memory.find(flags, words, "{}")).toBeUndefined();
    memory.keep(flags, "failing", "{}", new Evaluation([], true));
    expect(memory.find(flags, "failing", "{}")).toBeUndefined();
  });
});

const aboutLargeCompanies = {
  groups: [
    {
      properties: [{ key: "size", value: "large", type: "group", operator: "exact", group_type_index: 0 }],
      rollout_percentage: 100,
      aggregation_group_type_index: 0,
    },
  ],
};

function happen(
  server: TestEvaluation,
  { step, who, pick }: Exclude<Step, { step: "ask" }>,
  { list, flags }: { list: number; flags: ReturnType<TestEvaluation["flag"]>[] },
): void {
  const distinctId = people[who]!;
  switch (step) {
    case "set":
      server.people.apply(
        set(distinctId, {
          plan: plans[pick % 2],
          since: new Date(server.now.getTime() - pick * dayMs).toISOString(),
        }),
      );
      return;
    case "list":
      addCohortMembers(server.people.db, 1, list, { distinctIds: [distinctId] });
      return;
    case "group": {
      const $group_set = { size: pick % 2 ? "large" : "small" };
      server.people.apply(
        event({
          event: "$groupidentify",
          properties: { $group_type: "company", $group_key: distinctId, $group_set },
        }),
      );
      return;
    }
    case "flag": {
      const flag = flags[pick % flags.length]!;
      const [group] = getGroups(flag.filters);
      const rollout_percentage = group!.rollout_percentage === 100 ? 0 : 100;
      const filters = { ...flag.filters, groups: [{ ...group, rollout_percentage }] };
      flags[pick % flags.length] = server.change(flag, { filters });
      return;
    }
    case "late":
      server.now = new Date(server.now.getTime() + pick * dayMs);
  }
}

function getRequest(
  server: TestEvaluation,
  { who, form, agent, query }: Extract<Step, { step: "ask" }>,
): [string, RequestInit] {
  const more = [
    {},
    { person_properties: { plan: "pro" } },
    { groups: { company: people[who % 2] } },
    { flag_keys_to_evaluate: ["pro"] },
  ][form];
  const body = { token: server.token, distinct_id: [...people, "nobody"][who], ...more };
  const userAgent = ["posthog-node/5.70.0", "Mozilla/5.0"][agent]!;
  return [
    ["/flags/?v=2", "/flags/?v=2&only_evaluate_survey_feature_flags=true"][query]!,
    {
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", "User-Agent": userAgent },
    },
  ];
}

/** An answer without what is another one each time. */
async function read(response: Response): Promise<object> {
  const { requestId: _, ...rest } = (await response.json()) as Record<string, unknown>;
  return { status: response.status, ...rest };
}
