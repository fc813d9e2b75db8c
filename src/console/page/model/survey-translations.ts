/** Texts of a survey in other languages, as posthog-js shows them: texts without a translation stay as they are. */

import { languageName } from "../lib/format.ts";
import type { Question, SurveyDraft, Translation } from "./surveys.ts";

type Translated = { translations?: Record<string, Translation> };

/** Languages that the editor offers; the API accepts any tag. posthog-js uses `de` for `de-AT` too. */
const offeredTags =
  "ar bg bn ca cs da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv ml mr ms nb nl pl pt pt-BR ro ru sk sl sr sv sw ta te th tr uk ur vi zh zh-TW";

const byName = (tags: readonly string[]) =>
  tags.toSorted((a, b) => languageName(a).localeCompare(languageName(b)));

/** Languages of a survey: those of its own texts and of its questions. */
export function getLanguages({ translations, questions }: SurveyDraft): string[] {
  const all = [translations, ...questions.map((question) => question.translations)];
  return byName([...new Set(all.flatMap((item) => Object.keys(item ?? {})))]);
}

export function getMissingLanguages(draft: SurveyDraft): string[] {
  const present = new Set(getLanguages(draft).map((tag) => tag.toLowerCase()));
  return byName(offeredTags.split(" ").filter((tag) => !present.has(tag.toLowerCase())));
}

export const getTranslation = ({ translations }: Translated, language: string): Translation =>
  translations?.[language] ?? {};

/** Sets a text; an empty one is removed, so that the original is shown. */
export function withText<Of extends Translated>(
  translated: Of,
  language: string,
  name: string,
  text: unknown,
): Of {
  const { [name]: _, ...others } = getTranslation(translated, language);
  const isEmpty = Array.isArray(text) ? text.every((item) => item === "") : text === "";
  return {
    ...translated,
    translations: { ...translated.translations, [language]: isEmpty ? others : { ...others, [name]: text } },
  };
}

export const withLanguage = (draft: SurveyDraft, language: string): SurveyDraft => ({
  ...draft,
  translations: { ...draft.translations, [language]: getTranslation(draft, language) },
});

export function withoutLanguage(draft: SurveyDraft, language: string): SurveyDraft {
  const { [language]: _, ...translations } = draft.translations;
  return {
    ...draft,
    translations,
    questions: draft.questions.map((question) => {
      if (question.translations === undefined) return question;
      const { [language]: __, ...others } = question.translations;
      return { ...question, translations: others };
    }),
  };
}

/** A choice without a translation has the original text. */
const fillChoices = (choices: readonly string[], translated: unknown): string[] =>
  choices.map((choice, index) => (translated as (string | undefined)[])[index]?.trim() || choice);

/** The survey as visitors with this language see it. */
export function translate(draft: SurveyDraft, language: string): SurveyDraft {
  const { name: _, ...screens } = getTranslation(draft, language);
  return {
    ...draft,
    appearance: { ...draft.appearance, ...screens },
    questions: draft.questions.map((question) => {
      const { choices, ...texts } = getTranslation(question, language);
      const translated = { ...question, ...texts };
      return Array.isArray(choices) && question.choices !== undefined
        ? { ...translated, choices: fillChoices(question.choices, choices) }
        : translated;
    }),
  };
}

/** A question with other choices; translations follow choices that are moved, added or removed. */
export function withChoices(question: Question, choices: string[]): Question {
  const before = question.choices ?? [];
  return mapTranslations({ ...question, choices }, (translated) =>
    choices.map((choice, position) => {
      const found = before.indexOf(choice);
      const isMoved = found !== -1 && choices[found] !== choice;
      // A choice with a new text, even one that equals another choice while it is typed, is where it was.
      const isEdited = !isMoved && before.length === choices.length;
      const former = isEdited || before[position] === choice ? position : found;
      return (former === -1 ? undefined : (translated[former] as string | undefined)) ?? "";
    }),
  );
}

/** A question in the form that the API accepts: without empty choices, and each with a translation or none. */
export function withCompleteChoices(question: Question): Question {
  if (question.choices === undefined) return question;
  const isFilled = question.choices.map((choice) => choice.trim() !== "");
  const choices = question.choices.filter((_, index) => isFilled[index]);
  return mapTranslations({ ...question, choices }, (translated) =>
    fillChoices(
      choices,
      isFilled.flatMap((isOn, index) => (isOn ? [translated[index]] : [])),
    ),
  );
}

function mapTranslations(question: Question, change: (choices: unknown[]) => string[]): Question {
  if (question.translations === undefined) return question;
  const changed = Object.entries(question.translations).map(([language, texts]) => [
    language,
    Array.isArray(texts.choices) ? { ...texts, choices: change(texts.choices) } : texts,
  ]);
  return { ...question, translations: Object.fromEntries(changed) as Record<string, Translation> };
}
