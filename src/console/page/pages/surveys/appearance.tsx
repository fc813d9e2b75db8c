/** Texts and colors of a survey. */

import { Fragment } from "preact";
import { Checkbox, Field, Select } from "../../components/fields.tsx";
import { lazyMessages } from "../../messages/later.ts";
import { getTranslation, withText } from "../../model/survey-translations.ts";
import { type SurveyDraft, widgetDefaults } from "../../model/surveys.ts";
import { original } from "./languages.tsx";

const w = lazyMessages.surveys;
const e = lazyMessages.webExperiments;
const texts = [
  ["introScreenHeader", w.intro],
  ["introScreenDescription", w.introText],
  ["introScreenButtonText", w.introButton],
  ["thankYouMessageHeader", w.thanks],
  ["thankYouMessageDescription", w.thanksText],
  ["submitButtonText", w.submit],
] as const;
/** posthog-js shows these screens only where a switch is set; names of their texts start alike. */
const screens = [
  ["introScreen", "displayIntroScreen"],
  ["thankYou", "displayThankYouMessage"],
] as const;
const colors = [
  ["backgroundColor", w.background],
  ["submitButtonColor", w.buttonColor],
] as const;

export function AppearanceFields({
  draft,
  language,
  set,
}: {
  draft: SurveyDraft;
  /** The texts in this language are edited. */
  language: string;
  set: (changed: Partial<SurveyDraft>) => void;
}) {
  const { appearance } = draft;
  const change = (name: string, value: unknown) => {
    const changed: SurveyDraft["appearance"] = { ...appearance, [name]: value };
    for (const [screen, isShown] of screens)
      if (name.startsWith(screen))
        changed[isShown] = texts.some(([text]) => text.startsWith(screen) && changed[text]);
    set({ appearance: changed });
  };
  return (
    <section class="card stack">
      <h2>{w.appearance}</h2>
      {language === original
        ? [...texts, ...colors].map(([name, label]) => (
            <Fragment key={name}>
              <Field
                label={label}
                value={String(appearance[name] ?? "")}
                onInput={(text) => change(name, text)}
              />
              {name.endsWith("Description") && appearance[name] && (
                <HtmlCheckbox
                  label={label}
                  type={appearance[`${name}ContentType`]}
                  onChange={(type) => change(`${name}ContentType`, type)}
                />
              )}
            </Fragment>
          ))
        : texts.map(([name, label]) =>
            appearance[name] ? (
              <Field
                key={name}
                label={label}
                value={String(getTranslation(draft, language)[name] ?? "")}
                placeholder={String(appearance[name])}
                onInput={(text) => set(withText(draft, language, name, text))}
              />
            ) : null,
          )}
      {language === original && (
        <>
          <Checkbox
            label={w.isShuffled}
            isOn={appearance.shuffleQuestions === true}
            onChange={(isOn) => change("shuffleQuestions", isOn)}
          />
          <Checkbox
            label={w.isWhiteLabel}
            isOn={appearance.whiteLabel === true}
            onChange={(isOn) => change("whiteLabel", isOn)}
          />
          {draft.type === "widget" && <WidgetFields appearance={appearance} onChange={change} />}
          {draft.type === "popover" && <PopoverFields appearance={appearance} onChange={change} />}
        </>
      )}
    </section>
  );
}

/** Whether a text is HTML; the server removes other tags than those named. */
export function HtmlCheckbox({
  label,
  type,
  onChange,
}: {
  label: string;
  type: unknown;
  onChange: (type: string) => void;
}) {
  const isHtml = type === "html";
  return (
    <>
      <Checkbox label={w.isHtml(label)} isOn={isHtml} onChange={(isOn) => onChange(isOn ? "html" : "text")} />
      {isHtml && <p class="help">{e.htmlHelp}</p>}
    </>
  );
}

interface PartProps {
  appearance: SurveyDraft["appearance"];
  onChange: (name: string, value: unknown) => void;
}

/** The button that opens the survey. */
function WidgetFields({ appearance, onChange }: PartProps) {
  const kind = String(appearance.widgetType ?? widgetDefaults.widgetType);
  return (
    <>
      <Select
        label={w.widgetType}
        value={kind}
        choices={Object.entries(w.widgetTypes)}
        onChange={(chosen) => onChange("widgetType", chosen)}
      />
      {kind === "selector" ? (
        <Field
          label={w.widgetSelector}
          value={String(appearance.widgetSelector ?? "")}
          placeholder="#feedback"
          isRequired
          onInput={(selector) => onChange("widgetSelector", selector)}
        />
      ) : (
        <>
          <Field
            label={w.widgetLabel}
            value={String(appearance.widgetLabel ?? "")}
            onInput={(label) => onChange("widgetLabel", label)}
          />
          <Field
            label={w.widgetColor}
            value={String(appearance.widgetColor ?? "")}
            placeholder="black"
            onInput={(color) => onChange("widgetColor", color)}
          />
        </>
      )}
    </>
  );
}

function PopoverFields({ appearance, onChange }: PartProps) {
  const { surveyPopupDelaySeconds: delay } = appearance;
  return (
    <>
      <Select
        label={w.position}
        value={String(appearance.position ?? "right")}
        choices={Object.entries(w.positions)}
        onChange={(position) => onChange("position", position)}
      />
      <Field
        label={w.delay}
        type="number"
        min={0}
        value={typeof delay === "number" ? String(delay) : ""}
        suffix="s"
        onInput={(seconds) => onChange("surveyPopupDelaySeconds", seconds === "" ? 0 : Number(seconds))}
      />
    </>
  );
}
