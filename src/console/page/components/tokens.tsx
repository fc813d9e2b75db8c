/** An input for a list of short strings, each removable. */

import { useId, useState } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Icon } from "./icons.tsx";
import { keepFocusNear } from "./primitives.tsx";

const w = messages.flag.condition;
const suggestionsMax = 50;

export function TokenField({
  label,
  values,
  onChange,
  suggestions = [],
  addLabel = w.addValue,
  error,
  isLabelHidden = true,
}: {
  label: string;
  values: readonly string[];
  onChange: (values: string[]) => void;
  suggestions?: readonly string[];
  addLabel?: string;
  error?: string | undefined;
  isLabelHidden?: boolean;
}) {
  const [text, setText] = useState("");
  const id = useId();
  const add = (sent: string) => {
    const added = sent.trim();
    setText("");
    if (added !== "" && !values.includes(added)) onChange([...values, added]);
  };
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "unseen" : undefined}>
        {label}
      </label>
      <div class={error ? "tokens wrong" : "tokens"}>
        {values.map((value) => (
          <span key={value} class="token">
            <span>{value}</span>
            <button
              type="button"
              aria-label={w.removeValue(value)}
              onClick={(event) => {
                keepFocusNear(event.currentTarget);
                onChange(values.filter((other) => other !== value));
              }}
            >
              <Icon name="close" size={13} />
            </button>
          </span>
        ))}
        <input
          id={id}
          type="text"
          value={text}
          placeholder={addLabel}
          list={`${id}-list`}
          autocomplete="off"
          spellcheck={false}
          aria-invalid={error ? true : undefined}
          onInput={(event) => {
            const sent = event.currentTarget.value;
            // Choosing a suggestion inserts it in a single input event without `data`.
            if (suggestions.includes(sent) && !("data" in event && event.data)) add(sent);
            else setText(sent);
          }}
          onBlur={() => add(text)}
          onKeyDown={(event) => {
            if (event.key === "Enter" || (event.key === "," && text.trim() !== "")) {
              event.preventDefault();
              add(text);
            } else if (event.key === "Backspace" && text === "" && values.length > 0) {
              onChange(values.slice(0, -1));
            }
          }}
        />
      </div>
      <datalist id={`${id}-list`}>
        {suggestions.slice(0, suggestionsMax).map((suggestion) => (
          <option key={suggestion} value={suggestion} />
        ))}
      </datalist>
      {error && <span class="error">{error}</span>}
    </div>
  );
}
