/** Surveys (contract: experiments 1.5). */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../accounts/api/user-schemas.ts";
import { userFinder } from "../accounts/users.ts";
import { flagAnswers } from "../flags/api/feature-flags.ts";
import { FlagBody } from "../flags/api/flag-schemas.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { readBoolean, readChoice, readUuidsFilter } from "../http/params.ts";
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
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { toApiTime, toApiTimeOrNull } from "../lib/time.ts";
import { frequencyDaysMax, iterationsMax } from "../surveys/iterations.ts";
import {
  createSurvey,
  deleteSurvey,
  getStatus,
  getSurvey,
  listSurveys,
  nameLengthMax,
  type Survey,
  schedules,
  surveyTypes,
  updateSurvey,
} from "../surveys/surveys.ts";
import { getExperimentActor, jsonOptions } from "./experiment-list.ts";
import {
  type CommandArgument,
  type Lookup,
  listOperation,
  operation,
  type ProjectContext,
  slicePage,
} from "./operation.ts";

const tag = "Surveys";
type Context = ProjectContext<FlagWriteDeps>;
const statuses = ["draft", "running", "completed"] as const;

const SurveyBody = named(
  "Survey",
  object({
    id: uuid(),
    name: string(),
    description: string({ blank: true }),
    type: enumeration(surveyTypes),
    schedule: enumeration(schedules),
    status: enumeration(statuses),
    questions: list(record()),
    conditions: nullable(record()),
    appearance: nullable(record()),
    linked_flag_id: nullable(int()),
    linked_flag: nullable(FlagBody),
    targeting_flag: nullable(FlagBody),
    internal_targeting_flag: nullable(FlagBody),
    start_date: nullable(dateTime()),
    end_date: nullable(dateTime()),
    archived: bool(),
    enable_partial_responses: bool(),
    responses_limit: nullable(int()),
    iteration_count: nullable(int()),
    iteration_frequency_days: nullable(int()),
    current_iteration: nullable(int()),
    current_iteration_start_date: nullable(dateTime()),
    translations: nullable(record()),
    created_at: dateTime(),
    created_by: nullable(UserBody),
  }),
);
type SurveyRecord = Static<typeof SurveyBody>;

const exampleQuestion = { type: "open", question: "What is missing?" };
const example = {
  id: "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f",
  name: "Satisfaction",
  description: "",
  type: "popover",
  schedule: "once",
  status: "draft",
  questions: [exampleQuestion],
  conditions: null,
  appearance: null,
  linked_flag_id: null,
  linked_flag: null,
  targeting_flag: null,
  internal_targeting_flag: null,
  start_date: null,
  end_date: null,
  archived: false,
  enable_partial_responses: false,
  responses_limit: 500,
  iteration_count: null,
  iteration_frequency_days: null,
  translations: null,
  current_iteration: null,
  current_iteration_start_date: null,
  created_at: "2026-03-02T08:15:30.120000Z",
  created_by: exampleUser,
};

const editable = {
  description: optional(
    nullable(string({ blank: true, max: 10_000, description: "Internal: visitors never see it." })),
  ),
  schedule: optional(nullable(enumeration(schedules, { default: "once" }))),
  conditions: optional(nullable(record({ description: "Where and when the survey is shown." }))),
  appearance: optional(nullable(record())),
  linked_flag_id: optional(nullable(int({ description: "Id of a flag that persons must have." }))),
  targeting_flag_filters: optional(
    nullable(record({ description: "Filters of the flag that targets persons." })),
  ),
  remove_targeting_flag: optional(nullable(bool())),
  start_date: optional(nullable(dateTime({ description: "Launches the survey." }))),
  end_date: optional(nullable(dateTime({ description: "Stops the survey." }))),
  archived: optional(bool()),
  enable_partial_responses: optional(nullable(bool())),
  responses_limit: optional(
    nullable(
      int({ minimum: 0, maximum: 1_000_000_000, description: "Ends the survey after this many responses." }),
    ),
  ),
  iteration_count: optional(
    nullable(int({ minimum: 0, maximum: iterationsMax, description: "How often persons are asked." })),
  ),
  iteration_frequency_days: optional(
    nullable(int({ minimum: 0, maximum: frequencyDaysMax, description: "Days of one iteration." })),
  ),
  translations: optional(
    nullable(record({ description: "Texts of the name and the screens by language, for example `de`." })),
  ),
};
const name = string({ max: nameLengthMax });
const type = enumeration(surveyTypes);
const questions = list(record(), { description: "1 to 50 questions." });

