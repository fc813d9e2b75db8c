/** Form fields, each with label, help and error. */

import type { ComponentChildren } from "preact";
import { useId, useReducer, useRef, useState } from "preact/hooks";
import { messages } from "../messages/index.ts";

interface FieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "email" | "password" | "number" | "search" | "url" | "date" | "datetime-local";
  help?: ComponentChildren;
  error?: string | undefined;
  isLabelHidden?: boolean;
  placeholder?: string;
  autocomplete?: string;
  isRequired?: boolean;
  isDisabled?: boolean;
  isReadOnly?: boolean;
  name?: string;
  suffix?: string;
  min?: number;
  max?: number;
  step?: number | "any";
  class?: string;
  inputRef?: { current: HTMLInputElement | null };
  onFocus?: () => void;
  autofocus?: boolean;
}

export function Field(props: FieldProps) {
  const id = useId();
  const { label, value, onInput, help, error } = props;
  const own = useRef<HTMLInputElement>(null);
  const input = props.inputRef ?? own;
  // Preact's types bind attributes to the kind of field.
  const kind = { type: props.type ?? "text" } as { type: "text" };
  return (
    <div class={`field ${props.class ?? ""}`}>
      <label for={id} class={props.isLabelHidden ? "unseen" : undefined}>
        {label}
      </label>
      <span class="field-line">
        <input
          {...kind}
          id={id}
          ref={input}
          name={props.name}
          value={value}
          placeholder={props.placeholder}
          autocomplete={(props.autocomplete ?? "off") as "off"}
          required={props.isRequired}
          disabled={props.isDisabled}
          readOnly={props.isReadOnly}
          autofocus={props.autofocus}
          min={props.min}
          max={props.max}
          step={props.step}
          spellcheck={false}
          aria-invalid={error ? true : undefined}
          aria-describedby={error || help ? `${id}-help` : undefined}
          onInput={(event) => onInput(event.currentTarget.value)}
          onFocus={props.onFocus}
        />
        {props.suffix && <span class="suffix">{props.suffix}</span>}
      </span>
      {(error || help) && (
        <span id={`${id}-help`} class={error ? "error" : "help"}>
          {error ?? help}
        </span>
      )}
    </div>
  );
}

/** A percentage. Typed text is kept; anything but a number from 0 to 100 is NaN. */
export function ShareField({
  value,
  onInput,
  ...props
}: Omit<FieldProps, "value" | "onInput" | "error"> & { value: number; onInput: (value: number) => void }) {
  const [text, setText] = useState("");
  const getShare = (sent: string) =>
    sent.trim() !== "" && Number(sent) >= 0 && Number(sent) <= 100 ? Number(sent) : Number.NaN;
  return (
    <Field
      type="number"
      min={0}
      max={100}
      step="any"
      suffix="%"
      // Changed from outside, for example by a slider.
      value={Object.is(getShare(text), value) ? text : String(value)}
      onInput={(sent) => {
        setText(sent);
        onInput(getShare(sent));
      }}
      error={Number.isNaN(value) ? messages.flag.shareWrong : undefined}
      {...props}
    />
  );
}

/** A search field with its label inside. */
export function SearchField({ label, ...props }: Pick<FieldProps, "label" | "value" | "onInput">) {
  return <Field label={label} placeholder={label} isLabelHidden type="search" class="search" {...props} />;
}

/** A local file. */
export function FileField({
  label,
  accept,
  help,
  onChoose,
}: {
  label: string;
  accept?: string;
  help?: string;
  onChoose: (file: File | undefined) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        accept={accept}
        aria-describedby={help ? `${id}-help` : undefined}
        onChange={(event) => onChoose(event.currentTarget.files?.[0])}
      />
      {help && (
        <span id={`${id}-help`} class="help">
          {help}
        </span>
      )}
    </div>
  );
}

export function Area({
  label,
  value,
  onInput,
  error,
  rows = 3,
  isLabelHidden,
}: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  error?: string | undefined;
  rows?: number;
  isLabelHidden?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "unseen" : undefined}>
        {label}
      </label>
      <textarea
        id={id}
        rows={rows}
        value={value}
        spellcheck={false}
        aria-invalid={error ? true : undefined}
        aria-describedby={error ? `${id}-help` : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {error && (
        <span id={`${id}-help`} class="error">
          {error}
        </span>
      )}
    </div>
  );
}

/**
 * Fields that show stored values: a rejected choice is reset explicitly, since the browser has already changed it and
 * an unchanged value causes no re-render.
 */
function useStored<Value>(onChange: (value: Value) => void): (value: Value) => void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  return (value) => {
    onChange(value);
    redraw(0);
  };
}

export function Select<Value extends string>({
  label,
  value,
  choices,
  onChange,
  isLabelHidden,
  disabledReason: rejection,
}: {
  label: string;
  value: Value;
  choices: readonly (readonly [Value, string])[];
  onChange: (value: Value) => void;
  isLabelHidden?: boolean;
  disabledReason?: string | false | undefined;
}) {
  const id = useId();
  const change = useStored(onChange);
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "unseen" : undefined}>
        {label}
      </label>
      <select
        id={id}
        value={value}
        disabled={!!rejection}
        title={rejection || undefined}
        onChange={(event) => change(event.currentTarget.value as Value)}
      >
        {choices.map(([choice, text]) => (
          <option key={choice} value={choice} selected={choice === value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Checkbox({
  label,
  isOn,
  onChange,
  help,
  isLabelHidden,
  isDisabled,
}: {
  label: string;
  isOn: boolean;
  onChange: (on: boolean) => void;
  help?: string;
  isLabelHidden?: boolean;
  isDisabled?: boolean;
}) {
  return (
    <label class="checkbox" title={help}>
      <input
        type="checkbox"
        checked={isOn}
        disabled={isDisabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span class={isLabelHidden ? "unseen" : undefined}>{label}</span>
    </label>
  );
}

/** One of a few choices, all visible. */
export function Segments<Value extends string>({
  label,
  value,
  choices,
  onChange,
  disabledReason,
}: {
  label: string;
  value: Value;
  choices: readonly (readonly [Value, string])[];
  onChange: (value: Value) => void;
  disabledReason?: string | false | undefined;
}) {
  const name = useId();
  const change = useStored(onChange);
  return (
    <fieldset class="segments" disabled={!!disabledReason} title={disabledReason || undefined}>
      <legend class="unseen">{label}</legend>
      {choices.map(([choice, text]) => (
        <label key={choice}>
          <input
            type="radio"
            name={name}
            value={choice}
            checked={choice === value}
            onChange={() => change(choice)}
          />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}
