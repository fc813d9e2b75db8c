/** Renders an insight result by its kind. */

import { noValue, otherValues } from "../../../events/insights/breakdown-values.ts";
import { decimal, duration, number, percent, periodNames } from "../lib/format.ts";
import { words } from "../messages/index.ts";
import type { FunnelStep, FunnelTimes, RetentionRow, ShownKind, TrendResult } from "../model/insight.ts";
import type { Figure } from "../model/insight-sql-parts.ts";
import { Chart } from "./chart.tsx";
import { FigureFrame, FigureTable, seriesClass } from "./chart-frame.tsx";
import { ChartMarks, useFlagMarks } from "./chart-marks.tsx";

const w = words.explore;
/** Percentage of the series' color behind the highest cell: text stays legible on it. */
const heatMost = 45;

export function InsightView({
  kind,
  view,
  results,
  label,
  isUnfinished,
  people,
  hasNotes = false,
  onPick,
}: {
  kind: ShownKind;
  view: string;
  results: unknown;
  label: string;
  /** The last bucket is still in progress. */
  isUnfinished?: boolean;
  /** Distinct persons of a retention, once counted. */
  people?: number | undefined;
  /** Shows the notes of users on charts over time, and offers to add some. */
  hasNotes?: boolean;
  /** Shows the persons behind a number. */
  onPick?: ((figure: Figure, name: string) => void) | undefined;
}) {
  if (kind === "funnel") {
    if (!Array.isArray(results))
      return <Times results={results as FunnelTimes} label={label} onPick={onPick} />;
    const [first] = results as Partial<TrendResult>[];
    if (first?.data) return <FunnelTrend results={results as TrendResult[]} label={label} />;
    return <Funnel results={results} label={label} onPick={onPick} />;
  }
  if (kind === "retention")
    return <Retention rows={results as RetentionRow[]} label={label} people={people} onPick={onPick} />;
  return (
    <Trend
      results={results as TrendResult[]}
      view={kind === "lifecycle" || kind === "stickiness" ? "bar" : view}
      label={label}
      isOfPeriods={kind !== "stickiness"}
      isUnfinished={kind !== "stickiness" && (isUnfinished ?? true)}
      hasNotes={hasNotes && kind !== "stickiness"}
      onPick={onPick}
    />
  );
}

