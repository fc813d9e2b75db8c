/** Translations of surveys in the console's editor, without a browser. */

import { expect, test } from "bun:test";
import {
  getLanguages,
  getMissingLanguages,
  translate,
  withChoices,
  withCompleteChoices,
  withLanguage,
  withoutLanguage,
  withText,
} from "../../src/console/page/model/survey-translations.ts";
import { freshSurvey, type Question, withType } from "../../src/console/page/model/surveys.ts";

const plans: Question = {
  id: "plans",
  type: "single_choice",
  question: "Which plan?",
  choices: ["Free", "Paid"],
  translations: { de: { question: "Welcher Tarif?", choices: ["Kostenlos", "Bezahlt"] } },
};
const getChoices = (question: Question) => question.translations?.de?.choices;

test.each([
  ["an added choice", ["Free", "Trial", "Paid"], ["Kostenlos", "", "Bezahlt"]],
  ["a moved choice", ["Paid", "x", "Free"], ["Bezahlt", "", "Kostenlos"]],
  ["a removed choice", ["Paid"], ["Bezahlt"]],
  ["a changed choice", ["Free!", "Paid"], ["Kostenlos", "Bezahlt"]],
  ["exchanged choices", ["Paid", "Free"], ["Bezahlt", "Kostenlos"]],
  ["a choice that equals another one while it is typed", ["Paid", "Paid"], ["Kostenlos", "Bezahlt"]],
])("translations follow %s", (_name, choices, translated) => {
  expect(getChoices(withChoices(plans, choices))).toEqual(translated);
});

test("each stored choice has a translation, and empty ones are removed", () => {
  const sent = withCompleteChoices(withChoices(plans, ["Trial", " ", "Paid", ""]));
  expect(sent.choices).toEqual(["Trial", "Paid"]);
  expect(getChoices(sent)).toEqual(["Trial", "Bezahlt"]);
});

test("an empty text is no translation", () => {
  expect(withText(plans, "de", "question", "").translations).toEqual({
    de: { choices: ["Kostenlos", "Bezahlt"] },
  });
  expect(withText(plans, "de", "choices", ["", ""]).translations).toEqual({
    de: { question: "Welcher Tarif?" },
  });
});

test("a question of another type has only the translations that it shows", () => {
  expect(withType(plans, "multiple_choice").translations).toEqual(plans.translations!);
  expect(withType(plans, "open").translations).toEqual({ de: { question: "Welcher Tarif?" } });
});

test("languages are added and removed with all of their texts", () => {
  const draft = { ...freshSurvey(), questions: [plans], translations: { fr: {} } };
  expect(getLanguages(draft)).toEqual(["fr", "de"]);
  expect(getMissingLanguages(draft)).not.toContain("de");
  const added = withLanguage(draft, "ja");
  expect(getLanguages(added)).toEqual(["fr", "de", "ja"]);
  const removed = withoutLanguage(withoutLanguage(added, "de"), "fr");
  expect(getLanguages(removed)).toEqual(["ja"]);
  expect(removed.questions[0]!.translations).toEqual({});
});

test("a survey is shown in a language where it has one", () => {
  const draft = {
    ...freshSurvey(),
    questions: [plans, { type: "open" as const, question: "Why?" }],
    appearance: { thankYouMessageHeader: "Thanks" },
    translations: { de: { thankYouMessageHeader: "Danke", name: "Tarife" } },
  };
  const shown = translate(draft, "de");
  expect(shown.questions.map(({ question }) => question)).toEqual(["Welcher Tarif?", "Why?"]);
  expect(shown.questions[0]!.choices).toEqual(["Kostenlos", "Bezahlt"]);
  expect(shown.appearance).toEqual({ thankYouMessageHeader: "Danke" });
});
