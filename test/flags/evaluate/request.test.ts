/** What is remembered while one request is answered. */

import { expect, test } from "bun:test";
import type { CompiledFlag, FlagSet, PersonFilter } from "../../../src/flags/evaluate/model.ts";
import { Run } from "../../../src/flags/evaluate/request.ts";
import { requestFor } from "../make.ts";

const noFlags = {} as FlagSet;

test("a property is looked up once, even if missing, and a filter evaluated once", () => {
  let looks = 0;
  let tests = 0;
  const properties = {
    get plan() {
      looks += 1;
      return "pro";
    },
  };
  const run = new Run(noFlags, requestFor("a", { person: { properties } }));
  expect([run.personValue("plan"), run.personValue("plan"), looks]).toEqual(["pro", "pro", 1]);
  let misses = 0;
  run.person.get = () => {
    misses += 1;
    return undefined;
  };
  expect([run.personValue("none"), run.personValue("none"), misses]).toEqual([undefined, undefined, 1]);
  const filter = {
    key: "plan",
    test: () => {
      tests += 1;
      return false;
    },
  } as Partial<PersonFilter> as PersonFilter;
  const shared = { ...filter, slot: 0 };
  expect([run.personResult(shared), run.personResult(shared), tests]).toEqual([false, false, 1]);
  // One that no other flag asks is not kept.
  expect([run.personResult(filter), run.personResult(filter), tests]).toEqual([false, false, 3]);
});

test("where overrides could not be read the distinct id decides, not the id before", () => {
  const flag = { key: "f", hasContinuity: true } as CompiledFlag;
  const identity = (hashKeyOverridesFailed: boolean) =>
    new Run(noFlags, requestFor("a", { anonDistinctId: "before", hashKeyOverridesFailed })).personIdentity(
      flag,
    );
  expect(identity(false)).toEqual({ id: "before", kind: "anon_distinct_id" });
  expect(identity(true)).toEqual({ id: "a", kind: "distinct_id" });
});
