/** Results of surveys: counts, rates, distributions and submissions (contract: experiments 2.11). */

import type { Refresh } from "../events/insights/insight-cache.ts";
import type {
  SurveyComputation,
  SurveyCounts,
  SurveyPage,
  SurveyRequest,
  SurveyTallies,
} from "../events/insights/survey.ts";
import {
  parseChoices,
  type QuestionTally,
  type Submission,
  type SurveyQuestion,
} from "../events/insights/survey-tally.ts";
import type { WeekStartDay } from "../events/sql-dialect.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { dayMs, toApiTime } from "../lib/time.ts";
import type { Survey } from "./surveys.ts";

export interface SurveyEvents {
  /** Results of one request: `counts`, `SurveyTallies` or `SurveyPage`. */
  surveyResults(
    projectId: number,
    request: SurveyRequest,
    how: { timezone: string; weekStartDay: WeekStartDay | null; now: Date; refresh: Refresh },
  ): Promise<{ results: JsonObject; computedAt: number; isCached: boolean }>;
  /** All submissions, newest first, while they are read. */
  surveyResponses(
    projectId: number,
    request: SurveyRequest,
    how: { timezone: string; weekStartDay: WeekStartDay | null; now: Date },
  ): AsyncIterable<Submission>;
}

export interface SurveyResultDeps {
  /** Absent: results are not available. */
  surveyEvents?: SurveyEvents;
}

export interface ResultOptions {
  project: { id: number; timezone: string; weekStartDay: WeekStartDay | null };
  now: Date;
  refresh?: Refresh;
  /** Epoch microseconds, both inclusive. */
  from?: number | undefined;
  to?: number | undefined;
}

/** Before a survey was created, for clients with a wrong clock. */
const earlierMs = dayMs;
const minuteMs = 60_000;
/** Answers of choices that the question does not list. */
const otherChoice = "<other>";
/** The 97.5 % quantile of the normal distribution. */
const z = 1.959963984540054;

/** Questions as the event store reads their answers. */
export function getQuestions({ questions }: Survey): SurveyQuestion[] {
  return questions.map((question, index) => {
    const translations = Object.values(isJsonObject(question.translations) ? question.translations : {});
    const choices = textsIn(question.choices).map((choice, at) => [
      choice,
      ...translations.flatMap((translation) =>
        isJsonObject(translation) ? (textsIn(translation.choices)[at] ?? []) : [],
      ),
    ]);
    const scale = Number(question.scale ?? 0);
    return { id: String(question.id), index, kind: getKind(question), choices, ...getBounds(scale) };
  });
}

const textsIn = (list: Json | undefined) => (Array.isArray(list) ? list.map(String) : []);

function getKind({ type }: JsonObject): SurveyQuestion["kind"] {
  if (type === "rating") return "rating";
  if (type === "single_choice") return "choice";
  return type === "multiple_choice" ? "choices" : "text";
}

/** A scale of 10 starts at 0, as in PostHog. */
const getBounds = (scale: number) => ({ min: scale === 10 ? 0 : 1, max: scale });

/** Counts of each survey with events. */
export async function countBySurvey(
  deps: SurveyResultDeps,
  surveys: readonly Survey[],
  options: ResultOptions,
): Promise<SurveyCounts[]> {
  return (await ask<{ counts: SurveyCounts[] }>(deps, surveys, options, { what: "counts", isTotal: false }))
    .results.counts;
}

/** Counts and rates of several surveys together. */
export async function getTotals(
  deps: SurveyResultDeps,
  surveys: readonly Survey[],
  options: ResultOptions,
): Promise<JsonObject> {
  const { results, computedAt, isCached } = await ask<{ counts: SurveyCounts[] }>(deps, surveys, options, {
    what: "counts",
    isTotal: true,
  });
  return {
    ...countsBody(results.counts[0]),
    computed_at: toApiTime(new Date(computedAt)),
    is_cached: isCached,
  };
}

/** Counts, rates and the distribution of the answers to each question. */
export async function getSurveyStats(
  deps: SurveyResultDeps,
  survey: Survey,
  options: ResultOptions,
): Promise<JsonObject> {
  const totals = await getTotals(deps, [survey], options);
  const request = { what: "tally", questions: getQuestions(survey) } as const;
  const { results } = await ask<SurveyTallies>(deps, [survey], options, request);
  return {
    ...totals,
    responses: results.responses,
    questions: survey.questions.map((question, index) =>
      questionBody(question, request.questions[index]!, results.questions[index]!),
    ),
  };
}

