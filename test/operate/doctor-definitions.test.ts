/** The doctor lists stored conditions that can never match (contract, third round B1). */

import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { checkDefinitions } from "../../src/operate/doctor/run-checks.ts";
import { paths } from "../../src/paths.ts";
import { flagkeep, initializedDirectory } from "../support/server.ts";

const { dataDir } = await initializedDirectory();
afterAll(() => rmSync(join(dataDir, ".."), { recursive: true, force: true }));

const condition = (operator: string, value: unknown) => ({ key: "a", type: "person", operator, value });

function storeFilters(key: string, properties: object[]): void {
  const db = new Database(paths(dataDir).metadata);
  const filters = JSON.stringify({ groups: [{ properties, rollout_percentage: 100 }] });
  db.run("UPDATE flag SET filters = ? WHERE key = ?", [filters, key]);
  db.close();
}

test("values that do not fit their operator are listed by flag and cohort", async () => {
  for (const key of ["good", "bad"])
    expect((await flagkeep(["flags", "create", key, "--data-dir", dataDir])).code).toBe(0);
  storeFilters("good", [condition("exact", ["x"]), { key: "id", type: "cohort", value: 1 }]);
  expect(checkDefinitions(dataDir)).toMatchObject([{ check: "flags", level: "ok" }]);

  storeFilters("bad", [condition("regex", "["), condition("gt", "abc"), condition("no_such", 1)]);
  const db = new Database(paths(dataDir).metadata);
  const properties = { type: "AND", values: [condition("semver_gt", "junk")] };
  db.run("INSERT INTO cohort (project_id, name, filters, created_at) VALUES (1, 'Old', ?, 0)", [
    JSON.stringify({ properties }),
  ]);
  db.close();
  const messages = checkDefinitions(dataDir).map(({ level, message }) => `${level} ${message}`);
  expect(messages.map((message) => message.replace(/ \(project .*?\)/, ""))).toEqual([
    'warning A condition of the flag "bad" matches no user: groups[0].properties[0].value: invalid regex pattern.',
    'warning A condition of the flag "bad" matches no user: Invalid value for operator gt: abc.',
    "warning A condition of the flag \"bad\" matches no user: Unknown operator: 'no_such'.",
    'warning A condition of the cohort "Old" matches no user: Invalid value for operator semver_gt: junk.',
  ]);
});

test("at most 50 are listed, then counted", () => {
  storeFilters(
    "bad",
    Array.from({ length: 60 }, () => condition("gt", "abc")),
  );
  const findings = checkDefinitions(dataDir);
  expect(findings).toHaveLength(51);
  expect(findings.at(-1)?.message).toBe("11 more conditions match no user.");
});