const body = (context: Context, survey: Survey) => bodyWriter(context)(survey);

/** Writes the surveys of one response: permissions, users and the definitions of flags are read once. */
function bodyWriter(context: Context): (survey: Survey) => SurveyRecord {
  const { stores, project } = context;
  const { db } = stores.metadata;
  const answers = flagAnswers(stores, getExperimentActor(context));
  const users = userFinder(db);
  const shownFlag = (id: number | null) => {
    const flag = id === null ? undefined : findFlag(db, project.id, id);
    return flag === undefined ? null : answers.one(flag);
  };
  return (survey) => {
    const creator = users(survey.createdById);
    return {
      id: survey.id,
      name: survey.name,
      description: survey.description,
      status: getStatus(survey),
      type: survey.type as SurveyRecord["type"],
      schedule: survey.schedule as SurveyRecord["schedule"],
      questions: survey.questions,
      conditions: getMembers(survey.conditions),
      appearance: getMembers(survey.appearance),
      linked_flag_id: survey.linkedFlagId,
      linked_flag: shownFlag(survey.linkedFlagId),
      targeting_flag: shownFlag(survey.targetingFlagId),
      internal_targeting_flag: shownFlag(survey.internalTargetingFlagId),
      start_date: toApiTimeOrNull(survey.startDate),
      end_date: toApiTimeOrNull(survey.endDate),
      archived: survey.archived,
      enable_partial_responses: survey.enablePartialResponses,
      responses_limit: survey.responsesLimit,
      translations: getMembers(survey.translations),
      iteration_count: survey.iterationCount,
      iteration_frequency_days: survey.iterationFrequencyDays,
      current_iteration: survey.currentIteration,
      current_iteration_start_date: toApiTimeOrNull(survey.currentIterationStartDate),
      created_at: toApiTime(survey.createdAt),
      created_by: creator ? userBody(creator) : null,
    };
  };
}

/** Null without members, as in PostHog: Terraform's provider rejects an object where none was sent. */
const getMembers = (stored: JsonObject) => (Object.keys(stored).length === 0 ? null : stored);

const byName: Lookup = {
  in: () => listAllSurveys,
  matches: (survey: SurveyRecord, argument) => survey.id === argument || survey.name === argument,
  value: (survey: SurveyRecord) => survey.id,
  missing: (argument) => `Survey ${argument} does not exist.`,
};
/** A survey by id or name. */
export const surveyArgument: CommandArgument = {
  name: "survey",
  description: "survey id or name",
  member: "id",
  lookup: byName,
};

