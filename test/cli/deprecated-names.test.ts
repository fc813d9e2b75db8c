/** Former names of commands run the commands of their current names. */

import { expect, test } from "bun:test";
import { replaceOldName } from "../../cli/commands.ts";
import { leaves } from "./tree.ts";

test.each([
  ["migrate-to", "migrate-to-cluster"],
  ["migrate-from", "migrate-from-cluster"],
  ["flags proposals", "flags change-requests"],
  ["projects end-old-key", "projects revoke-old-key"],
])("%s runs %s", (former, current) => {
  const args = ["--json", "2"];
  expect(replaceOldName([...former.split(" "), ...args])).toEqual([...current.split(" "), ...args]);
  expect([...leaves().keys()]).toContain(current);
  expect([...leaves().keys()]).not.toContain(former);
});

test("other calls keep their arguments", () => {
  for (const args of [[], ["flags"], ["flags", "list"], ["projects", "create", "end-old-key"]])
    expect(replaceOldName(args)).toEqual(args);
});
