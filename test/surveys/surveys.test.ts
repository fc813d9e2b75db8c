/** Surveys, the flags they create, and what visitors see of them. Source: contract, experiments 1.5. */

import { expect, test } from "bun:test";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

const open = { type: "open", question: "Why?" };
async function api(path: string, init: { method?: string; body?: object } = {}) {
  const response = await server.api(`/api/projects/1${path}`, init);
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  return { status: response.status, body: (await response.json().catch(() => undefined)) as any };
}
const create = (body: object = {}) =>
  api("/surveys/", { method: "POST", body: { name: "Why", type: "popover", questions: [open], ...body } });
const change = (id: string, body: object) => api(`/surveys/${id}/`, { method: "PATCH", body });
const now = () => new Date().toISOString();

async function listed() {
  const response = await fetch(`${server.url}/api/surveys/?token=${server.token}`);
  return ((await response.json()) as { surveys: Record<string, unknown>[] }).surveys;
}
async function configured() {
  const config = await (await fetch(`${server.url}/array/${server.token}/config`)).json();
  const script = await (await fetch(`${server.url}/array/${server.token}/config.js`)).text();
  const sent = { token: server.token, distinct_id: "x" };
  const flags = await (await server.post("/flags?v=2&config=true", sent)).json();
  return [config.surveys, script.includes('"surveys":true'), flags.surveys];
}
async function isOn(key: string, distinctId: string) {
  const response = await server.post("/flags?v=2", { token: server.token, distinct_id: distinctId });
  const { flags } = (await response.json()) as { flags: Record<string, { enabled: boolean }> };
  return flags[key]?.enabled ?? false;
}

test("a survey is visible exactly while it runs, and its flag is on for persons who have not answered", async () => {
  const { status, body: survey } = await create({
    description: "internal",
    conditions: { seenSurveyWaitPeriodInDays: 7 },
    targeting_flag_filters: {
      groups: [
        {
          properties: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }],
          rollout_percentage: 100,
        },
      ],
    },
  });
  expect([status, survey.status]).toEqual([201, "draft"]);
  const internal = survey.internal_targeting_flag;
  expect(internal).toMatchObject({ active: false, creation_context: "surveys" });
  expect(internal.key).toStartWith("survey-targeting-");
  expect(internal.filters.groups).toHaveLength(2);
  expect(internal.surveys[survey.id]).toMatchObject({ id: survey.id, name: "Why", status: "draft" });
  expect([await listed(), await configured()]).toEqual([[], [false, false, false]]);

  const running = (await change(survey.id, { start_date: now() })).body;
  expect([running.status, running.internal_targeting_flag.active, running.targeting_flag.active]).toEqual([
    "running",
    true,
    true,
  ]);
  expect(await configured()).toEqual([true, true, true]);
  const [shown] = await listed();
  expect(shown).toMatchObject({
    id: survey.id,
    internal_targeting_flag_key: internal.key,
    linked_flag_key: null,
    targeting_flag_key: survey.targeting_flag.key,
  });
  expect(shown).not.toHaveProperty("description");
  const flagIds = [internal.id, survey.targeting_flag.id];
  const flags = await api("/feature_flags/");
  expect(flags.body.results.filter(({ id }: { id: number }) => flagIds.includes(id))).toEqual([]);

  expect([await isOn(internal.key, "ann"), await isOn(survey.targeting_flag.key, "ann")]).toEqual([
    true,
    false,
  ]);
  await server.post("/i/v0/e/", {
    api_key: server.token,
    event: "survey sent",
    distinct_id: "ann",
    properties: { $survey_id: survey.id, $set: { [`$survey_responded/${survey.id}`]: true } },
  });
  await until(async () => !(await isOn(internal.key, "ann")), "the flag is off after the answer");
  expect(await isOn(internal.key, "ben")).toBeTrue();

  const blocked = await api(`/feature_flags/${internal.id}/`, { method: "PATCH", body: { deleted: true } });
  expect([blocked.status, blocked.body.detail]).toEqual([400, expect.stringContaining('survey "Why"')]);
  const stopped = (await change(survey.id, { end_date: now() })).body;
  expect([stopped.status, stopped.internal_targeting_flag.active]).toEqual(["completed", false]);
  expect([await listed(), await configured()]).toEqual([[], [false, false, false]]);
  expect((await change(survey.id, { end_date: null })).body.status).toBe("running");
  expect((await change(survey.id, { archived: true })).body.targeting_flag.active).toBeFalse();
  const activity = await api(`/surveys/${survey.id}/activity/`);
  expect(activity.body.results.map((one: { activity: string }) => one.activity)).toContain("created");

  expect((await api(`/surveys/${survey.id}/`, { method: "DELETE" })).status).toBe(204);
  expect((await api(`/surveys/${survey.id}/`)).status).toBe(404);
  for (const id of flagIds) expect((await api(`/feature_flags/${id}/`)).body?.deleted ?? true).toBeTrue();
});

