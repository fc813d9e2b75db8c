/** Iterations, limits of responses and translations of surveys. Source: contract, experiments 1.5. */

import { expect, test } from "bun:test";
import type { SurveyCounts } from "../../src/events/insights/survey.ts";
import { iterationAt } from "../../src/surveys/iterations.ts";
import { SurveyMonitor } from "../../src/surveys/survey-monitor.ts";
import { publicSurveys } from "../../src/surveys/surveys.ts";
import { TestServer } from "../support/management-server.ts";

const base = "/api/projects/1/surveys/";
const question = { type: "open", question: "Why?" };
const dayMs = 86_400_000;

function prepare() {
  const server = new TestServer();
  const sent = { count: 0 };
  const errors: unknown[] = [];
  const monitor = new SurveyMonitor({
    ...server.deps,
    surveyEvents: {
      surveyResults: async (_, request) => ({
        results: {
          counts: request.surveyIds.map((surveyId) => ({ surveyId, sent: sent.count }) as SurveyCounts),
        } as never,
        computedAt: 0,
        isCached: false,
      }),
      surveyResponses: () => {
        throw new Error("No responses are read here.");
      },
    },
    change: async (work) => work(),
    onError: (error) => errors.push(error),
  });
  const create = async (body: object) => {
    const created = await server.ask("POST", base, {
      body: { name: "Why", type: "popover", questions: [question], ...body },
    });
    expect(created.status).toBe(201);
    return created.body;
  };
  const get = async (id: string) => (await server.ask("GET", `${base}${id}/`)).body;
  return { server, sent, errors, monitor, create, get };
}

test("each iteration asks everyone again", async () => {
  const { server, monitor, create, get, errors } = prepare();
  using _ = server;
  const { id } = await create({
    start_date: server.now.toISOString(),
    schedule: "recurring",
    iteration_count: 3,
    iteration_frequency_days: 7,
  });
  const keys = (survey: { internal_targeting_flag: { filters: { groups: [{ properties: [] }] } } }) =>
    survey.internal_targeting_flag.filters.groups[0].properties.map(({ key }) => key);
  const answered = (iteration: number) => [
    `$survey_dismissed/${id}/${iteration}`,
    `$survey_responded/${id}/${iteration}`,
  ];
  const first = await get(id);
  expect([first.current_iteration, keys(first)]).toEqual([1, answered(1)] as never);
  const start = server.now.getTime();
  await monitor.check(new Date(start + 7 * dayMs - 1));
  expect((await get(id)).current_iteration).toBe(1);
  await monitor.check(new Date(start + 7 * dayMs));
  const second = await get(id);
  expect([second.current_iteration, keys(second)]).toEqual([2, answered(2)] as never);
  expect(publicSurveys(server.metadata.db, 1)).toMatchObject([
    { current_iteration: 2, current_iteration_start_date: "2026-03-08T12:00:00.000000Z" },
  ]);
  // After the last one it stays there.
  await monitor.check(new Date(start + 100 * dayMs));
  expect((await get(id)).current_iteration).toBe(3);
  const { body } = await server.ask("GET", `${base}${id}/activity/`);
  expect(body.results[0]).toMatchObject({
    user: { is_system: true },
    detail: { trigger: { job_type: "survey_schedule" } },
  });
  expect(errors).toEqual([]);
});

test("iterations are whole periods since the launch", () => {
  const startDate = new Date("2026-03-01T00:00:00Z");
  const of = {
    startDate,
    endDate: null,
    iterationCount: 500,
    iterationFrequencyDays: 1,
    currentIteration: null,
    currentIterationStartDate: null,
  };
  const at = (days: number) => iterationAt(of, new Date(startDate.getTime() + days * dayMs)).currentIteration;
  expect([-1, 0, 0.99, 1, 499, 9_999].map(at)).toEqual([1, 1, 1, 2, 500, 500]);
  expect(iterationAt({ ...of, startDate: null }, startDate).currentIteration).toBeNull();
  const endDate = new Date(startDate.getTime() + 2.5 * dayMs);
  expect(iterationAt({ ...of, endDate }, new Date(startDate.getTime() + 9 * dayMs)).currentIteration).toBe(3);
});

