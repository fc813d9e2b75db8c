/** Surveys in API responses, and their drafts. */

import { request } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { lazyMessages } from "../messages/later.ts";
import type { Filters, Flag, ShortUser } from "./flags.ts";

type Names<Group extends keyof typeof lazyMessages.surveys> = keyof (typeof lazyMessages.surveys)[Group];
export type SurveyStatus = Names<"statuses">;
export type QuestionType = Names<"questionTypes">;

export interface Branching {
  type: "next_question" | "end" | "specific_question" | "response_based";
  index?: number;
  responseValues?: Record<string, number | string>;
}

/** Texts by name; the choices of a question are a list. */
export type Translation = Record<string, unknown>;

/** What clients check in the answer of an open question. */
interface ValidationRule {
  type: string;
  value?: number | null;
  errorMessage?: string;
}

/** A question as the API has it; members that the page does not know are preserved. */
export interface Question {
  id?: string;
  type: QuestionType;
  question: string;
  description?: string | null;
  descriptionContentType?: string;
  validation?: ValidationRule[] | null;
  optional?: boolean;
  buttonText?: string | null;
  link?: string | null;
  display?: "number" | "emoji";
  scale?: number;
  lowerBoundLabel?: string | null;
  upperBoundLabel?: string | null;
  choices?: string[];
  hasOpenChoice?: boolean;
  shuffleOptions?: boolean;
  branching?: Branching | null;
  /** By language. */
  translations?: Record<string, Translation>;
  [more: string]: unknown;
}

/** What the editor changes; other members of conditions and appearance are preserved. */
export interface SurveyDraft {
  name: string;
  description: string;
  type: string;
  schedule: string;
  questions: Question[];
  conditions: Record<string, unknown>;
  appearance: Record<string, unknown>;
  linked_flag_id: number | null;
  targeting_flag_filters?: Filters | null;
  responses_limit: number | null;
  iteration_count: number | null;
  iteration_frequency_days: number | null;
  enable_partial_responses: boolean;
  /** Texts of the screens, by language. */
  translations: Record<string, Translation>;
}

export interface Survey extends Omit<SurveyDraft, "conditions" | "appearance" | "translations"> {
  id: string;
  status: SurveyStatus;
  archived: boolean;
  start_date: string | null;
  end_date: string | null;
  current_iteration: number | null;
  /** Null without members. */
  conditions: SurveyDraft["conditions"] | null;
  appearance: SurveyDraft["appearance"] | null;
  translations: SurveyDraft["translations"] | null;
  targeting_flag: Flag | null;
  created_at: string;
  created_by: ShortUser | null;
}

export interface NetPromoterScore {
  score: number;
  interval: [number, number];
  promoters: number;
  passives: number;
  detractors: number;
}

export interface QuestionResult {
  id: string;
  index: number;
  type: QuestionType;
  question: string;
  answered: number;
  distribution: { value: string; count: number; percentage: number }[];
  mean: number | null;
  nps: NetPromoterScore | null;
  weeks: { week: string; answered: number; mean: number | null; nps: NetPromoterScore | null }[];
}

export interface SurveyStats {
  responses: number;
  stats: Record<"survey shown" | "survey dismissed" | "survey sent", { total_count: number }>;
  rates: { unique_users_response_rate: number; unique_users_dismissal_rate: number };
  questions: QuestionResult[];
}

export type { SurveyResponse } from "../lib/api-types.ts";

export const surveyPath = (id: string, rest = "") => inProject(`surveys/${encodeURIComponent(id)}/${rest}`);

export const changeSurvey = (id: string, body: Record<string, unknown>): Promise<Survey> =>
  request(surveyPath(id), { method: "PATCH", body });

/** Everything that a new survey takes from another one. */
const getCopy = (survey: Survey) => ({
  ...getDraft(survey),
  ...(survey.targeting_flag ? { targeting_flag_filters: survey.targeting_flag.filters } : {}),
});

const createSurvey = (body: object): Promise<Survey> =>
  request(inProject("surveys/"), { method: "POST", body });

/** A draft with the same questions and audience. */
export const duplicateSurvey = (survey: Survey, name: string): Promise<Survey> =>
  createSurvey({ ...getCopy(survey), name });

/** Deletes a survey. @returns restores it under its id, so that its responses count again */
export async function deleteSurvey(survey: Survey): Promise<() => Promise<Survey>> {
  await request(surveyPath(survey.id), { method: "DELETE" });
  const { id, start_date, end_date, archived } = survey;
  return () => createSurvey({ ...getCopy(survey), id, start_date, end_date, archived });
}

/** With an id from the start, so that the editor recognizes it wherever it is moved. */
export const freshQuestion = (): Question => ({ id: randomId(), type: "open", question: "" });

