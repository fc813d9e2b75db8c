/** Questions of a survey, and the conditions under which it is shown (contract: experiments 1.5). */

import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import {
  assertLink,
  assertText,
  fail,
  readContentType,
  readTranslations,
  safeText,
  textLengthMax,
} from "./display-texts.ts";

const questionsMax = 50;
const choicesMin = 2;
const choicesMax = 20;
/** Of questions, conditions, appearance and translations, each as JSON. */
const jsonLengthMax = 100_000;
const questionTypes = ["open", "link", "rating", "single_choice", "multiple_choice"];
const displays = ["number", "emoji"];
const scales = [2, 3, 5, 7, 10];
const branchings = ["next_question", "end", "specific_question", "response_based"];
const questionTexts = ["question", "description", "buttonText", "lowerBoundLabel", "upperBoundLabel"];
const validations = ["min_length", "max_length"];
const urlMatches = ["regex", "not_regex", "exact", "is_not", "icontains", "not_icontains"];
const waitDaysMax = 3_650;

/** Questions in stored form: each with an id. @throws {InvalidFieldError} */
export function readQuestions(sent: readonly Json[], appearance: JsonObject): JsonObject[] {
  if (sent.length < 1 || sent.length > questionsMax)
    fail("questions", `A survey has 1 to ${questionsMax} questions; this one has ${sent.length}.`);
  assertSize("questions", sent as Json);
  const read = sent.map((item, at) => readQuestion(item, `questions.${at}`, sent.length));
  if (new Set(read.map(({ id }) => id)).size < read.length)
    fail("questions", "The `id` of each question must be unique.");
  if (appearance.shuffleQuestions === true && read.some(({ branching }) => isJsonObject(branching)))
    fail("appearance", "`shuffleQuestions` cannot be combined with branching.");
  return read;
}

function readQuestion(sent: Json, field: string, count: number): JsonObject {
  if (!isJsonObject(sent)) return fail(field, "A question must be an object.");
  const { type, question, id } = sent;
  if (typeof type !== "string" || !questionTypes.includes(type))
    fail(`${field}.type`, `Must be one of: ${questionTypes.join(", ")}.`);
  if (typeof question !== "string" || question.trim() === "")
    fail(`${field}.question`, "This field may not be blank.");
  if (id !== undefined && id !== null && (typeof id !== "string" || !/^[\w-]{1,200}$/.test(id)))
    fail(`${field}.id`, "Must have 1 to 200 letters, digits, `_` or `-`.");
  assertTexts(sent, field);
  for (const name of ["optional", "hasOpenChoice", "shuffleOptions"])
    if (!["boolean", "undefined"].includes(typeof sent[name]) && sent[name] !== null)
      fail(`${field}.${name}`, "Must be true or false.");
  if (type === "link") assertLink(sent.link, `${field}.link`);
  if (type === "rating") {
    if (!displays.includes(sent.display as string))
      fail(`${field}.display`, `Must be one of: ${displays.join(", ")}.`);
    if (!scales.includes(sent.scale as number))
      fail(`${field}.scale`, `Must be one of: ${scales.join(", ")}.`);
  }
  if (type.endsWith("_choice")) assertChoices(sent.choices, `${field}.choices`);
  assertBranching(sent.branching, `${field}.branching`, count);
  assertValidation(sent.validation, `${field}.validation`);
  const descriptionContentType = readContentType(
    sent.descriptionContentType,
    `${field}.descriptionContentType`,
  );
  const withDescription = (texts: JsonObject): JsonObject =>
    texts.description === undefined
      ? texts
      : { ...texts, description: safeText(texts.description, descriptionContentType)! };
  const translations = readTranslations(sent.translations, `${field}.translations`, (texts, at) => {
    assertTexts(texts, at);
    assertLink(texts.link, `${at}.link`);
    const { choices } = texts;
    if (choices === undefined) return withDescription(texts);
    assertChoices(choices, `${at}.choices`);
    // A choice and its translation have the same position.
    if ((choices as Json[]).length !== (Array.isArray(sent.choices) ? sent.choices.length : 0))
      fail(`${at}.choices`, "Must have as many choices as the question.");
    return withDescription(texts);
  });
  return {
    ...withDescription(sent),
    id: id ?? Bun.randomUUIDv7(),
    descriptionContentType,
    ...(isJsonObject(sent.translations) ? { translations } : {}),
  };
}

