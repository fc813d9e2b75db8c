/** Questions of a survey (contract: experiments 1.5). */

import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import {
  assertChoice,
  assertLink,
  assertSize,
  assertSwitch,
  assertText,
  fail,
  isSet,
  readContentType,
  readTranslations,
  safeText,
  textLengthMax,
} from "./display-texts.ts";

const questionsMax = 50;
const choicesMin = 2;
const choicesMax = 20;
const questionTypes = ["open", "link", "rating", "single_choice", "multiple_choice"];
const displays = ["number", "emoji"];
const scales = [2, 3, 5, 7, 10];
const branchings = ["next_question", "end", "specific_question", "response_based"];
const questionTexts = ["question", "description", "buttonText", "lowerBoundLabel", "upperBoundLabel"];
const lengthRules = ["min_length", "max_length"];
const validations = [...lengthRules, "email"];
const ratingDefaults = { display: "number", scale: 5 };

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
  for (const name of ["optional", "hasOpenChoice", "shuffleOptions", "skipSubmitButton"])
    assertSwitch(sent[name], `${field}.${name}`);
  if (type === "link") assertLink(sent.link, `${field}.link`);
  if (type === "rating") {
    assertChoice(sent.display, displays, `${field}.display`);
    assertChoice(sent.scale, scales, `${field}.scale`);
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
    ...(type === "rating" ? ratingDefaults : {}),
    ...withDescription(sent),
    id: id ?? Bun.randomUUIDv7(),
    descriptionContentType,
    ...(isJsonObject(sent.translations) ? { translations } : {}),
  };
}

function assertTexts(sent: JsonObject, field: string): void {
  for (const name of questionTexts) assertText(sent[name], `${field}.${name}`);
}

/** Rules that clients apply to the answer of an open question; posthog-js knows those of the length. */
function assertValidation(rules: Json | undefined, field: string): void {
  if (!isSet(rules)) return;
  if (!Array.isArray(rules)) fail(field, "Must be a list of validation rules.");
  for (const rule of rules) {
    if (!isJsonObject(rule)) fail(field, "Each validation rule must be an object.");
    const { type, value, errorMessage } = rule;
    if (!validations.includes(type as string))
      fail(field, `Validation rule type must be one of: ${validations.join(", ")}`);
    const isLength = typeof value === "number" && Number.isInteger(value) && value > 0;
    if (lengthRules.includes(type as string) && isSet(value) && !isLength)
      fail(field, `Validation rule value for ${type} must be a positive integer`);
    assertText(errorMessage, `${field}.errorMessage`);
  }
  const [min, max] = lengthRules.map((name) =>
    Number((rules as JsonObject[]).find(({ type }) => type === name)?.value ?? Number.NaN),
  );
  if (min! > max!) fail(field, "Minimum length cannot be greater than maximum length");
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
