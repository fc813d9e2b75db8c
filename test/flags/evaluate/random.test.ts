import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  localEvaluationBody,
  localEvaluationReply,
} from "../../../src/flags/definitions/local-evaluation.ts";
import { evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { flag, requestFor } from "../make.ts";
import { anyProject } from "../random-flags.ts";

describe("whatever is stored and sent", () => {
  test("evaluation returns a result for every active flag, the same every time, and changes nothing", () => {
    fc.assert(
      fc.property(anyProject, ({ flags, cohorts, groupTypes, requests }) => {
        const before = JSON.stringify({ flags, cohorts, requests });
        const set = compileFlagSet(flags, cohorts, groupTypes);
        const again = compileFlagSet([...flags].reverse(), cohorts, groupTypes);
        for (const request of requests) {
          const { results } = evaluate(set, request);
          expect([...results.keys()].sort()).toEqual(
            flags
              .filter(({ active }) => active)
              .map(({ key }) => key)
              .sort(),
          );
          for (const result of results.values()) {
            expect(result.variant).not.toBe("");
            if (result.failed) expect(result.enabled).toBe(false);
            expect(evaluate(set, request).results.get(result.key)).toEqual(result);
            expect(evaluate(again, request).results.get(result.key)).toEqual(result);
          }
        }
        expect(JSON.stringify({ flags, cohorts, requests })).toBe(before);
      }),
      { numRuns: 150 },
    );
  });

  test("the definitions can be served, and stay the same text", () => {
    fc.assert(
      fc.property(anyProject, fc.boolean(), ({ flags, cohorts, groupTypes }, sendCohorts) => {
        const reply = (input: typeof flags) =>
          localEvaluationReply(
            localEvaluationBody({ flags: input, cohorts, groupTypes, projectId: 1, sendCohorts }),
          );
        expect(reply([...flags].reverse())).toEqual(reply(flags));
      }),
      { numRuns: 100 },
    );
  });

  test("filters and properties of any JSON do not throw", () => {
    const anyJson = fc.json({ maxDepth: 4 }).map((text) => JSON.parse(text) as Json);
    fc.assert(
      fc.property(anyJson, anyJson, fc.string(), (filters, properties, distinctId) => {
        const set = compileFlagSet([flag(1, "f", filters as JsonObject)], [], []);
        const request = requestFor(distinctId, {
          person: { properties: properties as JsonObject },
          personPropertyOverrides: properties as JsonObject,
          groups: properties as JsonObject,
        });
        expect(evaluate(set, request).results.get("f")).toBeDefined();
      }),
      { numRuns: 300 },
    );
  });
});