test("removing the targeting flag leaves the survey, and a linked flag lists it", async () => {
  const flag = (await api("/feature_flags/", { method: "POST", body: { key: "linked" } })).body;
  const { body } = await create({ linked_flag_id: flag.id, targeting_flag_filters: { groups: [{}] } });
  expect((await api(`/feature_flags/${flag.id}/`)).body.surveys[body.id].name).toBe("Why");
  const rejected = await change(body.id, { targeting_flag_filters: { groups: "x" } });
  expect(rejected).toMatchObject({ status: 400, body: { attr: "targeting_flag_filters" } });
  const after = await change(body.id, { remove_targeting_flag: true, linked_flag_id: null });
  expect([after.status, after.body.targeting_flag, after.body.linked_flag]).toEqual([200, null, null]);
  expect((await api(`/feature_flags/${flag.id}/`)).body.surveys).toEqual({});
});

test.each([
  ["no questions", { questions: [] }, "questions"],
  ["too many questions", { questions: Array(51).fill(open) }, "questions"],
  ["an unknown type", { questions: [{ ...open, type: "essay" }] }, "questions.0.type"],
  ["a blank question", { questions: [{ ...open, question: " " }] }, "questions.0.question"],
  ["a scale", { questions: [{ ...open, type: "rating", display: "number", scale: 4 }] }, "questions.0.scale"],
  ["one choice", { questions: [{ ...open, type: "single_choice", choices: ["a"] }] }, "questions.0.choices"],
  ["a script as link", { questions: [{ ...open, type: "link", link: "javascript:1" }] }, "questions.0.link"],
  [
    "an unknown type of text",
    { questions: [{ ...open, descriptionContentType: "markdown" }] },
    "questions.0.descriptionContentType",
  ],
  [
    "a script as translated link",
    { questions: [{ ...open, type: "link", translations: { de: { link: "javascript:1" } } }] },
    "questions.0.translations.de.link",
  ],
  [
    "a language",
    { questions: [{ ...open, translations: { "<b>": { question: "x" } } }] },
    "questions.0.translations",
  ],
  [
    "too few translated choices",
    {
      questions: [
        {
          ...open,
          type: "single_choice",
          choices: ["a", "b", "c"],
          translations: { de: { choices: ["a", "b"] } },
        },
      ],
    },
    "questions.0.translations.de.choices",
  ],
  [
    "a rule",
    { questions: [{ ...open, validation: [{ type: "regex", value: 1 }] }] },
    "questions.0.validation",
  ],
  [
    "a length of 0",
    { questions: [{ ...open, validation: [{ type: "min_length", value: 0 }] }] },
    "questions.0.validation",
  ],
  [
    "a least length above the greatest",
    {
      questions: [
        {
          ...open,
          validation: [
            { type: "max_length", value: 3 },
            { type: "min_length", value: 5 },
          ],
        },
      ],
    },
    "questions.0.validation",
  ],
  [
    "a style that loads a picture",
    { appearance: { backgroundColor: "url(https://e.example/x)" } },
    "appearance.backgroundColor",
  ],
  ["a style that is no text", { appearance: { fontFamily: {} } }, "appearance.fontFamily"],
  ["a label that is no text", { appearance: { widgetLabel: {} } }, "appearance.widgetLabel"],
  ["a switch that is a text", { appearance: { whiteLabel: "no" } }, "appearance.whiteLabel"],
  ["a trigger", { appearance: { widgetType: "bell" } }, "appearance.widgetType"],
  ["a negative delay", { appearance: { surveyPopupDelaySeconds: -1 } }, "appearance.surveyPopupDelaySeconds"],
  ["a match of devices", { conditions: { deviceTypesMatchType: "like" } }, "conditions.deviceTypesMatchType"],
  [
    "a switch of events",
    { conditions: { events: { repeatedActivation: "yes" } } },
    "conditions.events.repeatedActivation",
  ],
  [
    "an operator of an event's property",
    {
      conditions: {
        events: { values: [{ name: "a", propertyFilters: { x: { values: ["1"], operator: "like" } } }] },
      },
    },
    "conditions.events.propertyFilters",
  ],
  ["a variant without a flag", { conditions: { linkedFlagVariant: "test" } }, "conditions.linkedFlagVariant"],
  [
    "a branch to nowhere",
    { questions: [{ ...open, branching: { type: "specific_question", index: 1 } }] },
    "questions.0.branching",
  ],
  [
    "shuffling with branching",
    { questions: [{ ...open, branching: { type: "end" } }], appearance: { shuffleQuestions: true } },
    "appearance",
  ],
  [
    "thanks of an unknown type",
    { appearance: { thankYouMessageDescriptionContentType: 1 } },
    "appearance.thankYouMessageDescriptionContentType",
  ],
  [
    "a wait period",
    { conditions: { seenSurveyWaitPeriodInDays: -1 } },
    "conditions.seenSurveyWaitPeriodInDays",
  ],
  ["filters of persons", { targeting_flag_filters: { groups: "x" } }, "targeting_flag_filters"],
  ["an unknown flag", { linked_flag_id: 999_999 }, "linked_flag_id"],
  ["an end without start", { end_date: "2026-01-01T00:00:00Z" }, "end_date"],
  ["a start in the future", { start_date: "2999-01-01T00:00:00Z" }, "start_date"],
])("rejects %s", async (_, body, field) => {
  const { status, body: error } = await create(body);
  expect([status, error.attr]).toEqual([400, field]);
});

