/** The most objects of a kind that a project has. Source: contract, experiments 1.2. */

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { TestServer } from "../support/management-server.ts";

const metric = {
  kind: "ExperimentMetric",
  metric_type: "mean",
  source: { kind: "EventsNode", event: "order paid" },
};
const questions = [{ type: "open", question: "Why?" }];

test.each([
  ["experiments", "experiment", 2_000, "experiments", {}],
  ["experiment_holdouts", "experiment_holdout", 2_000, "holdouts", { filters: [{ rollout_percentage: 5 }] }],
  ["experiment_saved_metrics", "experiment_saved_metric", 2_000, "saved metrics", { query: metric }],
  ["early_access_feature", "early_access_feature", 1_000, "early access features", { stage: "draft" }],
  ["surveys", "survey", 1_000, "surveys", { type: "api", questions }],
] as const)("%s", async (path, table, max, what, body) => {
  using server = new TestServer();
  const create = (name: string) =>
    server.ask("POST", `/api/projects/1/${path}/`, { body: { ...body, name } });
  expect((await create("first")).status).toBe(201);
  copyRow(server, table, max - 2);
  expect((await create("last")).status).toBe(201);
  expect(await create("one more")).toMatchObject({
    status: 400,
    body: { detail: `A project has at most ${max.toLocaleString("en-US")} ${what}.` },
  });
});

/** Copies the only row of a table, with other IDs. */
function copyRow({ path }: TestServer, table: string, copies: number): void {
  using db = new Database(path);
  const columns = db.query<{ name: string }, []>(`PRAGMA table_info(${table})`).all();
  const others = columns.map(({ name }) => name).filter((name) => name !== "id");
  db.run(
    `INSERT INTO ${table} (id, ${others})
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${copies})
     SELECT iif(typeof(id) = 'integer', id + i, printf('%.24s%012d', id, i)), ${others} FROM ${table}, n`,
  );
}
