/** Results of surveys, and the cohort of exposed persons, with events in ClickHouse. */

import { expect } from "bun:test";
import { TestClickHouse, testWithClickHouse } from "../support/clickhouse.ts";
import { ServerProcess, until } from "../support/server.ts";

const test = testWithClickHouse("surveys with events in ClickHouse");

test("surveys have the same results, and exposed persons the same cohort", async () => {
  await using clickhouse = await TestClickHouse.start();
  await clickhouse.run("CREATE DATABASE flagkeep");
  await using server = await ServerProcess.start({ args: ["--events-url", clickhouse.url("flagkeep")] });
  const api = async (path: string, body?: object, method = "POST") => {
    const init = body === undefined ? {} : { method, body };
    // biome-ignore lint/suspicious/noExplicitAny: responses of any route
    return (await (await server.api(`/api/projects/1${path}`, init)).json()) as any;
  };
  const { id } = await api("/surveys/", {
    name: "Plans",
    type: "popover",
    start_date: new Date().toISOString(),
    responses_limit: 3,
    questions: [
      { type: "rating", id: "score", question: "How likely?", display: "number", scale: 10 },
      { type: "multiple_choice", id: "plans", question: "Plans?", choices: ["Free", "Paid"] },
      { type: "open", id: "why", question: "Why?" },
    ],
  });
  const event = (name: string, distinct_id: string, properties: object = {}) => ({
    event: `survey ${name}`,
    distinct_id,
    properties: { $survey_id: id, ...properties },
  });
  await server.batch([
    ...["ann", "ben", "cat"].map((person) => event("shown", person)),
    event("dismissed", "cat"),
    event("sent", "ann", {
      $survey_submission_id: "s1",
      $survey_completed: false,
      $survey_response_score: 2,
    }),
    event("sent", "ann", {
      $survey_submission_id: "s1",
      $survey_completed: true,
      $survey_response_score: 10,
      $survey_response_plans: ["Free", "Paid", "Else"],
      $survey_response_why: "=1+1",
    }),
    event("sent", "ben", { $survey_response: 7, $survey_response_2: "because" }),
    event("sent", "cat", {
      $survey_submission_id: "s3",
      $survey_completed: false,
      $survey_response_score: 1,
    }),
  ]);
  const stats = await until(async () => {
    const found = await api(`/surveys/${id}/stats/?refresh=true`);
    return found.responses === 2 && found.stats["survey shown"].total_count === 3 && found;
  }, "the events are counted");
  expect(stats.rates).toMatchObject({
    unique_users_response_rate: 66.67,
    unique_users_dismissal_rate: 33.33,
  });
  const [score, plans, why] = stats.questions;
  expect(score).toMatchObject({ answered: 2, mean: 8.5, nps: { score: 50, promoters: 1, passives: 1 } });
  expect(score.weeks).toHaveLength(1);
  expect(plans.distribution).toEqual([
    { value: "Free", count: 1, percentage: 100 },
    { value: "Paid", count: 1, percentage: 100 },
    { value: "<other>", count: 1, percentage: 100 },
  ]);
  expect(why.answered).toBe(2);
  expect((await api("/surveys/responses_count/"))[id]).toBe(2);

  const { count, results } = await api(`/surveys/${id}/responses/`);
  expect(count).toBe(2);
  const [first, second] = results;
  expect([first, second].map((one) => one.distinct_id).sort()).toEqual(["ann", "ben"]);
  expect([first, second].find((one) => one.distinct_id === "ann").answers).toEqual([
    { question_id: "score", answer: 10 },
    { question_id: "plans", answer: ["Free", "Paid", "Else"] },
    { question_id: "why", answer: "=1+1" },
  ]);
  const file = await fetch(`${server.url}/api/projects/1/surveys/${id}/responses/`, {
    headers: { Accept: "text/csv", Authorization: `Bearer ${server.initialized.personal_api_key}` },
  });
  const text = await file.text();
  expect(text.trim().split("\n")).toHaveLength(3);
  expect(text).toContain("'=1+1");

  await server.batch([event("sent", "dan", { $survey_response: 9 })]);
  await until(
    async () => (await api(`/surveys/${id}/`)).status === "completed",
    "the limit of responses ends the survey",
    60_000,
  );

  const experiment = await api("/experiments/", { name: "Checkout", feature_flag_key: "checkout" });
  await api(`/experiments/${experiment.id}/launch/`, {});
  await server.batch(
    ["ann", "ben"].map((distinct_id) => ({
      event: "$feature_flag_called",
      distinct_id,
      properties: { $feature_flag: "checkout", $feature_flag_response: "test" },
    })),
  );
  await until(async () => {
    const found = await api(`/experiments/${experiment.id}/results/?refresh=true`);
    return found.exposures.total === 2;
  }, "the exposures are counted");
  const { cohort } = await api(`/experiments/${experiment.id}/create_exposure_cohort_for_experiment/`, {});
  const filled = await until(async () => {
    const found = await api(`/cohorts/${cohort.id}/`);
    return !found.is_calculating && found;
  }, "the cohort is filled");
  expect(filled.count).toBe(2);
}, 180_000);
