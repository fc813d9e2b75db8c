/** Results of surveys. Source: contract, experiments 2.11. */

import { expect, test } from "bun:test";
import { netPromoterScore } from "../../src/surveys/results.ts";
import { flagkeep, until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

async function api(path: string, init: { method?: string; body?: object } = {}) {
  const response = await server.api(`/api/projects/1${path}`, init);
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  return { status: response.status, body: (await response.json().catch(() => undefined)) as any };
}

const formula = '=HYPERLINK("https://a.example")';

/** A survey with a rating, choices and a text: shown to 4 persons, answered by 2, dismissed by 1. */
async function answered(name: string) {
  const { body: survey } = await api("/surveys/", {
    method: "POST",
    body: {
      name,
      type: "popover",
      start_date: new Date().toISOString(),
      questions: [
        { type: "rating", id: "score", question: "How likely?", display: "number", scale: 10 },
        {
          type: "single_choice",
          id: "plan",
          question: "Plan?",
          choices: ["Free", "Paid"],
          hasOpenChoice: true,
        },
        { type: "open", id: "why", question: "Why?" },
      ],
    },
  });
  const send = (event: string, distinctId: string, properties: object = {}) =>
    server.post("/i/v0/e/", {
      api_key: server.token,
      event,
      distinct_id: distinctId,
      properties: { $survey_id: survey.id, ...properties },
    });
  for (const id of ["ann", "ben", "cat", "dan"]) await send("survey shown", id);
  await send("survey dismissed", "cat");
  await send("survey sent", "ann", {
    $survey_submission_id: `${name}-1`,
    $survey_completed: false,
    $survey_response_score: 3,
  });
  await send("survey sent", "ann", {
    $survey_submission_id: `${name}-1`,
    $survey_completed: true,
    $survey_response_score: 10,
    $survey_response_plan: "Secret plan",
    $survey_response_why: formula,
  });
  await send("survey sent", "ben", { $survey_response: 7, $survey_response_1: "Free" });
  await send("survey sent", "dan", {
    $survey_submission_id: `${name}-3`,
    $survey_completed: false,
    $survey_response_score: 1,
  });
  const stats = await until(async () => {
    const { body } = await api(`/surveys/${survey.id}/stats/?refresh=force_blocking`);
    return body.stats["survey shown"].total_count === 4 && body.responses === 2 && body;
  }, "the events are counted");
  return { survey, stats };
}

test("counts, rates, distributions and the net promoter score", async () => {
  const { survey, stats } = await answered("counted");
  expect(stats.stats["survey shown"]).toMatchObject({ unique_persons: 4, unique_persons_only_seen: 1 });
  expect(stats.stats["survey sent"]).toMatchObject({ total_count: 2, unique_persons: 2 });
  expect(stats.rates).toMatchObject({ unique_users_response_rate: 50, unique_users_dismissal_rate: 25 });
  const [score, plan, why] = stats.questions;
  expect(score).toMatchObject({ answered: 2, mean: 8.5, nps: { score: 50, promoters: 1, passives: 1 } });
  expect(score.weeks).toHaveLength(1);
  expect(plan.distribution).toEqual([
    { value: "Free", count: 1, percentage: 50 },
    { value: "Paid", count: 0, percentage: 0 },
    { value: "<other>", count: 1, percentage: 50 },
  ]);
  expect(why).toMatchObject({ answered: 1, distribution: [], mean: null, nps: null });
  expect((await api("/surveys/responses_count/")).body[survey.id]).toBe(2);
  expect((await api("/surveys/stats/")).body.stats["survey dismissed"].total_count).toBe(1);
  const args = [
    "surveys",
    "results",
    "counted",
    "--url",
    server.url,
    "--key",
    server.initialized.personal_api_key,
  ];
  const printed = await flagkeep(args);
  expect(printed).toMatchObject({ stderr: "", code: 0 });
  expect(printed.stdout).toStartWith("counted: shown 4, dismissed 1, answered ");
  expect(printed.stdout).toContain("net promoter score 50");
  const local = await flagkeep(["surveys", "results", "counted", "--data-dir", server.dataDir]);
  expect([local.code, local.stderr]).toEqual([2, expect.stringContaining("Use --url")]);
  await api(`/surveys/${survey.id}/`, { method: "PATCH", body: { enable_partial_responses: true } });
  const partial = (await api(`/surveys/${survey.id}/stats/`)).body;
  expect([partial.responses, partial.questions[0].answered]).toEqual([3, 3]);
});

test("responses need query:read for texts; a file runs no formulas", async () => {
  const { survey } = await answered("listed");
  const { body } = await api(`/surveys/${survey.id}/responses/?limit=1`);
  expect([body.count, body.results.length]).toEqual([2, 1]);
  const all = (await api(`/surveys/${survey.id}/responses/`)).body.results;
  const own = all.find((one: { distinct_id: string }) => one.distinct_id === "ann");
  expect(own.answers.map(({ answer }: { answer: unknown }) => answer)).toEqual([10, "Secret plan", formula]);
  const file = await fetch(`${server.url}/api/projects/1/surveys/${survey.id}/responses/`, {
    headers: { Accept: "text/csv", Authorization: `Bearer ${server.initialized.personal_api_key}` },
  });
  expect(file.headers.get("content-type")).toContain("text/csv");
  const csv = await file.text();
  expect(csv.trim().split("\n")).toHaveLength(3);
  expect(csv).toContain(`"'=HYPERLINK(""https://a.example"")"`);
  const key = (await (
    await server.api("/api/personal_api_keys/", {
      method: "POST",
      body: { label: "surveys only", scopes: ["survey:read"] },
    })
  ).json()) as { value: string };
  const response = await fetch(`${server.url}/api/projects/1/surveys/${survey.id}/responses/`, {
    headers: { Authorization: `Bearer ${key.value}` },
  });
  const text = await response.text();
  expect([response.status, text.includes("<other>")]).toEqual([200, true]);
  for (const hidden of ["Secret plan", "HYPERLINK", "ann"]) expect(text).not.toContain(hidden);
});

test("a page has at most 1,000 responses; a file has all of them", async () => {
  const count = 1_003;
  const created = await api("/surveys/", {
    method: "POST",
    body: { name: "many", type: "api", questions: [{ type: "open", question: "Why?" }] },
  });
  const { id } = created.body;
  await server.batch(
    Array.from({ length: count }, (_, index) => ({
      event: "survey sent",
      distinct_id: `many-${index}`,
      properties: { $survey_id: id, $survey_response: `answer ${index}` },
    })),
  );
  const page = await until(async () => {
    const { body } = await api(`/surveys/${id}/responses/?limit=5000&date_to=${new Date().toISOString()}`);
    return body.count === count && body;
  }, "all responses are loaded");
  expect(page.results).toHaveLength(1_000);
  expect(page.next).toContain("offset=1000");
  const file = await fetch(`${server.url}/api/projects/1/surveys/${id}/responses/`, {
    headers: { Accept: "text/csv", Authorization: `Bearer ${server.initialized.personal_api_key}` },
  });
  const lines = (await file.text()).trim().split("\n");
  expect(new Set(lines).size).toBe(count + 1);
});

test("the interval of the net promoter score", () => {
  const { score, interval } = netPromoterScore(62, 25, 13);
  expect(score).toBeCloseTo(49, 9);
  expect(interval[0]).toBeCloseTo(35.0044, 4);
  expect(interval[1]).toBeCloseTo(62.9956, 4);
});

test("a page of long answers is rejected with advice; the file has them in one reading", async () => {
  const created = await api("/surveys/", {
    method: "POST",
    body: { name: "long", type: "api", questions: [{ type: "open", question: "Why?" }] },
  });
  const { id } = created.body;
  const count = 180;
  const length = 100_000;
  for (let from = 0; from < count; from += 60)
    await server.batch(
      Array.from({ length: 60 }, (_, index) => ({
        event: "survey sent",
        distinct_id: `long-${from + index}`,
        properties: { $survey_id: id, $survey_response: "x".repeat(length) },
      })),
    );
  const counted = () => api(`/surveys/${id}/responses/?limit=1&date_to=${new Date().toISOString()}`);
  await until(async () => (await counted()).body.count === count, "all responses are loaded");
  const { status, body } = await api(`/surveys/${id}/responses/?limit=1000`);
  expect([status, body.detail]).toEqual([400, expect.stringContaining("Use a smaller `limit`")]);
  expect((await api(`/surveys/${id}/responses/?limit=100`)).body.results).toHaveLength(100);
  const file = await fetch(`${server.url}/api/projects/1/surveys/${id}/responses/`, {
    headers: { Accept: "text/csv", Authorization: `Bearer ${server.initialized.personal_api_key}` },
  });
  const text = await file.text();
  expect(text.split("\n")).toHaveLength(count + 2);
  expect(text.length).toBeGreaterThan(count * length);
});
