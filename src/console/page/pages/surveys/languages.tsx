/** Languages of a survey, and the texts of a question in one of them. */

import { Field, Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { languageName } from "../../lib/format.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  getLanguages,
  getMissingLanguages,
  getTranslation,
  withLanguage,
  withoutLanguage,
  withText,
} from "../../model/survey-translations.ts";
import type { Question, SurveyDraft } from "../../model/surveys.ts";

const w = lazyMessages.surveys;

/** The texts as they were written first. */
export const original = "";

export function Languages({
  draft,
  language,
  onChange,
  onChoose,
}: {
  draft: SurveyDraft;
  language: string;
  onChange: (draft: SurveyDraft) => void;
  onChoose: (language: string) => void;
}) {
  const languages = getLanguages(draft);
  return (
    <section class="card stack">
      <div class="filters">
        <Select
          label={w.language}
          value={language}
          choices={[
            [original, w.original] as const,
            ...languages.map((tag) => [tag, languageName(tag)] as const),
          ]}
          onChange={onChoose}
        />
        <Select
          label={w.addLanguage}
          value=""
          choices={[
            ["", "–"] as const,
            ...getMissingLanguages(draft).map((tag) => [tag, languageName(tag)] as const),
          ]}
          onChange={(tag) => {
            if (tag === "") return;
            onChange(withLanguage(draft, tag));
            onChoose(tag);
          }}
        />
        {language !== original && (
          <Button
            kind="quiet"
            icon="trash"
            onClick={() => {
              onChange(withoutLanguage(draft, language));
              onChoose(original);
            }}
          >
            {w.removeLanguage(languageName(language))}
          </Button>
        )}
      </div>
      <p class="help">{language === original ? w.languageHelp : w.translationHelp}</p>
    </section>
  );
}

const questionTexts = [
  ["question", w.questionText],
  ["description", w.questionDescription],
  ["link", w.link],
  ["lowerBoundLabel", w.lower],
  ["upperBoundLabel", w.upper],
  ["buttonText", w.button],
] as const;

/** Only texts that the question has are translated. */
export function QuestionTranslation({
  question,
  language,
  onChange,
  errorOf: getError,
}: {
  question: Question;
  language: string;
  onChange: (question: Question) => void;
  /** By member of the translation. */
  errorOf: (member: string) => string | undefined;
}) {
  const texts = getTranslation(question, language);
  const { choices = [] } = question;
  const translated = Array.isArray(texts.choices) ? (texts.choices as string[]) : [];
  return (
    <>
      {questionTexts.map(([name, label]) =>
        question[name] ? (
          <Field
            key={name}
            label={label}
            value={String(texts[name] ?? "")}
            placeholder={String(question[name])}
            onInput={(text) => onChange(withText(question, language, name, text))}
            error={getError(name)}
          />
        ) : null,
      )}
      {choices.map((choice, position) =>
        choice.trim() === "" ? null : (
          <Field
            key={position}
            label={w.choice(position + 1)}
            value={translated[position] ?? ""}
            placeholder={choice}
            onInput={(text) =>
              onChange(
                withText(
                  question,
                  language,
                  "choices",
                  choices.map((_, index) => (index === position ? text : (translated[index] ?? ""))),
                ),
              )
            }
          />
        ),
      )}
    </>
  );
}
