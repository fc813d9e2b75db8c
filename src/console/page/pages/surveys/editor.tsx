/** Editor of a survey, next to a preview. Nothing is stored until it is saved; unsaved drafts outlive the page. */

import { useEffect, useState } from "preact/hooks";
import { Field, Select } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { AddButton, Button } from "../../components/primitives.tsx";
import { useAddress } from "../../lib/router.ts";
import { readUnsaved, writeUnsaved } from "../../lib/unsaved-drafts.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { Filters } from "../../model/flags.ts";
import { getLanguages, translate, withCompleteChoices } from "../../model/survey-translations.ts";
import { freshQuestion, type SurveyDraft, widgetDefaults } from "../../model/surveys.ts";
import { AppearanceFields } from "./appearance.tsx";
import { SurveyAudience } from "./audience.tsx";
import { Languages, original } from "./languages.tsx";
import { SurveyPreview } from "./preview.tsx";
import { QuestionList } from "./question-list.tsx";

const w = lazyMessages.surveys;
const questionsMax = 50;

interface Edited {
  draft: SurveyDraft;
  filters: Filters | null;
}

interface Unsaved extends Edited {
  /** Of what was stored when the draft was started. */
  base: string;
}

export function SurveyEditor<Saved>({
  draftKey,
  base,
  start,
  targeting = null,
  action,
  onSave,
  onSaved,
}: {
  /** Of the unsaved draft. */
  draftKey: string;
  /** Identifies what is stored: an unsaved draft with another base conflicts with it. */
  base: string;
  start: SurveyDraft;
  /** Filters of the targeting flag. */
  targeting?: Filters | null;
  action: string;
  onSave: (body: Record<string, unknown>) => Promise<Saved>;
  onSaved: (saved: Saved) => void;
}) {
  const stored: Edited = { draft: start, filters: targeting };
  const [unsaved] = useState(() => readUnsaved<Unsaved>(draftKey));
  const [current, setCurrent] = useState<Edited>(() =>
    unsaved === undefined ? stored : { draft: unsaved.draft, filters: unsaved.filters },
  );
  const [startedOn, setStartedOn] = useState(unsaved?.base ?? base);
  const discard = () => {
    setCurrent(stored);
    setStartedOn(base);
  };
  const { draft, filters } = current;
  const isChanged = JSON.stringify(current) !== JSON.stringify(stored);
  useEffect(() => {
    writeUnsaved(draftKey, isChanged ? { ...current, base: startedOn } : undefined);
  }, [current]);
  const setDraft = (changed: SurveyDraft) => setCurrent((before) => ({ ...before, draft: changed }));
  const { query, set: setAddress } = useAddress();
  const language = getLanguages(draft).find((tag) => tag === query.language) ?? original;
  const set = (changed: Partial<SurveyDraft>) =>
    setCurrent((before) => ({ ...before, draft: { ...before.draft, ...changed } }));
  const { questions } = draft;
  const send = async () => {
    const isTargeted = (filters?.groups?.[0]?.properties ?? []).length > 0;
    const changed = JSON.stringify(filters) !== JSON.stringify(targeting);
    const saved = await onSave({
      ...draft,
      name: draft.name.trim(),
      questions: questions.map(withCompleteChoices),
      ...(!changed ? {} : isTargeted ? { targeting_flag_filters: filters } : { remove_targeting_flag: true }),
    });
    // Before the page shows what is stored now: that draft would conflict with it.
    writeUnsaved(draftKey, undefined);
    onSaved(saved);
    // The page itself says what was done.
    return false;
  };
  return (
    <Form onSend={send} action={action}>
      {(errorOf) => (
        <div class="release">
          <div class="stack">
            {isChanged && startedOn !== base && (
              <p class="bar warn" role="alert">
                {w.conflict}
              </p>
            )}
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
                onChange={(type) =>
                  set({
                    type,
                    ...(type === "widget" ? { appearance: { ...widgetDefaults, ...draft.appearance } } : {}),
                  })
                }
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
              <AddButton
                kind="plain"
                focused=":scope > fieldset:last-of-type :is(input, select)"
                isDisabled={questions.length >= questionsMax}
                onAdd={() => set({ questions: [...questions, freshQuestion()] })}
              >
                {w.addQuestion}
              </AddButton>
            </div>
            <SurveyAudience
              draft={draft}
              set={set}
              filters={filters}
              onFilters={(changed) => setCurrent((before) => ({ ...before, filters: changed }))}
              errorOf={errorOf}
            />
            <AppearanceFields draft={draft} language={language} set={set} />
          </div>
          <div class="card stack effect">
            <SurveyPreview draft={language === original ? draft : translate(draft, language)} />
            {isChanged && (
              <p class="row apart">
                <span class="muted">{w.unsaved}</span>
                <Button kind="quiet" onClick={discard}>
                  {w.discard}
                </Button>
              </p>
            )}
          </div>
        </div>
      )}
    </Form>
  );
}
