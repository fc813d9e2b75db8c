/** What is read of the subject of a request. */

import { expect, test } from "bun:test";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import { ContextReader } from "../../../src/flags/evaluation-context/stored-context.ts";
import type { SubjectReader } from "../../../src/persons/person-reader.ts";
import { flag, testNow, when } from "../make.ts";

test("a failed check for overrides is repeated by the next request", async () => {
  let checks = 0;
  const persons: SubjectReader = {
    subject: () => ({ person: undefined, staticCohortIds: undefined, overridden: [], groups: [] }),
    hasHashKeyOverrides: async () => {
      checks += 1;
      if (checks === 1) throw new Error("on purpose");
      return false;
    },
  };
  const reader = new ContextReader(persons);
  const set = compileFlagSet([flag(1, "f", when([]))], [], []);
  const read = async () => await reader.read(set, { projectId: 1, distinctId: "ann", now: testNow });
  expect(await read().catch(String)).toContain("on purpose");
  expect(await read()).toMatchObject({ person: undefined });
  await read();
  expect(checks).toBe(2);
});