/** `crypto.randomUUID` does not exist on pages over plain HTTP. */
const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** posthog-js shows no feedback button without a type. */
export const widgetDefaults = { widgetType: "tab", widgetLabel: "Feedback" };

export const freshSurvey = (): SurveyDraft => ({
  name: "",
  description: "",
  type: "popover",
  schedule: "once",
  questions: [freshQuestion()],
  conditions: {},
  appearance: {},
  linked_flag_id: null,
  responses_limit: null,
  iteration_count: null,
  iteration_frequency_days: null,
  enable_partial_responses: false,
  translations: {},
});

export const getDraft = (survey: Survey): SurveyDraft => ({
  name: survey.name,
  description: survey.description,
  type: survey.type,
  schedule: survey.schedule,
  questions: survey.questions,
  conditions: survey.conditions ?? {},
  appearance: survey.appearance ?? {},
  linked_flag_id: survey.linked_flag_id,
  responses_limit: survey.responses_limit,
  iteration_count: survey.iteration_count,
  iteration_frequency_days: survey.iteration_frequency_days,
  enable_partial_responses: survey.enable_partial_responses,
  translations: survey.translations ?? {},
});

/** A question of another type, with what that type requires. */
export function withType(question: Question, type: QuestionType): Question {
  const { id, description, descriptionContentType, optional, buttonText, translations } = question;
  const base = {
    ...(id === undefined ? {} : { id }),
    ...(translations === undefined ? {} : { translations: withoutOwnTexts(translations, type) }),
    type,
    question: question.question,
  };
  const shared = {
    ...base,
    ...(description ? { description, descriptionContentType } : {}),
    optional: optional ?? false,
  };
  const texts = { ...shared, ...(buttonText ? { buttonText } : {}) };
  if (type === "rating") return { ...texts, display: "number", scale: 5 };
  if (type.endsWith("_choice")) return { ...texts, choices: question.choices ?? ["", ""] };
  return texts;
}

/** The least or greatest length of an answer. */
export const getLength = ({ validation }: Question, rule: string) =>
  validation?.find(({ type }) => type === rule)?.value;

/** A question with another length; 0 removes it. */
export function withLength(question: Question, rule: string, value: number): Question {
  const rules = question.validation ?? [];
  const others = rules.filter(({ type }) => type !== rule);
  const before = rules.find(({ type }) => type === rule);
  return { ...question, validation: value > 0 ? [...others, { ...before, type: rule, value }] : others };
}

/** Translations without the texts that only other types have. */
function withoutOwnTexts(translations: Record<string, Translation>, type: QuestionType) {
  const entries = Object.entries(translations).map(([language, texts]) => {
    const { link, lowerBoundLabel, upperBoundLabel, choices, ...shared } = texts;
    return [language, type.endsWith("_choice") && choices ? { ...shared, choices } : shared];
  });
  return Object.fromEntries(entries) as Record<string, Translation>;
}

/** Answers that can lead to different questions, as posthog-js names them. */
export function getAnswers({ type, scale, choices }: Question): string[] {
  if (type === "single_choice") return (choices ?? []).map((_, index) => String(index));
  if (type !== "rating") return [];
  if (scale === 10) return ["detractors", "passives", "promoters"];
  return scale === 2 ? ["positive", "negative"] : ["negative", "neutral", "positive"];
}

/** Moves a question; branches that name an index follow it. */
export function moveQuestion(questions: readonly Question[], from: number, to: number): Question[] {
  const order = questions.map((_, index) => index);
  order.splice(to, 0, ...order.splice(from, 1));
  return renumber(
    order.map((index) => questions[index]!),
    order,
  );
}

/** Removes a question; branches to it continue with the next one. */
export function removeQuestion(questions: readonly Question[], at: number): Question[] {
  const order = questions.map((_, index) => index).filter((index) => index !== at);
  return renumber(
    order.map((index) => questions[index]!),
    order,
  );
}

/** @param order former index of each question */
function renumber(questions: readonly Question[], order: readonly number[]): Question[] {
  const next = "next_question" as const;
  const target = (former: number | string) => {
    if (typeof former !== "number") return former;
    const position = order.indexOf(former);
    return position === -1 ? next : position;
  };
  return questions.map((question) => {
    const { branching } = question;
    if (branching?.type === "specific_question") {
      const index = target(branching.index ?? 0);
      return { ...question, branching: typeof index === "number" ? { ...branching, index } : { type: next } };
    }
    if (branching?.type !== "response_based") return question;
    const responseValues = Object.fromEntries(
      Object.entries(branching.responseValues ?? {}).map(([answer, to]) => [answer, target(to)]),
    );
    return { ...question, branching: { ...branching, responseValues } };
  });
}