function assertTexts(sent: JsonObject, field: string): void {
  for (const name of questionTexts) assertText(sent[name], `${field}.${name}`);
}

/** Rules that posthog-js applies to the answer of an open question. */
function assertValidation(rules: Json | undefined, field: string): void {
  if (rules === undefined || rules === null) return;
  const isRule = (rule: Json) =>
    isJsonObject(rule) &&
    validations.includes(rule.type as string) &&
    Number.isInteger(rule.value) &&
    (rule.value as number) >= 0 &&
    (rule.errorMessage === undefined || typeof rule.errorMessage === "string");
  if (!isListOf(rules, isRule))
    fail(
      field,
      `Must be a list of rules with \`type\` (${validations.join(", ")}) and an integer \`value\`.`,
    );
}

function assertChoices(choices: Json | undefined, field: string): void {
  const isValid =
    Array.isArray(choices) &&
    choices.length >= choicesMin &&
    choices.length <= choicesMax &&
    choices.every(
      (choice) => typeof choice === "string" && choice.trim() !== "" && choice.length <= textLengthMax,
    );
  if (!isValid) fail(field, `Must be a list of ${choicesMin} to ${choicesMax} texts that are not empty.`);
}

function assertBranching(branching: Json | undefined, field: string, count: number): void {
  if (branching === undefined || branching === null) return;
  if (!isJsonObject(branching) || !branchings.includes(branching.type as string))
    fail(field, `\`type\` must be one of: ${branchings.join(", ")}.`);
  const isTarget = (at: Json | undefined) =>
    typeof at === "number" && Number.isInteger(at) && at >= 0 && at < count;
  if (branching.type === "specific_question" && !isTarget(branching.index))
    fail(field, `\`index\` must be the index of a question: 0 to ${count - 1}.`);
  if (branching.type !== "response_based") return;
  const { responseValues } = branching;
  if (!isJsonObject(responseValues)) fail(field, "`responseValues` must be an object.");
  for (const target of Object.values(responseValues))
    if (target !== "end" && target !== "next_question" && !isTarget(target))
      fail(
        field,
        `A target must be \`end\`, \`next_question\` or the index of a question: 0 to ${count - 1}.`,
      );
}

/** @throws {InvalidFieldError} */
export function readConditions(sent: JsonObject): JsonObject {
  assertSize("conditions", sent);
  const { url, urlMatchType, selector, deviceTypes, events, seenSurveyWaitPeriodInDays: wait } = sent;
  assertText(url, "conditions.url");
  assertText(selector, "conditions.selector");
  if (urlMatchType !== undefined && urlMatchType !== null && !urlMatches.includes(urlMatchType as string))
    fail("conditions.urlMatchType", `Must be one of: ${urlMatches.join(", ")}.`);
  if (
    deviceTypes !== undefined &&
    deviceTypes !== null &&
    !isListOf(deviceTypes, (device) => typeof device === "string")
  )
    fail("conditions.deviceTypes", "Must be a list of texts.");
  if (wait !== undefined && wait !== null && getWaitDays(sent) === undefined)
    fail("conditions.seenSurveyWaitPeriodInDays", `Must be an integer from 0 to ${waitDaysMax}.`);
  if (events !== undefined && events !== null) {
    const values = isJsonObject(events) ? (events.values ?? []) : undefined;
    const isEvent = (event: Json) =>
      isJsonObject(event) && typeof event.name === "string" && event.name !== "";
    if (values === undefined || !isListOf(values, isEvent))
      fail("conditions.events", "`values` must be a list of objects with `name`.");
  }
  return sent;
}

const isListOf = (sent: Json, test: (item: Json) => boolean) => Array.isArray(sent) && sent.every(test);

/** Days after any survey in which a person sees no other. */
export function getWaitDays({ seenSurveyWaitPeriodInDays: days }: JsonObject): number | undefined {
  const isValid = typeof days === "number" && Number.isInteger(days) && days >= 0 && days <= waitDaysMax;
  return isValid ? days : undefined;
}

export function assertSize(field: string, sent: Json): void {
  if (JSON.stringify(sent).length > jsonLengthMax)
    fail(field, `Must have at most ${jsonLengthMax.toLocaleString("en-US")} characters as JSON.`);
}
