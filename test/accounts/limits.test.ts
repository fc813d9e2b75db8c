/** Permissions of keys, compared. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isUnlimited, isWithin, type KeyRestrictions, unlimited } from "../../src/accounts/limits.ts";

const limits = (
  scopes: string[],
  projectIds: number[] = [],
  organizationIds: string[] = [],
): KeyRestrictions => ({
  scopes,
  projectIds,
  organizationIds,
});

describe("within", () => {
  test.each([
    [limits(["cohort:read"]), unlimited, true],
    [unlimited, limits(["cohort:read"]), false],
    [limits(["cohort:read"]), limits(["cohort:write"]), true],
    [limits(["cohort:write"]), limits(["cohort:read"]), false],
    [limits(["*"], [1]), unlimited, true],
    [unlimited, limits(["*"], [1]), false],
    [limits(["*"], [1]), limits(["*"], [2, 1]), true],
    [limits(["*"], [1, 3]), limits(["*"], [2, 1]), false],
    [limits(["*"], [], ["a"]), unlimited, true],
    [unlimited, limits(["*"], [], ["a"]), false],
    [limits(["*"], [1]), limits(["*"], [], ["a"]), false],
    [limits([]), limits(["cohort:read"]), true],
    [limits(["cohort:read"]), limits([]), false],
    [limits(["survey:write"]), limits(["survey:read", "cohort:write"]), false],
  ])("%j in %j: %s", (inner, outer, expected) => expect(isWithin(inner, outer)).toBe(expected));

  const anyLimits = fc.record({
    scopes: fc.subarray(["*", "cohort:read", "cohort:write", "survey:read"]),
    projectIds: fc.subarray([1, 2, 3]),
    organizationIds: fc.subarray(["a", "b"]),
  });
  test("is an order: each in itself, everything in no limits, and in what is around what is around", () => {
    fc.assert(
      fc.property(anyLimits, anyLimits, anyLimits, (a, b, c) => {
        expect(isWithin(a, a)).toBe(true);
        expect(isWithin(a, unlimited)).toBe(true);
        expect(isWithin(unlimited, a)).toBe(isUnlimited(a));
        if (isWithin(a, b) && isWithin(b, c)) expect(isWithin(a, c)).toBe(true);
      }),
    );
  });
});
