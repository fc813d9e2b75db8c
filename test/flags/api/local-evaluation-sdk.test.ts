import { afterAll, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { PostHog } from "posthog-node";
import {
  localEvaluationBody,
  localEvaluationReply,
} from "../../../src/flags/definitions/local-evaluation.ts";
import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest } from "../../../src/flags/evaluate/model.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { flag, inCohort, person, requestFor, when } from "../make.ts";
import { computableProject, type RandomProject } from "../random-flags.ts";

/** The real SDK, which asks us for definitions and no one for anything else. */
class LocalSdk {
  private definitions = { text: "", etag: "" };
  private readonly client = new PostHog("phc_test", {
    host: "http://localhost",
    personalApiKey: "phx_test",
    featureFlagsPollingInterval: 3_600_000,
    fetch: async (url) => {
      if (!String(url).includes("/flags/definitions")) throw new Error(`The SDK asked for ${url}`);
      const { text, etag } = this.definitions;
      return new Response(text, { status: 200, headers: { ETag: etag } });
    },
  });

  async load(project: Omit<RandomProject, "requests">, sendCohorts = true): Promise<void> {
    this.definitions = localEvaluationReply(localEvaluationBody({ ...project, projectId: 1, sendCohorts }));
    await this.client.reloadFeatureFlags();
  }

  values(request: EvaluationRequest): Promise<Record<string, boolean | string>> {
    return this.client.getAllFlags(request.distinctId, {
      onlyEvaluateLocally: true,
      personProperties: (request.personPropertyOverrides ?? {}) as Record<string, string>,
      groups: (request.groups ?? {}) as Record<string, string>,
      groupProperties: (request.groupPropertyOverrides ?? {}) as Record<string, Record<string, string>>,
    }) as Promise<Record<string, boolean | string>>;
  }

  close(): Promise<void> {
    return this.client.shutdown();
  }
}

// It tells of every flag that it leaves to the server.
const warnings = spyOn(console, "warn").mockImplementation(() => undefined);
const sdk = new LocalSdk();
afterAll(async () => {
  await sdk.close();
  warnings.mockRestore();
});

test("posthog-node computes the values that we compute", async () => {
  let compared = 0;
  let asked = 0;
  await fc.assert(
    fc.asyncProperty(computableProject, async (project) => {
      await sdk.load(project);
      const set = compileFlagSet(project.flags, project.cohorts, project.groupTypes);
      for (const request of project.requests) {
        const local = await sdk.values(request);
        const { results } = evaluate(set, request);
        asked += project.flags.length;
        for (const [key, value] of Object.entries(local)) {
          const ours = results.get(key);
          expect([key, value]).toEqual([key, ours === undefined ? false : clientValue(ours)]);
          compared++;
        }
      }
    }),
    { numRuns: 300 },
  );
  // What the SDK leaves to the server is not compared; it must stay the exception.
  expect(compared / asked).toBeGreaterThan(0.9);
});

test("a cohort written into its flag means the same", async () => {
  const a = person("a", "exact", "yes");
  const b = person("b", "exact", "yes");
  const definitions: JsonObject[] = [
    { type: "AND", values: [a, b] },
    { type: "OR", values: [a, b] },
    {
      type: "OR",
      values: [
        { type: "AND", values: [a] },
        { type: "AND", values: [b] },
      ],
    },
  ];
  for (const definition of definitions) {
    const project = {
      flags: [flag(1, "f", when([inCohort(1)]))],
      cohorts: [{ id: 1, name: "c", isStatic: false, filters: { properties: definition } }],
      groupTypes: [],
    };
    await sdk.load(project, false);
    const set = compileFlagSet(project.flags, project.cohorts, []);
    for (const [has, hasToo] of [
      ["yes", "yes"],
      ["yes", "no"],
      ["no", "yes"],
      ["no", "no"],
    ]) {
      const request = requestFor("user", { personPropertyOverrides: { a: has!, b: hasToo! } });
      expect(await sdk.values(request)).toEqual({ f: evaluate(set, request).results.get("f")!.enabled });
    }
  }
});