test("the variant of the linked flag exists, or stands for all", async () => {
  const variants = ["control", "test"].map((key) => ({ key, rollout_percentage: 50 }));
  const filters = { groups: [{ properties: [], rollout_percentage: 100 }], multivariate: { variants } };
  const many = (await api("/feature_flags/", { method: "POST", body: { key: "many", filters } })).body;
  const plain = (await api("/feature_flags/", { method: "POST", body: { key: "plain" } })).body;
  const linked = (flag: { id: number }, linkedFlagVariant: string) =>
    create({ linked_flag_id: flag.id, conditions: { linkedFlagVariant } });
  expect((await linked(many, "any")).status).toBe(201);
  expect((await linked(many, "third")).body.detail).toBe(
    "Feature flag variant 'third' does not exist. Available variants: control, test",
  );
  expect((await linked(plain, "test")).body.detail).toBe(
    "Feature flag variant 'test' specified but the linked feature flag has no variants",
  );
  const { body: survey } = await linked(many, "test");
  // The variant would be without a flag; both are removed together.
  expect((await change(survey.id, { linked_flag_id: null })).body.attr).toBe("conditions.linkedFlagVariant");
  const after = await change(survey.id, { linked_flag_id: null, conditions: null });
  expect(after.body).toMatchObject({ linked_flag_id: null, conditions: null });
});

test("HTML is sanitized when it is saved, in descriptions, translations and screens", async () => {
  const html = '<p>Read <a href="https://a.example" onclick="x()">this</a><script>x()</script></p>';
  const safe = '<p>Read <a href="https://a.example">this</a></p>';
  const question = {
    ...open,
    description: html,
    descriptionContentType: "html",
    translations: { de: { question: "Warum?", description: html } },
  };
  const { body } = await create({
    questions: [question, { ...open, description: html }],
    appearance: {
      thankYouMessageDescription: html,
      thankYouMessageDescriptionContentType: "html",
      introScreenDescription: html,
    },
  });
  expect(body.questions).toMatchObject([
    { description: safe, descriptionContentType: "html", translations: { de: { description: safe } } },
    { description: html, descriptionContentType: "text" },
  ]);
  expect(body.appearance).toEqual({
    thankYouMessageDescription: safe,
    thankYouMessageDescriptionContentType: "html",
    introScreenDescription: html,
    introScreenDescriptionContentType: "text",
  });
  // A text that becomes HTML later is sanitized then.
  const { body: changed } = await change(body.id, {
    questions: body.questions.map((one: object) => ({ ...one, descriptionContentType: "html" })),
  });
  expect(changed.questions[1].description).toBe(safe);
});

test("texts are shown as text, and visitors need the project key", async () => {
  const { body } = await create({
    start_date: now(),
    appearance: { backgroundColor: "#eee" },
    translations: { de: { thankYouMessageDescription: "<b>" } },
  });
  const shown = (await listed()).find(({ id }) => id === body.id);
  expect(shown).toMatchObject({
    appearance: { thankYouMessageDescriptionContentType: "text" },
    questions: [{ descriptionContentType: "text", id: expect.any(String) }],
  });
  const url = `${server.url}/api/surveys`;
  for (const [query, code] of [
    ["", "missing_api_key"],
    ["?token=phc_none", "invalid_api_key"],
  ]) {
    const response = await fetch(url + query);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([401, code!]);
  }
  const first = await fetch(`${url}?token=${server.token}`);
  const headers = { "if-none-match": first.headers.get("etag")! };
  expect((await fetch(`${url}?token=${server.token}`, { headers })).status).toBe(304);
});

