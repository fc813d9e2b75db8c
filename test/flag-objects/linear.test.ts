/** An import of objects reads rows in proportion to their number. Source: contract, import 1.10. */

import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { importProject } from "../../src/flag-objects/import-project.ts";
import { FlagInput, flagFields } from "../../src/flags/fields.ts";
import { parseFields } from "../../src/http/fields.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import type { ObjectDocument } from "../../src/operations/flag-document.ts";
import { company, now, TwoProjects } from "../flags/import-export/two-projects.ts";

const few = 10;
const many = 10 * few;
const ratioMax = 12;

const { prepare } = Database.prototype;
afterEach(() => {
  Database.prototype.prepare = prepare;
});

/** The rows that statements return while `run` runs. */
function countRows(run: () => void): number {
  let rows = 0;
  Database.prototype.prepare = function (this: Database, ...parameters: Parameters<typeof prepare>) {
    const statement = prepare.apply(this, parameters);
    for (const name of ["all", "values"] as const) {
      const original = statement[name].bind(statement);
      statement[name] = (...values: never[]) => {
        const found = original(...values) as never[];
        rows += found.length;
        return found;
      };
    }
    return statement;
  } as typeof prepare;
  run();
  Database.prototype.prepare = prepare;
  return rows;
}

const query = {
  kind: "ExperimentMetric",
  metric_type: "mean",
  source: { kind: "EventsNode", event: "order paid", math: "total" },
};
const kinds: Record<keyof ObjectDocument, (n: number) => JsonObject> = {
  holdouts: (n) => ({ name: `h${n}`, id: n + 1, filters: [{ properties: [], rollout_percentage: 5 }] }),
  saved_metrics: (n) => ({ name: `m${n}`, query }),
  experiments: (n) => ({
    name: `e${n}`,
    feature_flag_key: `flag${n}`,
    holdout: `h${n}`,
    saved_metrics: [{ name: `m${n}`, metadata: { type: "secondary" } }],
  }),
  early_access_features: (n) => ({ name: `f${n}`, feature_flag_key: `feature${n}`, stage: "beta" }),
  surveys: (n) => ({
    name: `s${n}`,
    type: "popover",
    questions: [{ type: "open", question: "Why?" }],
    linked_flag_key: `flag${n}`,
    targeting_flag_filters: {
      groups: [{ properties: [{ key: "id", type: "cohort", cohort: "customers" }] }],
    },
  }),
};
const variants = ["control", "test"].map((key) => ({ key, rollout_percentage: 50 }));

/** Rows read by the first import of `count` objects of each kind, and by a second one, which changes nothing. */
function rowsRead(count: number): { first: number; second: number } {
  using projects = new TwoProjects();
  const numbers = Array.from({ length: count }, (_, n) => n);
  projects.cohort(2, "customers", undefined);
  const document = projects.document(2);
  const flags = numbers.flatMap((n): typeof document.flags => [
    { key: `flag${n}`, filters: { groups: [{}], multivariate: { variants } } },
    { key: `feature${n}`, filters: { groups: [{ rollout_percentage: 0 }] } },
  ]);
  projects.import({ ...document, flags });
  const objects = Object.fromEntries(
    Object.entries(kinds).map(([member, make]) => [member, numbers.map(make)]),
  ) as ObjectDocument;
  const run = () =>
    importProject(
      projects.writing,
      {
        projectId: 2,
        document: { ...document, flags: [], cohorts: [] },
        groupTypes: company,
        isDryRun: false,
        now,
        by: { job_type: "command_line", job_id: "ann", payload: {} },
        toFields: (item) => flagFields(parseFields(FlagInput, item)),
      },
      objects,
    );
  const rows: number[] = [];
  const changes = [0, 1].map(() => {
    let result: ReturnType<typeof run> | undefined;
    rows.push(
      countRows(() => {
        result = run();
      }),
    );
    return result!.differences.length;
  });
  expect(changes).toEqual([5 * count, 0]);
  return { first: rows[0]!, second: rows[1]! };
}

test("ten times the objects are imported with at most twelve times the rows", () => {
  const one = rowsRead(few);
  const ten = rowsRead(many);
  for (const at of ["first", "second"] as const) {
    expect(one[at]).toBeGreaterThan(few);
    expect(ten[at] / one[at]).toBeLessThan(ratioMax);
  }
}, 60_000);
