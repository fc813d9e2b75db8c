/** Results of surveys (contract: experiments 2.11). */

import { type Static, Type } from "@sinclair/typebox";
import { allows } from "../accounts/limits.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { getRefresh, refreshDescription, refreshNames } from "../events/insights/insight-cache.ts";
import { readBoolean, readInstant } from "../http/params.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
  union,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { toApiTimeOrNull } from "../lib/time.ts";
import {
  countBySurvey,
  getQuestions,
  getSurveyStats,
  getTotals,
  listSubmissions,
  type SurveyResultDeps,
  streamSubmissions,
  submissionBody,
} from "../surveys/results.ts";
import { getSurvey, listSurveys, type Survey } from "../surveys/surveys.ts";
import { listOperation, operation, type ProjectContext } from "./operation.ts";
import { surveyArgument } from "./surveys.ts";

const tag = "Surveys";
type Context = ProjectContext<SurveyResultDeps & { metadata: Metadata }>;

const EventStats = object({
  total_count: int(),
  unique_persons: int(),
  first_seen: nullable(dateTime()),
  last_seen: nullable(dateTime()),
  total_count_only_seen: int(),
  unique_persons_only_seen: int(),
});
const Rates = object({
  response_rate: Type.Number(),
  dismissal_rate: Type.Number(),
  unique_users_response_rate: Type.Number(),
  unique_users_dismissal_rate: Type.Number(),
});
const totals = {
  stats: object({
    "survey shown": EventStats,
    "survey dismissed": EventStats,
    "survey sent": EventStats,
  }),
  rates: Rates,
  computed_at: dateTime(),
  is_cached: bool(),
};
const Totals = named("SurveyTotals", object(totals));
const Nps = object({
  score: Type.Number(),
  interval: list(Type.Number()),
  promoters: int(),
  passives: int(),
  detractors: int(),
});
const rated = { mean: nullable(Type.Number()), nps: nullable(Nps) };
const SurveyStats = named(
  "SurveyStats",
  object({
    survey_id: uuid(),
    name: string(),
    start_date: nullable(dateTime()),
    end_date: nullable(dateTime()),
    responses: int(),
    ...totals,
    questions: list(
      object({
        id: string(),
        index: int(),
        type: nullable(string()),
        question: nullable(string()),
        answered: int(),
        distribution: list(object({ value: string(), count: int(), percentage: Type.Number() })),
        ...rated,
        weeks: list(object({ week: string(), answered: int(), ...rated })),
      }),
    ),
  }),
);
type StatsRecord = Static<typeof SurveyStats>;

const exampleStat = {
  total_count: 40,
  unique_persons: 40,
  first_seen: "2026-03-02T09:00:00.000000Z",
  last_seen: "2026-03-09T09:00:00.000000Z",
  total_count_only_seen: 0,
  unique_persons_only_seen: 0,
};
const exampleTotals = {
  stats: {
    "survey shown": { ...exampleStat, total_count: 100, unique_persons: 100, total_count_only_seen: 50 },
    "survey dismissed": { ...exampleStat, total_count: 10, unique_persons: 10 },
    "survey sent": exampleStat,
  },
  rates: {
    response_rate: 40,
    dismissal_rate: 10,
    unique_users_response_rate: 40,
    unique_users_dismissal_rate: 10,
  },
  computed_at: "2026-03-09T09:00:00.000000Z",
  is_cached: false,
};
const exampleStats = {
  survey_id: "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f",
  name: "Satisfaction",
  start_date: "2026-03-02T09:00:00.000000Z",
  end_date: null,
  responses: 40,
  ...exampleTotals,
  questions: [
    {
      id: "q1",
      index: 0,
      type: "single_choice",
      question: "Which plan?",
      answered: 40,
      distribution: [{ value: "Free", count: 30, percentage: 75 }],
      mean: null,
      nps: null,
      weeks: [],
    },
  ],
};

const range = {
  date_from: optional(
    dateTime({ description: "Events from this time on; default: since the survey exists." }),
  ),
  date_to: optional(dateTime({ description: "Events up to this time." })),
};
const refreshed = { refresh: optional(enumeration(refreshNames, { description: refreshDescription })) };

