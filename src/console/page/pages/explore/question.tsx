/** Form of an insight query. */

import { Conditions } from "../../components/conditions.tsx";
import { Checkbox, Field, Segments, Select } from "../../components/fields.tsx";
import { EventField, PropertyField } from "../../components/name-fields.tsx";
import { AddButton, Button } from "../../components/primitives.tsx";
import { periodNames } from "../../lib/format.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  type InsightDraft,
  isFormulaWrong,
  isOfProperty,
  parseDays,
  type Series,
} from "../../model/insight.ts";

const w = lazyMessages.explore;
const seriesMax = 10;

const emptyCondition = { key: "", type: "event", operator: "exact", value: [] };

const entries = (names: Record<string, string>) => Object.entries(names);

export function QuestionFields({
  question,
  onChange,
}: {
  question: InsightDraft;
  onChange: (changes: Partial<InsightDraft>) => void;
}) {
  const { kind, series } = question;
  const isFunnel = kind === "funnel";
  const put = (position: number, changed: Series) =>
    onChange({ series: series.map((other, index) => (index === position ? changed : other)) });
  return (
    <section class="card stack query-fields" aria-label={w.query}>
      {kind === "retention" ? (
        <div class="columns">
          <EventField
            placeholder={w.allEvents}
            label={w.target}
            value={question.target}
            onInput={(target) => onChange({ target })}
          />
          <EventField
            placeholder={w.allEvents}
            label={w.returning}
            value={question.returning}
            onInput={(returning) => onChange({ returning })}
          />
          <Select
            label={w.period}
            value={question.period}
            choices={entries(w.periods)}
            onChange={(period) => onChange({ period })}
          />
          <Segments
            label={w.cohort}
            value={question.cohort}
            choices={entries(w.cohortKinds)}
            onChange={(cohort) => onChange({ cohort })}
          />
        </div>
      ) : (
        <div class="stack tight">
          {(kind === "lifecycle" ? series.slice(0, 1) : series).map((item, position) => {
            const name = isFunnel ? w.step(position) : w.series(position);
            return (
              <div key={position} class="stack tight">
                <div class="row bottom">
                  <span class="label series-name">{name}</span>
                  <div class="grow">
                    <EventField
                      placeholder={w.allEvents}
                      label={`${name}: ${w.event}`}
                      isLabelHidden
                      value={item.event}
                      onInput={(event) => put(position, { ...item, event })}
                    />
                  </div>
                  {kind === "trends" && (
                    <Select
                      label={`${name}: ${w.math}`}
                      isLabelHidden
                      value={item.math}
                      choices={entries(w.maths)}
                      onChange={(math) => put(position, { ...item, math })}
                    />
                  )}
                  {kind === "trends" && isOfProperty(item.math) && (
                    <PropertyField
                      placeholder={w.property}
                      label={`${name}: ${w.property}`}
                      isLabelHidden
                      value={item.math_property ?? ""}
                      onInput={(property) => put(position, { ...item, math_property: property })}
                    />
                  )}
                  {!item.properties?.length && (
                    <Button
                      kind="quiet"
                      icon="filter"
                      label={w.addFilterTo(name)}
                      onClick={() => put(position, { ...item, properties: [emptyCondition] })}
                    />
                  )}
                  <Button
                    kind="quiet"
                    icon="trash"
                    label={w.removeSeries(name)}
                    isDisabled={series.length === 1}
                    onClick={() => onChange({ series: series.filter((_, index) => index !== position) })}
                  />
                </div>
                {item.properties && item.properties.length > 0 && (
                  <div class="series-filters">
                    <Conditions
                      conditions={item.properties}
                      onChange={(changed) => put(position, { ...item, properties: changed })}
                      kinds={["event", "person"]}
                      addLabel={w.addFilter}
                      isPlain
                    />
                  </div>
                )}
              </div>
            );
          })}
          {kind !== "lifecycle" && series.length < seriesMax && (
            <div>
              <AddButton onAdd={() => onChange({ series: [...series, { event: "", math: "total" }] })}>
                {isFunnel ? w.addStep : w.addSeries}
              </AddButton>
            </div>
          )}
        </div>
      )}
      {kind === "trends" && (
        <Field
          label={w.formula}
          placeholder={w.formulaExample}
          value={question.formula}
          onInput={(formula) => onChange({ formula })}
          error={isFormulaWrong(question) ? w.formulaWrong(w.series(series.length - 1)) : undefined}
        />
      )}
      <div class="stack tight">
        <span class="label">{w.filters}</span>
        <Conditions
          conditions={question.properties}
          onChange={(changed) => onChange({ properties: changed })}
          kinds={["event", "person"]}
          addLabel={w.addFilter}
          isPlain
        />
      </div>
      <div class="row bottom">
        {kind !== "retention" && (
          <Select
            label={w.range}
            value={question.range}
            choices={[...entries(w.ranges), ...chosenDays(question.range)]}
            onChange={(range) => onChange({ range })}
          />
        )}
        {(kind === "trends" || kind === "lifecycle" || (isFunnel && question.shape === "trends")) && (
          <Select
            label={w.interval}
            value={question.interval}
            choices={entries(w.intervals)}
            onChange={(interval) => onChange({ interval })}
          />
        )}
        {isFunnel && (
          <Field
            label={w.window}
            type="number"
            min={1}
            max={365}
            value={String(question.window)}
            onInput={(text) => {
              const days = Number(text);
              if (days >= 1 && days <= 365) onChange({ window: Math.round(days) });
            }}
          />
        )}
        {isFunnel && (
          <Select
            label={w.order}
            value={question.order}
            choices={entries(w.orders)}
            onChange={(order) => onChange({ order })}
          />
        )}
        {(kind === "trends" || (isFunnel && question.shape !== "time_to_convert")) && (
          <PropertyField
            placeholder={w.noBreakdown}
            label={w.breakdown}
            value={question.breakdown}
            onInput={(breakdown) => onChange({ breakdown })}
          />
        )}
        {kind === "trends" && (question.breakdown || question.secondBreakdown) && (
          <PropertyField
            placeholder={w.noBreakdown}
            label={w.secondBreakdown}
            value={question.secondBreakdown}
            onInput={(secondBreakdown) => onChange({ secondBreakdown })}
          />
        )}
        {kind === "trends" && (
          <Segments
            label={w.view}
            value={question.view}
            choices={entries(w.views)}
            onChange={(view) => onChange({ view })}
          />
        )}
        {isFunnel && (
          <Segments
            label={w.shape}
            value={question.shape}
            choices={entries(w.shapes)}
            onChange={(shape) => onChange({ shape })}
          />
        )}
        {kind === "trends" && question.range !== "all" && (
          <Checkbox label={w.compare} isOn={question.compare} onChange={(compare) => onChange({ compare })} />
        )}
      </div>
    </section>
  );
}

/** A range that was selected on a chart. */
function chosenDays(range: string): [string, string][] {
  const days = parseDays(range);
  if (!days) return [];
  const [from = "", to = ""] = periodNames([days.from, days.to]);
  return [[range, w.days(from, to)]];
}
