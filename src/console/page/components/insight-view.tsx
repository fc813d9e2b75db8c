/** Renders an insight result by its kind. */

import { otherValues } from "../../../events/insights/breakdown-values.ts";
import { decimal, duration, periodNames } from "../lib/format.ts";
import { lazyMessages } from "../messages/later.ts";
import type { FunnelTimes, RetentionRow, ShownKind, TrendResult } from "../model/insight.ts";
import type { Figure } from "../model/insight-sql.ts";
import { breakdownName } from "./breakdown-name.ts";
import { Chart } from "./chart.tsx";
import { FigureTable } from "./chart-frame.tsx";
import { ChartMarks, useFlagMarks } from "./chart-marks.tsx";
import { Funnel } from "./funnel-view.tsx";
import type { MenuItem } from "./menu.tsx";
import { Retention } from "./retention-view.tsx";

const w = lazyMessages.explore;

export function InsightView({
  kind,
  view,
  results,
  label,
  isUnfinished,
  people,
  hasNotes = false,
  actions = [],
  onPick,
  onRange,
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
  /** More entries of a chart's menu. */
  actions?: readonly MenuItem[];
  /** Shows the persons behind a number. */
  onPick?: ((figure: Figure, name: string) => void) | undefined;
  /** Called with the first and last day of a range that was selected by dragging. */
  onRange?: ((from: string, to: string) => void) | undefined;
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
      actions={actions}
      onPick={onPick}
      onRange={kind === "stickiness" ? undefined : onRange}
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
  actions,
  onPick,
  onRange,
}: {
  results: readonly TrendResult[];
  view: string;
  label: string;
  /** The numbers are of periods, not of how many periods. */
  isOfPeriods: boolean;
  isUnfinished: boolean;
  hasNotes: boolean;
  actions: readonly MenuItem[];
  onPick: ((figure: Figure, name: string) => void) | undefined;
  onRange: ((from: string, to: string) => void) | undefined;
}) {
  const marks = useFlagMarks();
  const current = results.filter(({ compare_label: period }) => period !== "previous");
  const previous = results.filter((result) => !current.includes(result));
  const getSum = (period: readonly TrendResult[]) =>
    period.reduce((sum, { aggregated_value: figure, count }) => sum + (figure ?? count), 0);
  const total = getSum(current);
  const before = getSum(previous);
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
  const getOrder = ({ action, order }: TrendResult) => action?.order ?? order ?? 0;
  const isMany = new Set(current.map(getOrder)).size > 1;
  const plainName = ({ label: name, breakdown_value: value, action, status }: TrendResult) => {
    if (status !== undefined) return w.lifecycle[status] ?? status;
    // Several formulas name themselves.
    if (!isBrokenDown || (isMany && !action)) return String(name);
    return isMany ? `${action?.name} · ${breakdownName(value)}` : breakdownName(value);
  };
  const sent = current.map(plainName);
  // Letters distinguish two series of the same event.
  const getName = (result: TrendResult) => {
    const name = plainName(result);
    const isAlone = sent.indexOf(name) === sent.lastIndexOf(name);
    return isAlone ? name : `${w.series(getOrder(result))} · ${name}`;
  };
  const getKey = (result: TrendResult) => JSON.stringify([getOrder(result), result.breakdown_value]);
  const series = [...current, ...previous].map((result) => {
    const sameAs = current.findIndex((trendResult) => getKey(trendResult) === getKey(result));
    const isBefore = previous.includes(result);
    return {
      name: isBefore ? w.nameBefore(getName(result)) : getName(result),
      values: result.data,
      ...(isBefore && sameAs >= 0 ? { sameAs, names: periodNames(result.days ?? []) } : {}),
    };
  });
  const ofStatus = (isDeleted: boolean) =>
    current.reduce(
      (sum, { status, data }) => sum + (isDeleted === (status === "dormant") ? (data.at(-1) ?? 0) : 0),
      0,
    );
  // Daily persons may overlap, and averages and formulas do not add up.
  const isFormula = current.some(({ action }) => action === null);
  const isSum = !isFormula && current.every(({ action }) => /^(total|sum)$/.test(action?.math ?? "total"));
  const figures = current.flatMap(({ data }) => data).sort((a, b) => a - b);
  const summary = results[0]!.status
    ? w.lifecycleSummary(ofStatus(false), -ofStatus(true))
    : isSum
      ? `${w.trendSummary(total)}${previous.length > 0 ? ` · ${w.before(before, total)}` : ""}`
      : w.trendSpan(figures[0]!, figures.at(-1)!);
  const pick = (position: number, index: number) => {
    const result = [...current, ...previous][index];
    const day = result?.days[position];
    if (!onPick || result === undefined || day === undefined || isRest(result.breakdown_value)) return;
    const { action, breakdown_value: breakdown, status } = result;
    const figure = {
      series: action?.order ?? 0,
      day,
      ...(breakdown === undefined ? {} : { breakdown: [breakdown].flat().map(String) }),
      ...(status ? { status } : {}),
    };
    onPick(figure, `${series[index]!.name}, ${periodNames(result.days)[position]}`);
  };
  // When comparing periods, numbers of the previous one are outside the query's range.
  const isPicked = onPick && isOfPeriods && !isFormula && previous.length === 0 ? pick : undefined;
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
      actions={[...actions, ...(hasNotes ? [marks.item] : [])]}
      onPick={isPicked}
      onSelect={onRange && ((from, to) => onRange(...daysBetween(results[0]!.days, from, to)))}
    />
  );
}

const isRest = (value: unknown) => [value].flat().includes(otherValues);

/** First and last day of the buckets between two positions. */
function daysBetween(days: readonly string[], from: number, to: number): [from: string, to: string] {
  const toDay = (position: number) => days[position]!.slice(0, 10);
  if (to + 1 >= days.length) return [toDay(from), toDay(to)];
  const last = new Date(Date.parse(`${toDay(to + 1)}T00:00Z`) - 1).toISOString().slice(0, 10);
  // The next hour may be of the same day.
  return [toDay(from), [toDay(to), last].sort().at(-1)!];
}

function FunnelTrend({ results, label }: { results: readonly TrendResult[]; label: string }) {
  return (
    <Chart
      label={label}
      summary={w.funnelTrendSummary}
      names={periodNames(results[0]!.days)}
      series={results.map(({ breakdown_value: value, data }) => ({
        name: value === undefined ? w.conversion : breakdownName(value),
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
      rowTitle={w.timeToConvert}
      names={names}
      series={[{ name: w.people, values: bins.map(([, count]) => count) }]}
      onPick={
        onPick &&
        ((position) => {
          const [from] = bins[position]!;
          onPick({ series: 0, seconds: [from, from + bins[1]![0] - bins[0]![0]] }, names[position]!);
        })
      }
    />
  );
}