/** @throws {InvalidFieldError} */
function readRange(query: URLSearchParams) {
  const from = readInstant(query, "date_from");
  const to = readInstant(query, "date_to");
  if (from !== undefined && to !== undefined && from > to)
    throw new InvalidFieldError("date_from", "invalid_input", "date_from must be before date_to");
  return { from, to };
}

const readStatsQuery = (query: URLSearchParams) => ({
  ...readRange(query),
  refresh: query.get("refresh") ?? undefined,
});

function getOptions(
  { project, now }: Context,
  input: { refresh?: string | undefined; from?: number | undefined; to?: number | undefined },
) {
  return { project, now, from: input.from, to: input.to, refresh: getRefresh(input.refresh) };
}

const findSurvey = ({ stores, project }: Context, id: string): Survey =>
  getSurvey(stores.metadata.db, project.id, id);

const getOneStats = operation({
  id: "surveys.stats",
  on: "project",
  scope: "survey:read",
  tag,
  summary: "Get the results of a survey",
  description:
    "Counts, rates in percent, and the distribution of the answers to each question. Texts of answers are not part of it: " +
    "answers that no choice lists are counted as `<other>`.",
  mcp: { name: "survey_results" },
  http: { method: "GET", path: "/surveys/:id/stats", answer: "The results." },
  cli: {
    name: "surveys results",
    description: "Show the results of a survey.",
    examples: ["surveys results Satisfaction --url http://127.0.0.1:8000"],
    arguments: [surveyArgument],
    done: printedStats,
  },
  input: object({ id: uuid(), ...range, ...refreshed }),
  output: SurveyStats,
  example: exampleStats,
  readQuery: readStatsQuery,
  run: async (context: Context, { id, ...input }) => {
    const survey = findSurvey(context, id);
    return {
      survey_id: survey.id,
      name: survey.name,
      start_date: toApiTimeOrNull(survey.startDate),
      end_date: toApiTimeOrNull(survey.endDate),
      ...((await getSurveyStats(context.stores, survey, getOptions(context, input))) as object),
    } as StatsRecord;
  },
});

function printedStats({ name, stats, rates, questions }: StatsRecord): string {
  const total = (event: keyof typeof stats) => stats[event].total_count;
  const rows = questions.flatMap(({ index, question, answered, mean, nps, distribution }) => {
    const score = nps === null ? "" : `, net promoter score ${nps.score.toFixed(0)}`;
    const average = mean === null ? "" : `, mean ${mean.toFixed(2)}`;
    return [
      `${index + 1}. ${question}: ${answered} answered${average}${score}`,
      ...distribution.map(({ value, count, percentage }) => `   ${value}: ${count} (${percentage} %)`),
    ];
  });
  const first = `${name}: shown ${total("survey shown")}, dismissed ${total("survey dismissed")}, answered ${total("survey sent")}`;
  return [`${first} (${rates.response_rate} %)`, ...rows].join("\n");
}

const getAllStats = operation({
  id: "surveys.stats-of-all",
  on: "project",
  scope: "survey:read",
  tag,
  summary: "Get counts and rates of all surveys",
  description: "Of surveys that are not archived, together.",
  http: { method: "GET", path: "/surveys/stats", answer: "Counts and rates." },
  input: object({ ...range, ...refreshed }),
  output: Totals,
  example: exampleTotals,
  readQuery: readStatsQuery,
  run: async (context: Context, input) => {
    const { stores, project } = context;
    const surveys = listSurveys(stores.metadata.db, project.id).filter(({ archived }) => !archived);
    return (await getTotals(stores, surveys, getOptions(context, input))) as unknown as Static<typeof Totals>;
  },
});

