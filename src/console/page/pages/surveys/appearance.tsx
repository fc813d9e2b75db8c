/** Texts and colors of a survey, next to a preview of it. */

import { Checkbox, Field } from "../../components/fields.tsx";
import { lazyMessages } from "../../messages/later.ts";
import type { SurveyDraft } from "../../model/surveys.ts";
import { SurveyPreview } from "./preview.tsx";

const w = lazyMessages.surveys;
const texts = [
  ["thankYouMessageHeader", w.thanks],
  ["thankYouMessageDescription", w.thanksText],
  ["submitButtonText", w.submit],
  ["backgroundColor", w.background],
  ["submitButtonColor", w.buttonColor],
] as const;

export function AppearanceFields({
  draft,
  set,
}: {
  draft: SurveyDraft;
  set: (changed: Partial<SurveyDraft>) => void;
}) {
  const { appearance } = draft;
  const change = (name: string, value: unknown) =>
    set({
      appearance: {
        ...appearance,
        [name]: value,
        // posthog-js shows the message only where this is set.
        ...(name.startsWith("thankYou") ? { displayThankYouMessage: true } : {}),
      },
    });
  return (
    <section class="card stack">
      <h2>{w.appearance}</h2>
      {texts.map(([name, label]) => (
        <Field
          key={name}
          label={label}
          value={String(appearance[name] ?? "")}
          onInput={(text) => change(name, text)}
        />
      ))}
      <Checkbox
        label={w.isShuffled}
        isOn={appearance.shuffleQuestions === true}
        onChange={(isOn) => change("shuffleQuestions", isOn)}
      />
      <SurveyPreview draft={draft} />
    </section>
  );
}
