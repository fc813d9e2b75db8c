/**
 * Texts that a survey shows, with their translations. A survey is rendered on the pages of every visitor: permission to
 * edit surveys must not allow running scripts there, so HTML is sanitized when it is saved.
 *
 * Source: contract, experiments 1.5.
 */

import { InvalidFieldError } from "../lib/errors.ts";
import { isSafeLink, sanitizeHtml } from "../lib/html.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";

export const textLengthMax = 5_000;
const linkLengthMax = 2_000;
const translationsMax = 50;
const languageTag = /^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$/;

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

/** Appearance in stored form. @throws {InvalidFieldError} */
export function readAppearance(sent: JsonObject): JsonObject {
  for (const name of [...screenTexts, "placeholder"]) assertText(sent[name], `appearance.${name}`);
  const appearance = { ...sent };
  for (const [text, contentType] of screens) {
    const type = readContentType(sent[contentType], `appearance.${contentType}`);
    appearance[contentType] = type;
    if (sent[text] !== undefined) appearance[text] = safeText(sent[text], type)!;
  }
  return appearance;
}