const countResponses = operation({
  id: "surveys.responses-count",
  on: "project",
  scope: "survey:read",
  tag,
  summary: "Count the responses of each survey",
  description: "By the id of the survey; surveys without responses are omitted.",
  http: { method: "GET", path: "/surveys/responses_count", answer: "Counts by survey." },
  input: object({
    exclude_archived: optional(bool({ description: "Without archived surveys." })),
    survey_ids: optional(string({ description: "Only these, separated by commas." })),
  }),
  output: record({ description: "Counts by survey." }),
  example: { "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f": 40 },
  readQuery: (query) => ({
    withoutArchived: readBoolean(query, "exclude_archived") ?? false,
    ids: query
      .get("survey_ids")
      ?.split(",")
      .map((id) => id.trim()),
  }),
  run: async (context: Context, { withoutArchived, ids }) => {
    const { stores, project } = context;
    const surveys = listSurveys(stores.metadata.db, project.id).filter(
      ({ id, archived }) => !(archived && withoutArchived) && (ids === undefined || ids.includes(id)),
    );
    const counts = await countBySurvey(stores, surveys, getOptions(context, {}));
    return Object.fromEntries(
      counts.filter(({ sent }) => sent > 0).map(({ surveyId, sent }) => [surveyId, sent]),
    );
  },
});

const Response = named(
  "SurveyResponse",
  object({
    submission_id: nullable(string()),
    distinct_id: nullable(string({ blank: true })),
    timestamp: dateTime(),
    completed: bool(),
    iteration: nullable(Type.Number()),
    language: nullable(string({ blank: true })),
    answers: list(
      object({
        question_id: string(),
        answer: nullable(union(union(string({ blank: true }), Type.Number()), list(string({ blank: true })))),
      }),
    ),
  }),
);

/** Texts of answers, and who gave them, are data of events. */
const showsTexts = ({ actor }: Context) =>
  actor.kind === "operator" || allows(actor.limits.scopes, "query:read");

/** Submissions that one query reads. */
const submissionsMax = 1_000;

const listResponses = listOperation({
  id: "surveys.responses",
  on: "project",
  scope: "survey:read",
  tag,
  summary: "List the responses to a survey",
  description:
    "Newest first, one per submission, with the latest answer to each question; at most 1,000 and 16 MiB on a page. Without the scope query:read free texts and " +
    "the person are null, and answers that no choice lists are `<other>`. With `Accept: text/csv` all responses are a CSV file " +
    "for spreadsheets: cells that begin like a formula get a `'` before them.",
  http: { method: "GET", path: "/surveys/:id/responses", answer: "One page of responses." },
  input: object({ id: uuid(), ...range }),
  output: pageOf("SurveyResponsePage", Response),
  example: {
    submission_id: "0193d1a2-7b1c-7c3e-9f60-1f4f5d2b8a11",
    distinct_id: "user-1",
    timestamp: "2026-03-02T09:15:00.000000Z",
    completed: true,
    iteration: null,
    language: null,
    answers: [{ question_id: "q1", answer: "Free" }],
  },
  readQuery: readRange as (query: URLSearchParams) => { id: string } & ReturnType<typeof readRange>,
  run: async (context: Context, { id, limit, offset, ...input }) => {
    const survey = findSurvey(context, id);
    const options = { ...getOptions(context, input), limit, offset };
    const { count, submissions } = await listSubmissions(context.stores, survey, options);
    const questions = getQuestions(survey);
    const isShown = showsTexts(context);
    return {
      count,
      results: submissions.map((submission) => submissionBody(submission, questions, isShown)),
    };
  },
  pageSizeMax: submissionsMax,
  csv: { fileName: "responses.csv", rows: responseRows },
});

async function* responseRows(
  context: Context,
  { id, ...input }: { id: string; from?: number | undefined; to?: number | undefined },
) {
  const survey = findSurvey(context, id);
  const questions = getQuestions(survey);
  const isShown = showsTexts(context);
  yield [
    "submission_id",
    "distinct_id",
    "timestamp",
    "completed",
    "iteration",
    "language",
    ...survey.questions.map(({ question }) => String(question)),
  ];
  for await (const submission of streamSubmissions(context.stores, survey, getOptions(context, input))) {
    const { answers, ...rest } = submissionBody(submission, questions, isShown);
    const { submission_id, distinct_id, timestamp, completed, iteration, language } = rest;
    yield [
      submission_id,
      distinct_id,
      timestamp,
      completed,
      iteration,
      language,
      ...answers.map(({ answer }) => (Array.isArray(answer) ? answer.join(", ") : answer)),
    ];
  }
}

/** In the order of the documentation. */
export const surveyResultOperations = [getAllStats, countResponses, getOneStats, listResponses];
