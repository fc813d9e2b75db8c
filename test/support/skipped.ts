/** Says in the output of the tests what was left out on this machine, and why. */

import { test } from "bun:test";

/** `test`, or when something is missing a `test.skip` after a line that says so. */
export function testWhen(isThere: boolean, what: string, missing: string): typeof test {
  if (isThere) return test;
  console.log(`SKIPPED ${what}: ${missing}`);
  return test.skip as typeof test;
}
