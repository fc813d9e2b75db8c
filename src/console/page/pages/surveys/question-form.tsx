/** One question of a survey. */

import { Area, Checkbox, Field, Select } from "../../components/fields.tsx";
import { lazyMessages } from "../../messages/later.ts";
import { withChoices } from "../../model/survey-translations.ts";
import {
  type Branching,
  getAnswers,
  getLength,
  type Question,
  type QuestionType,
  withLength,
  withType,
} from "../../model/surveys.ts";
import { HtmlCheckbox } from "./appearance.tsx";

const w = lazyMessages.surveys;
const end = "end";
const next = "next_question";

export interface QuestionFormProps {
  question: Question;
  position: number;
  count: number;
  error: string | undefined;
  onChange: (question: Question) => void;
}

export function QuestionForm({ question, position, count, error, onChange }: QuestionFormProps) {
  const { type } = question;
  const set = (changed: Partial<Question>) => onChange({ ...question, ...changed });
  const isChoice = type === "single_choice" || type === "multiple_choice";
  return (
    <>
      <Field
        label={w.questionText}
        value={question.question}
        onInput={(text) => set({ question: text })}
        isRequired
        error={error}
      />
      <Field
        label={w.questionDescription}
        value={question.description ?? ""}
        onInput={(description) => set({ description })}
      />
      {question.description && (
        <HtmlCheckbox
          label={w.questionDescription}
          type={question.descriptionContentType}
          onChange={(descriptionContentType) => set({ descriptionContentType })}
        />
      )}
      <Select
        label={w.questionType}
        value={type}
        choices={Object.entries(w.questionTypes) as [QuestionType, string][]}
        onChange={(chosen) => onChange(withType(question, chosen))}
      />
      {type === "open" &&
        Object.entries(w.lengths).map(([rule, label]) => (
          <Field
            key={rule}
            label={label}
            type="number"
            min={1}
            value={String(getLength(question, rule) ?? "")}
            onInput={(length) => set(withLength(question, rule, Number(length)))}
          />
        ))}
      {type === "rating" && <RatingFields question={question} set={set} />}
      {type === "link" && (
        <Field label={w.link} type="url" value={question.link ?? ""} onInput={(link) => set({ link })} />
      )}
      {isChoice && (
        <>
          <Area
            label={w.choices}
            value={(question.choices ?? []).join("\n")}
            onInput={(text) => onChange(withChoices(question, text.split("\n")))}
            rows={4}
          />
          <Checkbox
            label={w.openChoice}
            isOn={question.hasOpenChoice ?? false}
            onChange={(hasOpenChoice) => set({ hasOpenChoice })}
          />
          <Checkbox
            label={w.shuffle}
            isOn={question.shuffleOptions ?? false}
            onChange={(shuffleOptions) => set({ shuffleOptions })}
          />
        </>
      )}
      <Field
        label={w.button}
        value={question.buttonText ?? ""}
        placeholder={w.submit}
        onInput={(buttonText) => set({ buttonText })}
      />
      <Checkbox
        label={w.optional}
        isOn={question.optional ?? false}
        onChange={(optional) => set({ optional })}
      />
      <BranchingFields question={question} position={position} count={count} set={set} />
    </>
  );
}

interface PartProps {
  question: Question;
  set: (changed: Partial<Question>) => void;
}

function RatingFields({ question, set }: PartProps) {
  return (
    <>
      <Select
        label={w.display}
        value={question.display ?? "number"}
        choices={Object.entries(w.displays) as ["number" | "emoji", string][]}
        onChange={(display) => set({ display })}
      />
      <Select
        label={w.scale}
        value={String(question.scale ?? 5)}
        choices={Object.entries(w.scales)}
        // The answers that branches name depend on the scale.
        onChange={(scale) => set({ scale: Number(scale), branching: null })}
      />
      <Field
        label={w.lower}
        value={question.lowerBoundLabel ?? ""}
        onInput={(lowerBoundLabel) => set({ lowerBoundLabel })}
      />
      <Field
        label={w.upper}
        value={question.upperBoundLabel ?? ""}
        onInput={(upperBoundLabel) => set({ upperBoundLabel })}
      />
    </>
  );
}

/** A target as the value of a select, and back. */
const getName = (target: number | string | undefined) => (target === undefined ? next : String(target));
const getTarget = (name: string) => (name === next || name === end ? name : Number(name));

function BranchingFields({
  question,
  position,
  count,
  set,
}: PartProps & { position: number; count: number }) {
  const { branching, choices } = question;
  const answers = getAnswers(question);
  const isByAnswer = branching?.type === "response_based";
  const targets = [
    [next, w.branches.next_question] as const,
    ...Array.from({ length: count }, (_, index) => [String(index), w.toQuestion(index + 1)] as const).filter(
      (_, index) => index !== position,
    ),
    [end, w.branches.end] as const,
  ];
  const chosen =
    branching?.type === "specific_question" ? getName(branching.index) : (branching?.type ?? next);
  const choose = (name: string): Branching | null => {
    if (name === "response_based") return { type: name, responseValues: {} };
    if (name === next) return null;
    return name === end ? { type: end } : { type: "specific_question", index: Number(name) };
  };
  const label = (answer: string) =>
    question.type === "single_choice" ? (choices?.[Number(answer)] ?? answer) : (w.answers[answer] ?? answer);
  return (
    <>
      <Select
        label={w.branching}
        value={chosen}
        choices={
          answers.length > 0 ? [...targets, ["response_based", w.branches.response_based] as const] : targets
        }
        onChange={(name) => set({ branching: choose(name) })}
      />
      {isByAnswer &&
        answers.map((answer) => (
          <Select
            key={answer}
            label={w.after(label(answer))}
            value={getName(branching.responseValues?.[answer])}
            choices={targets}
            onChange={(name) =>
              set({
                branching: {
                  ...branching,
                  responseValues: { ...branching.responseValues, [answer]: getTarget(name) },
                },
              })
            }
          />
        ))}
    </>
  );
}
