/** Second step of an import: the first rows of the file, and which of its columns are the fields of events. */

import { FigureFrame } from "../../components/chart-frame.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { AddButton, Button } from "../../components/primitives.tsx";
import { formatValue } from "../../lib/format.ts";
import type { Preview } from "../../lib/preview.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance.imports;
const cellMax = 60;

/** A field of events, and the column, alternatives or constant that it is read from; as in `--map`. */
export interface ColumnRule {
  target: string;
  source: string;
}

/** Fields that every event has. */
export const requiredFields: readonly ColumnRule[] = ["event", "distinct_id", "timestamp"].map((target) => ({
  target,
  source: "",
}));
const otherFields = ["uuid", "properties", "$set", "$set_once"];

/** Rules as `--map` has them; names that are no fields of events are properties. */
export function mapRules(rules: readonly ColumnRule[]): string[] {
  const isField = (name: string) =>
    otherFields.includes(name) || requiredFields.some(({ target }) => target === name);
  return rules
    .map(({ target, source }) => ({ target: target.trim(), source: source.trim() }))
    .filter(({ target, source }) => target !== "" && source !== "")
    .map(({ target, source }) => `${isField(target) ? target : `properties.${target}`}=${source}`);
}

export function ImportColumns({
  preview,
  rules,
  onChange,
}: {
  preview: Preview | undefined;
  rules: readonly ColumnRule[];
  onChange: (rules: readonly ColumnRule[]) => void;
}) {
  const columns = (preview?.columns ?? []).map((value) => ({ value, group: w.columns }));
  const change = (index: number, changes: Partial<ColumnRule>) =>
    onChange(rules.map((rule, at) => (at === index ? { ...rule, ...changes } : rule)));
  return (
    <>
      {preview === undefined ? (
        <p class="help">{w.noPreview}</p>
      ) : (
        <>
          <p class="label">{w.preview(preview.rows.length)}</p>
          <div class="import-preview">
            <FigureFrame label={w.previewTable} shape="wide" heads={preview.columns}>
              {preview.rows.map((row, position) => (
                <tr key={position}>
                  {preview.columns.map((name) => (
                    <td key={name} class="text">
                      {row[name] === undefined ? "" : formatValue(row[name]).slice(0, cellMax)}
                    </td>
                  ))}
                </tr>
              ))}
            </FigureFrame>
          </div>
        </>
      )}
      <fieldset class="stack tight">
        <legend class="label">{w.mapping}</legend>
        <div class="row bottom">
          {rules.slice(0, requiredFields.length).map(({ target, source }, index) => (
            <Combobox
              key={target}
              label={target}
              value={source}
              options={columns}
              placeholder={w.automatic}
              onInput={(value) => change(index, { source: value })}
            />
          ))}
        </div>
        {rules.slice(requiredFields.length).map(({ target, source }, position) => {
          const index = requiredFields.length + position;
          return (
            <div key={position} class="row bottom">
              <Combobox
                label={w.field}
                value={target}
                options={otherFields.map((value) => ({ value, group: w.fields }))}
                onInput={(value) => change(index, { target: value })}
              />
              <Combobox
                label={w.column}
                value={source}
                options={columns}
                onInput={(value) => change(index, { source: value })}
              />
              <Button
                kind="quiet"
                icon="trash"
                label={w.removeField(target)}
                onClick={() => onChange(rules.toSpliced(index, 1))}
              />
            </div>
          );
        })}
        <div>
          <AddButton onAdd={() => onChange([...rules, { target: "", source: "" }])}>{w.addField}</AddButton>
        </div>
        <p class="help">{w.mappingHelp}</p>
      </fieldset>
    </>
  );
}
