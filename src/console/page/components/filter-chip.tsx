/** One filter of a list: its name and value in a pill, with a button that removes it. */

import { useId } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Button } from "./primitives.tsx";

export function FilterChip<Value extends string>({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  /** Empty: not filtered. */
  value: Value | "";
  choices: readonly (readonly [Value | "", string])[];
  onChange: (value: Value | undefined) => void;
}) {
  const id = useId();
  const shown = choices.find(([choice]) => choice === value)?.[1] ?? value;
  return (
    <span class={value === "" ? "filter-chip" : "filter-chip set"}>
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={(event) => onChange((event.currentTarget.value || undefined) as Value)}
      >
        {choices.map(([choice, text]) => (
          <option key={choice} value={choice} selected={choice === value}>
            {text}
          </option>
        ))}
      </select>
      {value !== "" && (
        <Button
          kind="quiet"
          icon="close"
          label={messages.frame.removeFilter(shown)}
          onClick={() => onChange(undefined)}
        />
      )}
    </span>
  );
}
