/**
 * Texts that a survey shows, with their translations. A survey is rendered on the pages of every visitor: permission to
 * edit surveys must not allow running scripts there, so HTML is sanitized when it is saved.
 *
 * Source: contract, experiments 1.5.
 */

import { InvalidFieldError } from "../lib/errors.ts";
import { isSafeLink, sanitizeHtml, unsafeCss } from "../lib/html.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";

export const textLengthMax = 5_000;
/** Of questions, conditions, appearance and translations, each as JSON. */
const jsonLengthMax = 100_000;
const linkLengthMax = 2_000;
const translationsMax = 50;
const languageTag = /^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$/;

/** @throws {InvalidFieldError} */
export function assertSize(field: string, sent: Json): void {
  if (JSON.stringify(sent).length > jsonLengthMax)
    fail(field, `Must have at most ${jsonLengthMax.toLocaleString("en-US")} characters as JSON.`);
}

export const isSet = (value: Json | undefined): value is Json => value !== undefined && value !== null;

export function fail(field: string, message: string): never {
  throw new InvalidFieldError(field, "invalid_input", message);
}

/** @throws {InvalidFieldError} */
export function assertText(text: Json | undefined, field: string): void {
  if (text === undefined || text === null) return;
  if (typeof text !== "string" || text.length > textLengthMax)
    fail(field, `Must be a text of at most ${textLengthMax.toLocaleString("en-US")} characters.`);
}

/** @throws {InvalidFieldError} */
export function assertSwitch(value: Json | undefined, field: string): void {
  if (isSet(value) && typeof value !== "boolean") fail(field, "Must be true or false.");
}

/** @throws {InvalidFieldError} */
export function assertChoice(value: Json | undefined, choices: readonly Json[], field: string): void {
  if (isSet(value) && !choices.includes(value)) fail(field, `Must be one of: ${choices.join(", ")}.`);
}

/** @throws {InvalidFieldError} */
export function assertLink(link: Json | undefined, field: string): void {
  if (link === undefined || link === null || link === "") return;
  if (typeof link !== "string" || link.length > linkLengthMax || !isSafeLink(link))
    fail(field, "Must be a URL that starts with https:// or mailto:.");
}

/** Whether a text is HTML. posthog-js renders texts without a type as HTML, so stored texts always have one. */
export function readContentType(sent: Json | undefined, field: string): "html" | "text" {
  if (sent === undefined || sent === null || sent === "text") return "text";
  return sent === "html" ? "html" : fail(field, "Must be one of: text, html.");
}

/** A text in stored form. */
export function safeText(text: Json | undefined, type: "html" | "text"): Json | undefined {
  return type === "html" && typeof text === "string" ? sanitizeHtml(text) : text;
}

/** Translations by language, each read by `read`. @throws {InvalidFieldError} */
export function readTranslations(
  sent: Json | undefined,
  field: string,
  read: (translation: JsonObject, field: string) => JsonObject,
): JsonObject {
  if (sent === undefined || sent === null) return {};
  if (!isJsonObject(sent)) return fail(field, "Must be an object by language.");
  const entries = Object.entries(sent);
  if (entries.length > translationsMax) fail(field, `Must have at most ${translationsMax} languages.`);
  return Object.fromEntries(
    entries.map(([language, translation]) => {
      if (!languageTag.test(language)) fail(field, "A language must be a tag such as `de` or `pt-BR`.");
      const name = `${field}.${language}`;
      if (!isJsonObject(translation)) return fail(name, "Must be an object.");
      return [language, read(translation, name)];
    }),
  );
}

/** Texts before the first question and after the last one. */
const screens = [
  ["thankYouMessageDescription", "thankYouMessageDescriptionContentType"],
  ["introScreenDescription", "introScreenDescriptionContentType"],
] as const;
const screenTexts = [
  "thankYouMessageHeader",
  "thankYouMessageDescription",
  "thankYouMessageCloseButtonText",
  "introScreenHeader",
  "introScreenDescription",
  "introScreenButtonText",
  "submitButtonText",
  "backButtonText",
];

/**
 * Translations of the name and the screens in stored form. A screen's text has the same content type in all languages.
 *
 * @throws {InvalidFieldError}
 */
export function readSurveyTranslations(sent: JsonObject, appearance: JsonObject): JsonObject {
  return readTranslations(sent, "translations", (texts, field) => {
    for (const name of ["name", ...screenTexts]) assertText(texts[name], `${field}.${name}`);
    const safe = { ...texts };
    for (const [text, contentType] of screens)
      if (texts[text] !== undefined)
        safe[text] = safeText(texts[text], appearance[contentType] === "html" ? "html" : "text")!;
    return safe;
  });
}

/** Members of an appearance that posthog-js uses as CSS. */
const styles = [
  "backgroundColor",
  "textColor",
  "submitButtonColor",
  "submitButtonTextColor",
  "descriptionTextColor",
  "ratingButtonColor",
  "ratingButtonActiveColor",
  "ratingButtonHoverColor",
  "inputBackground",
  "inputTextColor",
  "borderColor",
  "widgetColor",
  "fontFamily",
  "maxWidth",
  "zIndex",
  "disabledButtonOpacity",
  "boxPadding",
];
const appearanceTexts = [...screenTexts, "placeholder", "position", "widgetLabel", "widgetSelector"];
const switches = [
  "whiteLabel",
  "autoDisappear",
  "displayThankYouMessage",
  "displayIntroScreen",
  "shuffleQuestions",
  "allowGoBack",
];
const widgetTypes = ["button", "tab", "selector"];
const delaySecondsMax = 86_400;

/** Appearance in stored form. @throws {InvalidFieldError} */
export function readAppearance(sent: JsonObject): JsonObject {
  for (const name of appearanceTexts) assertText(sent[name], `appearance.${name}`);
  for (const name of styles) assertStyle(sent[name], `appearance.${name}`);
  for (const name of switches) assertSwitch(sent[name], `appearance.${name}`);
  assertChoice(sent.widgetType, widgetTypes, "appearance.widgetType");
  const { surveyPopupDelaySeconds: delay } = sent;
  const isDelay = typeof delay === "number" && delay >= 0 && delay <= delaySecondsMax;
  if (isSet(delay) && !isDelay)
    fail("appearance.surveyPopupDelaySeconds", `Must be a number from 0 to ${delaySecondsMax}.`);
  const appearance = { ...sent };
  for (const [text, contentType] of screens) {
    const type = readContentType(sent[contentType], `appearance.${contentType}`);
    if (sent[text] === undefined) continue;
    appearance[contentType] = type;
    appearance[text] = safeText(sent[text], type)!;
  }
  return appearance;
}

/** An appearance for visitors: translations have texts that it may lack, and posthog-js renders them as HTML without a type. */
export function withContentTypes(appearance: JsonObject): JsonObject {
  const types = screens.map(([, contentType]) => [contentType, appearance[contentType] ?? "text"]);
  return { ...appearance, ...Object.fromEntries(types) };
}

function assertStyle(style: Json | undefined, field: string): void {
  if (typeof style === "number") return;
  assertText(style, field);
  if (typeof style === "string" && unsafeCss.test(style))
    fail(field, "Must not load anything or contain `<` or `\\`.");
}
