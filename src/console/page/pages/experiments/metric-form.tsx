/** Dialog for one metric: its type, events, goal and guardrail. */

import { useState } from "preact/hooks";
import { Conditions } from "../../components/conditions.tsx";
import { Checkbox, Field, Segments, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { EventField, PropertyField } from "../../components/name-fields.tsx";
import { AddButton, Button } from "../../components/primitives.tsx";
import { useForm } from "../../lib/form.ts";
import { lazyMessages } from "../../messages/later.ts";
import { freshMetric, type Metric, type MetricType, type Source, withType } from "../../model/experiments.ts";

const w = lazyMessages.experiments;

type Choices<Value extends string> = readonly (readonly [Value, string])[];
const getChoices = <Value extends string>(texts: Record<Value, string>) =>
  Object.entries(texts) as unknown as Choices<Value>;

const withoutProperty = new Set(["total", "unique_session"]);
const firstTolerance = 0.05;
const winsorized = 0.99;

export function MetricForm({
  title,
  metric: given,
  action,
  onClose,
  onSend,
}: {
  title: string;
  /** Undefined: a new one. */
  metric?: Metric | undefined;
  action: string;
  onClose: () => void;
  onSend: (metric: Metric) => Promise<void>;
}) {
  const [metric, setMetric] = useState<Metric>(given ?? freshMetric);
  const change = (changes: Partial<Metric>) => setMetric({ ...metric, ...changes });
  const guardrail = metric.guardrail ?? undefined;
  const form = useForm({}, () => onSend({ ...metric, name: metric.name?.trim() ?? "" }));
  return (
    <FormDialog title={title} size="large" form={form} action={action} onCancel={onClose} onClose={onClose}>
      <Field label={w.name} value={metric.name ?? ""} onInput={(name) => change({ name })} autofocus />
      <div class="row bottom">
        <Select
          label={w.type}
          value={metric.metric_type}
          choices={getChoices<MetricType>(w.types)}
          onChange={(type) => setMetric(withType(metric, type))}
        />
        <Select
          label={w.goal}
          value={metric.goal}
          choices={getChoices(w.goals)}
          onChange={(goal) => change({ goal })}
        />
      </div>
      <p class="help">{w.typeHelp[metric.metric_type]}</p>
      <Events metric={metric} onChange={change} />
      <WindowFields metric={metric} onChange={change} />
      {metric.metric_type === "mean" && (
        <Checkbox
          label={w.winsorize}
          isOn={metric.upper_bound_percentile !== undefined}
          onChange={(isOn) => {
            const { upper_bound_percentile: _, ...rest } = metric;
            setMetric(isOn ? { ...rest, upper_bound_percentile: winsorized } : (rest as Metric));
          }}
        />
      )}
      <Checkbox
        label={w.guardrail}
        isOn={guardrail !== undefined}
        onChange={(isOn) =>
          change({ guardrail: isOn ? { tolerance: firstTolerance, action: "warn" } : null })
        }
      />
      {guardrail && (
        <div class="row bottom">
          <Field
            label={w.tolerance}
            type="number"
            suffix="%"
            min={0}
            max={99}
            step="any"
            isRequired
            value={String(Math.round(guardrail.tolerance * 10_000) / 100)}
            onInput={(text) => change({ guardrail: { ...guardrail, tolerance: Number(text) / 100 } })}
          />
          <Select
            label={w.onViolation}
            value={guardrail.action}
            choices={getChoices(w.guardrailActions)}
            onChange={(next) => change({ guardrail: { ...guardrail, action: next } })}
          />
        </div>
      )}
    </FormDialog>
  );
}

interface PartProps {
  metric: Metric;
  onChange: (changes: Partial<Metric>) => void;
}

/** The sources of the metric, by its type. */
function Events({ metric, onChange }: PartProps) {
  const { metric_type: type, series = [] } = metric;
  if (type === "mean")
    return (
      <SourceFields
        label={w.event}
        source={metric.source!}
        hasMath
        onChange={(source) => onChange({ source })}
      />
    );
  if (type === "ratio")
    return (
      <>
        {(["numerator", "denominator"] as const).map((name) => (
          <SourceFields
            key={name}
            label={w.parts[name]}
            source={metric[name]!}
            hasMath
            onChange={(source) => onChange({ [name]: source })}
          />
        ))}
      </>
    );
  if (type === "retention")
    return (
      <>
        {(["start_event", "completion_event"] as const).map((name) => (
          <SourceFields
            key={name}
            label={w.parts[name]}
            source={metric[name]!}
            onChange={(source) => onChange({ [name]: source })}
          />
        ))}
        <div class="row bottom">
          {(["retention_window_start", "retention_window_end"] as const).map((name) => (
            <Field
              key={name}
              label={w.parts[name]}
              type="number"
              min={0}
              isRequired
              value={String(metric[name] ?? "")}
              onInput={(text) => onChange({ [name]: Number(text) })}
            />
          ))}
          <Select
            label={w.unit}
            value={(metric.retention_window_unit ?? "day") as keyof typeof w.units}
            choices={getChoices(w.units)}
            onChange={(unit) => onChange({ retention_window_unit: unit })}
          />
        </div>
      </>
    );
  const put = (position: number, source: Source) =>
    onChange({ series: series.map((other, index) => (index === position ? source : other)) });
  return (
    <>
      {series.map((source, position) => (
        <SourceFields
          key={position}
          label={series.length === 1 ? w.event : w.step(position + 1)}
          source={source}
          onChange={(changed) => put(position, changed)}
          onRemove={
            series.length === 1
              ? undefined
              : () => onChange({ series: series.filter((_, index) => index !== position) })
          }
        />
      ))}
      <div class="row">
        <AddButton onAdd={() => onChange({ series: [...series, { kind: "EventsNode", event: "" }] })}>
          {w.addStep}
        </AddButton>
        {series.length > 1 && (
          <Segments
            label={w.order}
            value={metric.funnel_order_type ?? "ordered"}
            choices={getChoices(w.orders)}
            onChange={(order) => onChange({ funnel_order_type: order })}
          />
        )}
      </div>
    </>
  );
}

function SourceFields({
  label,
  source,
  hasMath,
  onChange,
  onRemove,
}: {
  label: string;
  source: Source;
  hasMath?: boolean;
  onChange: (source: Source) => void;
  onRemove?: (() => void) | undefined;
}) {
  const math = source.math ?? "total";
  return (
    <fieldset class="source stack tight">
      <legend class="unseen">{label}</legend>
      <div class="row bottom">
        <EventField
          label={label}
          class="grow"
          value={source.event}
          isRequired
          onInput={(event) => onChange({ ...source, event })}
        />
        {hasMath && (
          <Select
            label={w.math}
            value={math as keyof typeof w.maths}
            choices={getChoices(w.maths)}
            onChange={(next) => onChange({ ...source, math: next })}
          />
        )}
        {hasMath && !withoutProperty.has(math) && (
          <PropertyField
            label={w.mathProperty}
            value={source.math_property ?? ""}
            isRequired
            onInput={(name) => onChange({ ...source, math_property: name })}
          />
        )}
        {onRemove && <Button kind="quiet" icon="trash" label={w.removePart(label)} onClick={onRemove} />}
      </div>
      <Conditions
        conditions={source.properties ?? []}
        kinds={["event", "person"]}
        addLabel={w.addFilter}
        isPlain
        onChange={(next) => onChange({ ...source, properties: next })}
      />
    </fieldset>
  );
}

/** How long after the exposure events count. */
function WindowFields({ metric, onChange }: PartProps) {
  return (
    <div class="row bottom">
      <Field
        label={w.window}
        type="number"
        min={1}
        placeholder={w.noWindow}
        value={metric.conversion_window === undefined ? "" : String(metric.conversion_window)}
        onInput={(text) =>
          onChange({ conversion_window: text === "" ? undefined : Number(text) } as Partial<Metric>)
        }
      />
      <Select
        label={w.unit}
        value={(metric.conversion_window_unit ?? "day") as keyof typeof w.units}
        choices={getChoices(w.units)}
        onChange={(unit) => onChange({ conversion_window_unit: unit })}
      />
    </div>
  );
}