const listAllSurveys = listOperation({
  id: "surveys.list",
  on: "project",
  scope: "survey:read",
  tag,
  summary: "List surveys",
  mcp: { name: "list_surveys" },
  cli: {
    name: "surveys list",
    examples: ["surveys list --json"],
    table: {
      headings: ["id", "name", "type", "status", "questions"],
      row: (survey: SurveyRecord) => [
        survey.id,
        survey.name,
        survey.type,
        survey.status,
        String(survey.questions.length),
      ],
    },
  },
  http: { method: "GET", path: "/surveys", answer: "One page of surveys." },
  input: object({
    search: optional(string({ blank: true, description: "Part of the name or the description." })),
    archived: optional(bool({ description: "`true`: only archived surveys; `false`: only others." })),
    type: optional(type),
    ids: optional(string({ description: "Only these, separated by commas; unknown ones are omitted." })),
  }),
  output: pageOf("SurveyPage", SurveyBody),
  example,
  readQuery: (query) => ({
    search: query.get("search") ?? undefined,
    archived: readBoolean(query, "archived"),
    type: readChoice(query, "type", surveyTypes),
    ids: readUuidsFilter(query, "ids"),
  }),
  run: (context: Context, { limit, offset, search = "", archived, type: wantedType, ids }) => {
    const wanted = search.trim().toLowerCase();
    const all = listSurveys(context.stores.metadata.db, context.project.id).filter(
      (survey) =>
        [survey.name, survey.description].some((text) => text.toLowerCase().includes(wanted)) &&
        (ids === undefined || ids.includes(survey.id)) &&
        (archived === undefined || survey.archived === archived) &&
        (wantedType === undefined || survey.type === wantedType),
    );
    return slicePage(all, { limit, offset }, bodyWriter(context));
  },
});

export const createNewSurvey = operation({
  id: "surveys.create",
  on: "project",
  scope: "survey:write",
  tag,
  summary: "Create a survey",
  description:
    "A draft without `start_date`. HTML is sanitized. The survey creates a flag that holds for persons who have not answered.",
  mcp: { name: "create_survey" },
  http: { method: "POST", path: "/surveys", status: 201, answer: "The new survey." },
  cli: {
    name: "surveys create",
    description: "Create a survey, as a draft unless it has a start date.",
    examples: [
      `surveys create Satisfaction --type popover --questions '[{"type":"open","question":"What is missing?"}]'`,
      "surveys create -f survey.yaml",
    ],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    options: jsonOptions(["questions", "conditions", "appearance", "targeting_flag_filters", "translations"]),
    hasCreator: true,
    hasFile: true,
    done: ({ name, id, status }: SurveyRecord) =>
      `Survey ${name} created; ${status === "draft" ? `launch it with: flagkeep surveys start ${id}` : `it is ${status}.`}`,
  },
  input: object({
    id: optional(
      nullable(
        uuid({ description: "Id of a deleted survey, to restore it with its responses; default: a new id." }),
      ),
    ),
    name,
    type,
    questions,
    ...editable,
  }),
  inputExample: { name: "Satisfaction", type: "popover", questions: [exampleQuestion] },
  output: SurveyBody,
  example,
  run: (context: Context, input) =>
    body(context, createSurvey(context.stores, getExperimentActor(context), input)),
});

const getOneSurvey = operation({
  id: "surveys.get",
  on: "project",
  scope: "survey:read",
  tag,
  summary: "Get a survey",
  http: { method: "GET", path: "/surveys/:id", answer: "The survey." },
  cli: {
    name: "surveys show",
    description: "Show a survey.",
    examples: ["surveys show Satisfaction --json"],
    arguments: [surveyArgument],
    done: (survey: SurveyRecord) =>
      [
        `${survey.name} (${survey.id}): ${survey.type}, ${survey.status}`,
        ...survey.questions.map((question, index) => `${index + 1}. ${question.question} (${question.type})`),
      ].join("\n"),
  },
  input: object({ id: uuid() }),
  output: SurveyBody,
  example,
  run: (context: Context, { id }) =>
    body(context, getSurvey(context.stores.metadata.db, context.project.id, id)),
});

const updateOneSurvey = operation({
  id: "surveys.update",
  on: "project",
  scope: "survey:write",
  tag,
  summary: "Update a survey",
  description: "`start_date` launches a survey, `end_date` stops it, and null for `end_date` resumes it.",
  http: { method: "PATCH", path: "/surveys/:id", answer: "The survey." },
  input: object({
    id: uuid(),
    name: optional(name),
    type: optional(type),
    questions: optional(questions),
    ...editable,
  }),
  inputExample: { start_date: "2026-03-02T09:00:00.000000Z" },
  output: SurveyBody,
  example,
  run: (context: Context, { id, ...input }) =>
    body(context, updateSurvey(context.stores, getExperimentActor(context), id, input)),
});