test("the agent's questions get what clients need, and what was not sent is null, as Terraform's provider keeps it", async () => {
  const { status, body } = await create({
    questions: [
      { type: "rating", question: "How?" },
      { ...open, validation: [{ type: "email" }] },
    ],
  });
  expect([status, body.questions[0]]).toMatchObject([201, { display: "number", scale: 5 }]);
  expect(body).toMatchObject({ conditions: null, appearance: null, translations: null });
  const set = await change(body.id, { conditions: { url: "/pay" }, appearance: { whiteLabel: true } });
  expect(set.body).toMatchObject({ conditions: { url: "/pay" }, appearance: { whiteLabel: true } });
  const cleared = await change(body.id, { conditions: null, appearance: null });
  expect(cleared.body).toMatchObject({ conditions: null, appearance: null });
});

test("PUT changes a survey as Terraform's provider does, and surveys are found by part of their name", async () => {
  const { body } = await create({ name: "Provisioned", description: "Kept.", responses_limit: 5 });
  const path = `/surveys/${body.id}/`;
  const questions = [{ type: "open", question: "Why?" }];
  const sent = {
    name: "Provisioned again",
    type: "popover",
    questions,
    responses_limit: null,
    linked_flag_id: null,
  };
  expect(await api(path, { method: "PUT", body: sent })).toMatchObject({
    status: 200,
    body: { name: "Provisioned again", description: "Kept.", responses_limit: null },
  });
  const incomplete = await api(path, { method: "PUT", body: { name: "x", type: "popover" } });
  expect(incomplete).toMatchObject({ status: 400, body: { attr: "questions", code: "required" } });
  const found = async (search: string) => (await api(`/surveys/?search=${search}`)).body.count;
  expect([await found("provisioned%20AGAIN"), await found("no%20such")]).toEqual([1, 0]);
  expect(await found("kept.")).toBe(1);
  const unknown = crypto.randomUUID();
  const { body: listedByIds } = await api(`/surveys/?ids=${unknown},${body.id.toUpperCase()}`);
  expect(listedByIds.results.map(({ id }: { id: string }) => id)).toEqual([body.id]);
  expect(await api("/surveys/?ids=7")).toMatchObject({ status: 400, body: { attr: "ids" } });
});

test("a deleted survey is restored under its id; the id of another one is not taken", async () => {
  const { body: first } = await create({ name: "Restored" });
  const { body: second } = await create({ name: "Second", id: first.id });
  expect(second.id).not.toBe(first.id);
  expect((await api(`/surveys/${first.id}/`, { method: "DELETE" })).status).toBe(204);
  const { status, body: restored } = await create({ name: "Restored", id: first.id });
  expect([status, restored.id]).toEqual([201, first.id]);
  expect((await create({ id: "no id" })).status).toBe(400);
  expect((await create({ id: null })).status).toBe(201);
});

test("launching, stopping and resuming have routes of their own, and lists are filtered", async () => {
  const { body: survey } = await create({ name: "By route", type: "api", schedule: null });
  expect(survey.schedule).toBe("once");
  const go = (name: string) => api(`/surveys/${survey.id}/${name}/`, { method: "POST", body: {} });
  expect(await go("stop")).toMatchObject({ status: 400, body: { attr: "end_date" } });
  const launched = await go("launch");
  expect(launched).toMatchObject({ status: 200, body: { status: "running", end_date: null } });
  const stopped = await go("stop");
  expect(stopped).toMatchObject({ status: 200, body: { status: "completed" } });
  expect((await go("stop")).body.end_date).toBe(stopped.body.end_date);
  const resumed = await go("launch");
  expect(resumed.body).toMatchObject({ status: "running", start_date: launched.body.start_date });
  await change(survey.id, { archived: true });
  const names = async (query: string) =>
    (await api(`/surveys/?search=by+route&${query}`)).body.results.map((one: { name: string }) => one.name);
  expect(await names("archived=true")).toEqual(["By route"]);
  expect(await names("archived=false")).toEqual([]);
  expect(await names("type=api")).toEqual(["By route"]);
  expect(await names("type=popover")).toEqual([]);
  expect((await api("/surveys/?type=letter")).status).toBe(400);
  await go("stop");
  expect(await go("launch")).toMatchObject({
    status: 400,
    body: {
      code: "invalid_transition",
      detail: "Survey must be unarchived before it can be launched.",
    },
  });
  await change(survey.id, { archived: false });
  expect((await go("launch")).body.status).toBe("running");
});