/** Submissions, newest first. */
export async function listSubmissions(
  deps: SurveyResultDeps,
  survey: Survey,
  options: ResultOptions & { limit: number; offset: number },
): Promise<SurveyPage> {
  const { limit, offset } = options;
  const request = { what: "page", questions: getQuestions(survey), limit, offset } as const;
  return (await ask<SurveyPage>(deps, [survey], options, request)).results;
}

/** All submissions, newest first, for a file. */
export function streamSubmissions(
  deps: SurveyResultDeps,
  survey: Survey,
  options: ResultOptions,
): AsyncIterable<Submission> {
  const { project, now } = options;
  const { timezone, weekStartDay } = project;
  const request = getRequest([survey], options, { what: "all", questions: getQuestions(survey) });
  return getEvents(deps).surveyResponses(project.id, request, { timezone, weekStartDay, now });
}

/** @throws {InvalidFieldError} there is no server. */
function getEvents({ surveyEvents }: SurveyResultDeps): SurveyEvents {
  if (surveyEvents !== undefined) return surveyEvents;
  throw new InvalidFieldError(null, "unavailable", "Results require a running server. Use --url.");
}

async function ask<Results>(
  deps: SurveyResultDeps,
  surveys: readonly Survey[],
  options: ResultOptions,
  wanted: SurveyComputation,
): Promise<{ results: Results; computedAt: number; isCached: boolean }> {
  const surveyEvents = getEvents(deps);
  const { project, now, refresh = "blocking" } = options;
  if (surveys.length === 0) {
    const none = wanted.what === "counts" ? { counts: [] } : { count: 0, submissions: [] };
    return { results: none as Results, computedAt: now.getTime(), isCached: false };
  }
  const { timezone, weekStartDay } = project;
  const how = { timezone, weekStartDay, now, refresh };
  const found = await surveyEvents.surveyResults(project.id, getRequest(surveys, options, wanted), how);
  return { ...found, results: found.results as unknown as Results };
}

function getRequest(
  surveys: readonly Survey[],
  { now, from, to }: ResultOptions,
  wanted: SurveyComputation,
): SurveyRequest {
  const earliest = Math.min(
    ...surveys.map(({ createdAt, startDate }) =>
      Math.min(createdAt.getTime(), (startDate ?? createdAt).getTime()),
    ),
  );
  return {
    ...wanted,
    surveyIds: surveys.map(({ id }) => id),
    partialIds: surveys.filter((survey) => survey.enablePartialResponses).map(({ id }) => id),
    start: from ?? (earliest - earlierMs) * 1_000,
    // Whole minutes, so that results are found in the cache.
    end: to === undefined ? Math.ceil((now.getTime() + 1) / minuteMs) * minuteMs * 1_000 : to + 1,
  };
}

const eventNames = { shown: "survey shown", dismissed: "survey dismissed", sent: "survey sent" } as const;

function countsBody(counts: SurveyCounts | undefined): JsonObject {
  const { shown = 0, dismissed = 0, sent = 0 } = counts ?? {};
  const { personsShown = 0, personsDismissed = 0, personsSent = 0, personsOnlyShown = 0 } = counts ?? {};
  const stats = (kind: keyof typeof eventNames, total: number, persons: number): JsonObject => {
    const times = counts?.times[kind] ?? null;
    const time = (micros: number | undefined) =>
      micros === undefined ? null : toApiTime(new Date(micros / 1_000));
    const isShown = kind === "shown";
    return {
      total_count: total,
      unique_persons: persons,
      first_seen: time(times?.first),
      last_seen: time(times?.last),
      total_count_only_seen: isShown ? Math.max(0, shown - dismissed - sent) : 0,
      unique_persons_only_seen: isShown ? personsOnlyShown : 0,
    };
  };
  return {
    stats: {
      [eventNames.shown]: stats("shown", shown, personsShown),
      [eventNames.dismissed]: stats("dismissed", dismissed, personsDismissed),
      [eventNames.sent]: stats("sent", sent, personsSent),
    },
    rates: {
      response_rate: percentage(sent, shown),
      dismissal_rate: percentage(dismissed, shown),
      unique_users_response_rate: percentage(personsSent, personsShown),
      unique_users_dismissal_rate: percentage(personsDismissed, personsShown),
    },
  };
}

