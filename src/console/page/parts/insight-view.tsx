/** The answer to a question, drawn as its kind asks for. */

import { number, percent } from "../lib/format.ts";
import type { FunnelStep, InsightKind, RetentionRow, TrendResult } from "../model/insight.ts";
import { words } from "../words/index.ts";
import { StackedBars, seriesClass } from "./bars.tsx";
import { FigureTable, LineChart } from "./line-chart.tsx";

const w = words.explore;

export function InsightView({
  kind,
  view,
  results,
  label,
  isUnfinished,
  onPick,
}: {
  kind: InsightKind;
  view: string;
  results: readonly unknown[];
  label: string;
  /** The last bucket goes on. */
  isUnfinished?: boolean;
  onPick?: (place: number) => void;
}) {
  if (kind === "funnel") return <Funnel results={results} label={label} />;
  if (kind === "retention") return <Retention rows={results as RetentionRow[]} label={label} />;
  return (
    <Trend
      results={results as TrendResult[]}
      view={kind === "lifecycle" ? "bar" : view}
      label={label}
      isUnfinished={isUnfinished ?? true}
      {...(onPick ? { onPick } : {})}
    />
  );
}

function Trend({
  results,
  view,
  label,
  isUnfinished,
  onPick,
}: {
  results: readonly TrendResult[];
  view: string;
  label: string;
  isUnfinished: boolean;
  onPick?: (place: number) => void;
}) {
  const total = results.reduce((sum, { count }) => sum + count, 0);
  const names = results[0]?.labels ?? [];
  if (view === "number") {
    return (
      <p class="big-number" role="img" aria-label={`${label}: ${number(total)}`}>
        {number(total)}
      </p>
    );
  }
  if (total === 0 && results.every(({ data }) => data.every((value) => value === 0))) {
    return <p class="muted">{w.empty}</p>;
  }
  const series = results.map(({ label: name, data }) => ({ name: String(name), values: data }));
  const summary = w.trendSummary(total, results.length);
  if (view === "table") return <FigureTable label={label} names={names} series={series} />;
  if (view === "bar") {
    return (
      <StackedBars
        label={label}
        summary={summary}
        rowTitle={label}
        rows={names.map((name, place) => ({
          name,
          values: Object.fromEntries(series.map((one) => [one.name, Math.max(0, one.values[place] ?? 0)])),
        }))}
      />
    );
  }
  return (
    <LineChart
      label={label}
      summary={summary}
      names={names}
      series={series}
      isLastUnfinished={isUnfinished}
      {...(onPick ? { onPick } : {})}
    />
  );
}

function Funnel({ results, label }: { results: readonly unknown[]; label: string }) {
  const groups = (Array.isArray(results[0]) ? results : [results]) as FunnelStep[][];
  return (
    <div class="stack">
      {groups.map((steps, place) => {
        const first = steps[0]?.count ?? 0;
        const name = steps[0]?.breakdown_value;
        return (
          <figure key={place} class="chart">
            <figcaption>
              {name !== undefined && <b>{String(name)} · </b>}
              {w.funnelSummary(first, steps.at(-1)?.count ?? 0)}
            </figcaption>
            <table class="funnel" aria-label={label}>
              <tbody>
                {steps.map((step, index) => {
                  const share = first === 0 ? 0 : step.count / first;
                  const before = steps[index - 1]?.count ?? 0;
                  return (
                    <tr key={step.order}>
                      <th scope="row">{step.custom_name || step.name}</th>
                      <td class="funnel-bar">
                        <span class={seriesClass(place)} style={{ width: `${share * 100}%` }} />
                      </td>
                      <td class="number">
                        {number(step.count)}
                        <span class="sub">
                          {index === 0 ? " " : w.fromBefore(percent(before === 0 ? 0 : step.count / before))}
                        </span>
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </figure>
        );
      })}
    </div>
  );
}

function Retention({ rows, label }: { rows: readonly RetentionRow[]; label: string }) {
  const width = Math.max(0, ...rows.map(({ values }) => values.length));
  const began = rows.reduce((sum, { values }) => sum + (values[0]?.count ?? 0), 0);
  return (
    <figure class="chart">
      <figcaption>{w.retentionSummary(began)}</figcaption>
      <div class="table-scroll" role="region" aria-label={label} tabIndex={0}>
        <table class="figures heat">
          <thead>
            <tr>
              <th scope="col">{w.began}</th>
              <th scope="col">{w.people}</th>
              {Array.from({ length: width }, (_, place) => (
                <th key={place} scope="col">
                  {place}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ label: name, date, values }) => {
              const first = values[0]?.count ?? 0;
              return (
                <tr key={date ?? name}>
                  <th scope="row">{date ? date.slice(0, 10) : name}</th>
                  <td>{number(first)}</td>
                  {values.map(({ count }, place) => {
                    const share = first === 0 ? 0 : count / first;
                    return (
                      <td
                        key={place}
                        style={{
                          background: `color-mix(in srgb, var(--accent) ${Math.round(share * 45)}%, transparent)`,
                        }}
                        title={number(count)}
                      >
                        {percent(share)}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </figure>
  );
}