function Trend({
  results,
  view,
  label,
  isOfPeriods,
  isUnfinished,
  hasNotes,
  onPick,
}: {
  results: readonly TrendResult[];
  view: string;
  label: string;
  /** The numbers are of periods, not of how many periods. */
  isOfPeriods: boolean;
  isUnfinished: boolean;
  hasNotes: boolean;
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
  const marks = useFlagMarks();
  const current = results.filter(({ compare_label: period }) => period !== "previous");
  const previous = results.filter((result) => !current.includes(result));
  const sumOf = (period: readonly TrendResult[]) =>
    period.reduce((sum, { aggregated_value: figure, count }) => sum + (figure ?? count), 0);
  const [total, before] = [sumOf(current), sumOf(previous)];
  if (view === "number") {
    return (
      <p class="big-number">
        {decimal(total)}
        {previous.length > 0 && <span class="sub">{w.before(before, total)}</span>}
      </p>
    );
  }
  if (results.every(({ data }) => data.every((value) => value === 0))) return <p class="muted">{w.empty}</p>;
  const names = isOfPeriods ? periodNames(results[0]!.days) : results[0]!.labels;
  const isBrokenDown = current.some(({ breakdown_value: value }) => value !== undefined);
  const isMany = new Set(current.map(({ action }) => action?.order)).size > 1;
  const plainName = ({ label: name, breakdown_value: value, action, status }: TrendResult) => {
    if (status !== undefined) return w.lifecycle[status] ?? status;
    const own = value === otherValues ? w.otherValues : isNone(value) ? w.noValue : String(name);
    return isBrokenDown && isMany ? `${action?.name} · ${own}` : own;
  };
  const sent = current.map(plainName);
  // Letters distinguish two series of the same event.
  const nameOf = (result: TrendResult) => {
    const name = plainName(result);
    const isAlone = sent.indexOf(name) === sent.lastIndexOf(name);
    return isAlone ? name : `${w.series(result.action?.order ?? 0)} · ${name}`;
  };
  const keyOf = (result: TrendResult) => `${result.action?.order} ${result.breakdown_value}`;
  const series = [...current, ...previous].map((result) => {
    const sameAs = current.findIndex((one) => keyOf(one) === keyOf(result));
    const isBefore = previous.includes(result);
    return {
      name: isBefore ? w.nameBefore(nameOf(result)) : nameOf(result),
      values: result.data,
      ...(isBefore && sameAs >= 0 ? { sameAs, names: periodNames(result.days ?? []) } : {}),
    };
  });
  const ofStatus = (isGone: boolean) =>
    current.reduce(
      (sum, { status, data }) => sum + (isGone === (status === "dormant") ? (data.at(-1) ?? 0) : 0),
      0,
    );
  // Daily persons may overlap, and averages do not add up.
  const isSum = current.every(({ action }) => /^(total|sum)$/.test(action?.math ?? "total"));
  const figures = current.flatMap(({ data }) => data).sort((a, b) => a - b);
  const summary = results[0]!.status
    ? w.lifecycleSummary(ofStatus(false), -ofStatus(true))
    : isSum
      ? `${w.trendSummary(total)}${previous.length > 0 ? ` · ${w.before(before, total)}` : ""}`
      : w.trendSpan(figures[0]!, figures.at(-1)!);
  const pick = (position: number, index: number) => {
    const result = [...current, ...previous][index];
    const day = result?.days[position];
    if (!onPick || result === undefined || day === undefined || result.breakdown_value === otherValues)
      return;
    const { action, breakdown_value: breakdown, status } = result;
    const figure = { series: action?.order ?? 0, day, breakdown, ...(status ? { status } : {}) };
    onPick(figure, `${series[index]!.name}, ${periodNames(result.days)[position]}`);
  };
  // When comparing periods, numbers of the previous one are outside the query's range.
  const isPicked = onPick && isOfPeriods && previous.length === 0 ? pick : undefined;
  if (view === "table") return <FigureTable label={label} names={names} series={series} onPick={isPicked} />;
  return (
    <Chart
      label={label}
      summary={summary}
      names={names}
      series={series}
      shape={view === "bar" ? "bars" : "line"}
      hasTotals={isSum && results[0]!.status === undefined}
      isLastUnfinished={isUnfinished}
      below={
        hasNotes && <ChartMarks buckets={results[0]!.days} names={names} hasFlagChanges={marks.isShown} />
      }
      actions={hasNotes ? [marks.item] : []}
      onPick={isPicked}
    />
  );
}

/** Whether a series is for events without the breakdown's property. */
const isNone = (value: unknown) => value === noValue || value === null;

function FunnelTrend({ results, label }: { results: readonly TrendResult[]; label: string }) {
  return (
    <Chart
      label={label}
      summary={w.funnelTrendSummary}
      names={periodNames(results[0]!.days)}
      series={results.map(({ breakdown_value: value, data }) => ({
        name: value === undefined ? w.gotThrough : isNone(value) ? w.noValue : String(value),
        values: data,
      }))}
    />
  );
}

function Times({
  results: { bins, average_conversion_time: average },
  label,
  onPick,
}: {
  results: FunnelTimes;
  label: string;
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
  if (average === null) return <p class="muted">{w.empty}</p>;
  const people = bins.reduce((sum, [, count]) => sum + count, 0);
  const names = bins.map(([from]) => duration(from));
  return (
    <Chart
      shape="bars"
      label={label}
      summary={w.timesSummary(people, duration(average))}
      rowTitle={w.took}
      names={names}
      series={[{ name: w.people, values: bins.map(([, count]) => count) }]}
      onPick={
        onPick &&
        ((place) => {
          const [from] = bins[place]!;
          onPick({ series: 0, seconds: [from, from + bins[1]![0] - bins[0]![0]] }, names[place]!);
        })
      }
    />
  );
}

function Funnel({
  results,
  label,
  onPick,
}: {
  results: readonly unknown[];
  label: string;
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
  const groups = (Array.isArray(results[0]) ? results : [results]) as FunnelStep[][];
  return (
    <div class="stack">
      {groups.map((steps, place) => {
        const first = steps[0]?.count ?? 0;
        const name = steps[0]?.breakdown_value;
        return (
          <figure key={place} class="chart">
            <figcaption>
              {name !== undefined && <b>{isNone(name) ? w.noValue : String(name)} · </b>}
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
                        {onPick && step.count > 0 ? (
                          <button
                            type="button"
                            class="figure"
                            onClick={() =>
                              onPick(
                                { series: index, ...(name === undefined ? {} : { breakdown: String(name) }) },
                                step.custom_name || step.name,
                              )
                            }
                          >
                            {number(step.count)}
                          </button>
                        ) : (
                          number(step.count)
                        )}
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

function Retention({
  rows,
  label,
  people,
  onPick,
}: {
  rows: readonly RetentionRow[];
  label: string;
  people: number | undefined;
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
  const width = Math.max(0, ...rows.map(({ values }) => values.length));
  const shareOf = ({ values }: RetentionRow, place: number) =>
    values[0]?.count ? (values[place]?.count ?? 0) / values[0].count : 0;
  // The first column is always 100 %: the scale ends at the highest cell after it.
  const most = Math.max(
    0,
    ...rows.flatMap((row) => row.values.slice(1).map((_, place) => shareOf(row, place + 1))),
  );
  return (
    <figure class="chart">
      {people !== undefined && <figcaption>{w.retentionSummary(people)}</figcaption>}
      <FigureFrame
        label={label}
        shape="heat"
        heads={[
          w.began,
          w.people,
          ...Array.from({ length: width }, (_, place) => rows[place]?.label ?? place),
        ]}
      >
        {rows.map((row) => {
          const { label: name, date, values } = row;
          const first = values[0]?.count ?? 0;
          return (
            <tr key={date ?? name}>
              <th scope="row">{date ? periodNames([date.slice(0, 10)])[0] : name}</th>
              <td>{number(first)}</td>
              {values.map(({ count }, place) => {
                const share = shareOf(row, place);
                if (first === 0) return <td key={place} class="nobody" />;
                const depth = place === 0 ? 0 : most === 0 ? 0 : Math.round((share / most) * heatMost);
                return (
                  <td
                    key={place}
                    style={{ background: `color-mix(in srgb, var(--series-1) ${depth}%, transparent)` }}
                    title={number(count)}
                  >
                    {onPick && count > 0 ? (
                      <button
                        type="button"
                        class="figure"
                        onClick={() =>
                          onPick(
                            { series: 0, day: date.slice(0, 19), later: place },
                            w.retentionCell(date.slice(0, 10), place),
                          )
                        }
                      >
                        {percent(share)}
                      </button>
                    ) : (
                      percent(share)
                    )}
                  </td>
                );
              })}
            </tr>
          );
        })}
      </FigureFrame>
    </figure>
  );
}