/** With two decimals; 0 of nothing. */
const percentage = (part: number, whole: number) =>
  whole === 0 ? 0 : Math.round((part / whole) * 10_000) / 100;

function questionBody(question: JsonObject, read: SurveyQuestion, tally: QuestionTally): JsonObject {
  const { answered, values, other } = tally;
  const isRating = read.kind === "rating";
  const entry = (value: string, count: number) => ({ value, count, percentage: percentage(count, answered) });
  const ratings = Array.from({ length: Math.max(0, read.max - read.min + 1) }, (_, index) =>
    String(read.min + index),
  );
  const choices = read.choices.map(([choice = ""], index) => entry(choice, values[String(index)] ?? 0));
  return {
    id: read.id,
    index: read.index,
    type: question.type ?? null,
    question: question.question ?? null,
    answered,
    distribution: isRating
      ? ratings.map((value) => entry(value, values[value] ?? 0))
      : [...choices, ...(other > 0 ? [entry(otherChoice, other)] : [])],
    ...ratingBody(read, values),
    weeks: isRating
      ? Object.entries(tally.weeks)
          .sort(([one], [next]) => (one < next ? -1 : 1))
          .map(([week, counts]) => ({
            week,
            answered: Object.values(counts).reduce((sum, count) => sum + count, 0),
            ...ratingBody(read, counts),
          }))
      : [],
  };
}

/** The mean of ratings, and for 0 to 10 the net promoter score; null for other questions. */
function ratingBody({ kind, max }: SurveyQuestion, counts: Readonly<Record<string, number>>): JsonObject {
  const entries = Object.entries(counts).map(([value, count]) => [Number(value), count] as const);
  const total = entries.reduce((sum, [, count]) => sum + count, 0);
  if (kind !== "rating" || total === 0) return { mean: null, nps: null };
  const getCount = (from: number, to: number) =>
    entries.reduce((sum, [value, count]) => sum + (value >= from && value <= to ? count : 0), 0);
  return {
    mean: entries.reduce((sum, [value, count]) => sum + value * count, 0) / total,
    nps: max === 10 ? netPromoterScore(getCount(9, 10), getCount(7, 8), getCount(0, 6)) : null,
  };
}

/** With its 95 % interval. */
export function netPromoterScore(promoters: number, passives: number, detractors: number) {
  const n = promoters + passives + detractors;
  const p = promoters / n;
  const d = detractors / n;
  const score = 100 * (p - d);
  const half = z * 100 * Math.sqrt((p + d - (p - d) ** 2) / n);
  return { score, interval: [score - half, score + half], promoters, passives, detractors };
}

/** A submission in the API. @param showsTexts false: without free texts and the person. */
export function submissionBody(
  submission: Submission,
  questions: readonly SurveyQuestion[],
  showsTexts: boolean,
) {
  return {
    submission_id: showsTexts ? submission.id : null,
    distinct_id: showsTexts ? submission.distinctId : null,
    timestamp: toApiTime(new Date(submission.at / 1_000)),
    completed: submission.isCompleted,
    iteration:
      submission.iteration === null || Number.isNaN(Number(submission.iteration))
        ? null
        : Number(submission.iteration),
    language: submission.language,
    answers: questions.map((question, index) => ({
      question_id: question.id,
      answer: answerBody(submission.answers[index] ?? null, question, showsTexts),
    })),
  };
}

function answerBody(
  answer: string | null,
  { kind, choices }: SurveyQuestion,
  showsTexts: boolean,
): string | number | string[] | null {
  if (answer === null) return null;
  if (kind === "text") return showsTexts ? answer : null;
  if (kind === "rating") {
    const rating = Number(answer);
    return Number.isFinite(rating) ? rating : null;
  }
  const known = (text: string) => choices.find((spellings) => spellings.includes(text))?.[0];
  const shown = (text: string) => known(text) ?? (showsTexts ? text : otherChoice);
  return kind === "choice" ? shown(answer) : parseChoices(answer).map(shown);
}