test("a survey ends when it reaches its limit of responses", async () => {
  const { server, monitor, create, get, sent, errors } = prepare();
  using _ = server;
  const start_date = server.now.toISOString();
  const limited = await create({ responses_limit: 10, start_date });
  const unlimited = await create({ name: "No limit", start_date });
  const soon = new Date(server.now.getTime() + 60_000);
  sent.count = 9;
  await monitor.check(soon);
  expect((await get(limited.id)).status).toBe("running");
  sent.count = 10;
  await monitor.check(soon);
  const after = await get(limited.id);
  expect([after.status, after.end_date]).toEqual(["completed", "2026-03-01T12:01:00.000000Z"]);
  expect(after.internal_targeting_flag.active).toBeFalse();
  expect((await get(unlimited.id)).status).toBe("running");
  const { body } = await server.ask("GET", `${base}${limited.id}/activity/`);
  expect(body.results[0]).toMatchObject({
    user: { is_system: true },
    detail: { changes: [{ field: "end_date" }], trigger: { job_type: "survey_schedule" } },
  });
  expect(errors).toEqual([]);
});

test("translations of the screens are sanitized with the content type of the appearance", async () => {
  const { server, create, get } = prepare();
  using _ = server;
  const html = "<b>Danke</b><script>alert(1)</script>";
  const survey = await create({
    start_date: server.now.toISOString(),
    appearance: { thankYouMessageDescription: "Thanks", thankYouMessageDescriptionContentType: "html" },
    translations: { de: { name: "Warum", thankYouMessageHeader: html, thankYouMessageDescription: html } },
  });
  const shown = { name: "Warum", thankYouMessageHeader: html, thankYouMessageDescription: "<b>Danke</b>" };
  expect(survey.translations).toEqual({ de: shown });
  expect(publicSurveys(server.metadata.db, 1)).toMatchObject([{ translations: { de: shown } }]);
  await server.ask("PATCH", `${base}${survey.id}/`, { body: { translations: null } });
  expect((await get(survey.id)).translations).toBeNull();
  expect(publicSurveys(server.metadata.db, 1)[0]).not.toHaveProperty("translations");
});

test("a text becomes HTML together with its translations", async () => {
  const { server, create } = prepare();
  using _ = server;
  const html = "<i>Danke</i><img src=x onerror=alert(1)>";
  const { id } = await create({ translations: { de: { thankYouMessageDescription: html } } });
  const changed = await server.ask("PATCH", `${base}${id}/`, {
    body: { appearance: { thankYouMessageDescriptionContentType: "html" } },
  });
  expect(changed.body.translations.de.thankYouMessageDescription).toBe("<i>Danke</i>");
});

test.each([
  ["too many iterations", { iteration_count: 501, iteration_frequency_days: 1 }, "iteration_count"],
  ["no frequency", { iteration_count: 2 }, "iteration_frequency_days"],
  ["no count", { iteration_frequency_days: 2 }, "iteration_count"],
  ["a negative limit", { responses_limit: -1 }, "responses_limit"],
  ["a language", { translations: { "<b>": { name: "x" } } }, "translations"],
  ["no object", { translations: { de: "x" } }, "translations.de"],
  ["a long text", { translations: { de: { name: "x".repeat(5_001) } } }, "translations.de.name"],
  ["much text", { translations: { de: { other: "x".repeat(100_000) } } }, "translations"],
])("rejects %s", async (_, body, attr) => {
  const { server } = prepare();
  using _server = server;
  const sent = { name: "Why", type: "popover", questions: [question], ...body };
  const answer = await server.ask("POST", base, { body: sent });
  expect([answer.status, answer.body.attr]).toEqual([400, attr]);
});

test("0 means no iterations and no limit, as the console of PostHog sends it", async () => {
  const { server, create } = prepare();
  using _ = server;
  const none = await create({ iteration_count: 0, iteration_frequency_days: 0, responses_limit: 0 });
  expect(none).toMatchObject({
    iteration_count: null,
    iteration_frequency_days: null,
    responses_limit: null,
    current_iteration: null,
    current_iteration_start_date: null,
  });
});