/** As Terraform's provider updates surveys. */
const replaceOneSurvey = operation({
  id: "surveys.replace",
  on: "project",
  scope: "survey:write",
  tag,
  summary: "Replace a survey",
  description: "Like PATCH, but `name`, `type` and `questions` are required.",
  http: { method: "PUT", path: "/surveys/:id", answer: "The survey." },
  input: object({ id: uuid(), name, type, questions, ...editable }),
  inputExample: { name: "Satisfaction", type: "popover", questions: [exampleQuestion] },
  output: SurveyBody,
  example,
  run: (context: Context, { id, ...input }) =>
    body(context, updateSurvey(context.stores, getExperimentActor(context), id, input)),
});

const launchSurvey = operation({
  id: "surveys.launch",
  on: "project",
  scope: "survey:write",
  tag,
  summary: "Launch a survey, or resume a stopped one",
  http: { method: "POST", path: "/surveys/:id/launch", status: 200, answer: "The running survey." },
  cli: {
    name: "surveys start",
    examples: ["surveys start Satisfaction"],
    arguments: [surveyArgument],
    done: (survey: SurveyRecord) => `Survey ${survey.name} is ${survey.status}.`,
  },
  input: object({ id: uuid() }),
  output: SurveyBody,
  example: { ...example, status: "running", start_date: "2026-03-02T09:00:00.000000Z" },
  run: (context: Context, { id }) => {
    const { stores, project, now } = context;
    const { startDate, archived } = getSurvey(stores.metadata.db, project.id, id);
    // Archived surveys are not shown, whatever their dates.
    if (archived)
      throw new InvalidFieldError(
        null,
        "invalid_transition",
        "Survey must be unarchived before it can be launched.",
      );
    const input = { start_date: (startDate ?? now).toISOString(), end_date: null };
    return body(context, updateSurvey(stores, getExperimentActor(context), id, input));
  },
});

const stopSurvey = operation({
  id: "surveys.stop",
  on: "project",
  scope: "survey:write",
  tag,
  summary: "Stop a survey",
  http: { method: "POST", path: "/surveys/:id/stop", status: 200, answer: "The completed survey." },
  cli: {
    name: "surveys stop",
    examples: ["surveys stop Satisfaction"],
    arguments: [surveyArgument],
    done: (survey: SurveyRecord) => `Survey ${survey.name} is ${survey.status}.`,
  },
  input: object({ id: uuid() }),
  output: SurveyBody,
  example: {
    ...example,
    status: "completed",
    start_date: "2026-03-02T09:00:00.000000Z",
    end_date: "2026-03-09T09:00:00.000000Z",
  },
  run: (context: Context, { id }) => {
    const { stores, project, now } = context;
    const { endDate } = getSurvey(stores.metadata.db, project.id, id);
    const input = { end_date: (endDate ?? now).toISOString() };
    return body(context, updateSurvey(stores, getExperimentActor(context), id, input));
  },
});

const deleteOneSurvey = operation({
  id: "surveys.delete",
  on: "project",
  scope: "survey:write",
  tag,
  summary: "Delete a survey",
  description: "The flags that it created are deleted along with it.",
  http: { method: "DELETE", path: "/surveys/:id" },
  input: object({ id: uuid() }),
  run: (context: Context, { id }) => deleteSurvey(context.stores, getExperimentActor(context), id),
});

/** In the order of the documentation. */
export const surveyOperations = [
  listAllSurveys,
  createNewSurvey,
  getOneSurvey,
  updateOneSurvey,
  replaceOneSurvey,
  launchSurvey,
  stopSurvey,
  deleteOneSurvey,
];
