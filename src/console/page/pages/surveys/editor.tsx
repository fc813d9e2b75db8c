/** Editor of a survey with a preview. Nothing is stored until it is saved. */

import { useState } from "preact/hooks";
import { Field, Select } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { Button } from "../../components/primitives.tsx";
import { useAddress } from "../../lib/router.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { Filters } from "../../model/flags.ts";
import { getLanguages, withCompleteChoices } from "../../model/survey-translations.ts";
import { freshQuestion, type SurveyDraft } from "../../model/surveys.ts";
import { AppearanceFields } from "./appearance.tsx";
import { SurveyAudience } from "./audience.tsx";
import { Languages, original } from "./languages.tsx";
import { QuestionList } from "./question-list.tsx";

const w = lazyMessages.surveys;
const questionsMax = 50;

export function SurveyEditor({
  start,
  targeting = null,
  action,
  onSave,
}: {
  start: SurveyDraft;
  /** Filters of the targeting flag. */
  targeting?: Filters | null;
  action: string;
  onSave: (body: Record<string, unknown>) => Promise<unknown>;
}) {
  const [draft, setDraft] = useState(start);
  const [filters, setFilters] = useState(targeting);
  const { query, set: setAddress } = useAddress();
  const language = getLanguages(draft).find((tag) => tag === query.language) ?? original;
  const set = (changed: Partial<SurveyDraft>) => setDraft((before) => ({ ...before, ...changed }));
  const { questions } = draft;
  const send = async () => {
    const isTargeted = (filters?.groups?.[0]?.properties ?? []).length > 0;
    const changed = JSON.stringify(filters) !== JSON.stringify(targeting);
    // The page itself says what was done.
    await onSave({
      ...draft,
      name: draft.name.trim(),
      questions: questions.map(withCompleteChoices),
      ...(!changed ? {} : isTargeted ? { targeting_flag_filters: filters } : { remove_targeting_flag: true }),
    });
    return false;
  };
  return (
    <Form onSend={send} action={action}>
      {(errorOf) => (
        <>
          <section class="card stack">
            <Field
              label={w.name}
              value={draft.name}
              onInput={(name) => set({ name })}
              isRequired
              error={errorOf("name")}
            />
            <Field
              label={w.description}
              value={draft.description}
              onInput={(description) => set({ description })}
              error={errorOf("description")}
            />
            <Select
              label={w.type}
              value={draft.type}
              choices={Object.entries(w.types)}
              onChange={(type) => set({ type })}
            />
          </section>
          <h2>{w.questions}</h2>
          <Languages
            draft={draft}
            language={language}
            onChange={setDraft}
            onChoose={(tag) => setAddress({ language: tag || undefined }, true)}
          />
          <QuestionList
            questions={questions}
            language={language}
            errorOf={errorOf}
            onChange={(changed) => set({ questions: changed })}
          />
          <div class="row">
            <Button
              icon="plus"
              isDisabled={questions.length >= questionsMax}
              onClick={() => set({ questions: [...questions, freshQuestion()] })}
            >
              {w.addQuestion}
            </Button>
          </div>
          <SurveyAudience
            draft={draft}
            set={set}
            filters={filters}
            onFilters={setFilters}
            errorOf={errorOf}
          />
          <AppearanceFields draft={draft} language={language} set={set} />
        </>
      )}
    </Form>
  );
}
