/** The answer to a question, drawn as its kind asks for. */

import { otherValues } from "../../../events/insights/breakdown-values.ts";
import { decimal, duration, number, percent, periodNames } from "../lib/format.ts";
import type { FunnelStep, FunnelTimes, InsightKind, RetentionRow, TrendResult } from "../model/insight.ts";
import type { Figure } from "../model/insight-sql.ts";
import { words } from "../words/index.ts";
import { StackedBars } from "./bars.tsx";
import { FigureFrame, FigureTable, seriesClass } from "./figures.tsx";
import { LineChart } from "./line-chart.tsx";

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
  results: unknown;
  label: string;
  /** The last bucket goes on. */
  isUnfinished?: boolean;
  /** Shows who is behind a figure. */
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
    return <Retention rows={results as RetentionRow[]} label={label} onPick={onPick} />;
  return (
    <Trend
      results={results as TrendResult[]}
      view={kind === "lifecycle" ? "bar" : view}
      label={label}
      isUnfinished={isUnfinished ?? true}
      onPick={onPick}
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
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
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
  const names = periodNames(results[0]!.days);
  const isBrokenDown = current.some(({ breakdown_value: value }) => value !== undefined);
  const isMany = new Set(current.map(({ action }) => action?.order)).size > 1;
  const plainName = ({ label: name, breakdown_value: value, action, status }: TrendResult) => {
    if (status !== undefined) return w.lifecycle[status] ?? status;
    const own = value === otherValues ? w.otherValues : String(name);
    return isBrokenDown && isMany ? `${action?.name} · ${own}` : own;
  };
  const given = current.map(plainName);
  // Two series of one event are told apart by their letters.
  const nameOf = (result: TrendResult) => {
    const name = plainName(result);
    const isAlone = given.indexOf(name) === given.lastIndexOf(name);
    return isAlone ? name : `${w.series(result.action?.order ?? 0)} · ${name}`;
  };
  const keyOf = (result: TrendResult) => `${result.action?.order} ${result.breakdown_value}`;
  const series = [...current, ...previous].map((result) => {
    const sameAs = current.findIndex((one) => keyOf(one) === keyOf(result));
    const isBefore = previous.includes(result);
    return {
      name: isBefore ? w.nameBefore(nameOf(result)) : nameOf(result),
      values: result.data,
      ...(isBefore && sameAs >= 0 ? { sameAs } : {}),
    };
  });
  const ofStatus = (isGone: boolean) =>
    current.reduce(
      (sum, { status, data }) => sum + (isGone === (status === "dormant") ? (data.at(-1) ?? 0) : 0),
      0,
    );
  // Persons of two days may be the same, and averages add up to nothing.
  const isSum = current.every(({ action }) => /^(total|sum)$/.test(action?.math ?? "total"));
  const figures = current.flatMap(({ data }) => data).sort((a, b) => a - b);
  const summary = results[0]!.status
    ? w.lifecycleSummary(ofStatus(false), -ofStatus(true))
    : isSum
      ? `${w.trendSummary(total, current.length)}${previous.length > 0 ? ` ${w.before(before, total)}` : ""}`
      : w.trendSpan(figures[0]!, figures.at(-1)!);
  const pick = (place: number, index: number) => {
    const result = [...current, ...previous][index];
    const day = result?.days[place];
    if (!onPick || result === undefined || day === undefined || result.breakdown_value === otherValues)
      return;
    const { action, breakdown_value: breakdown, status } = result;
    const figure = { series: action?.order ?? 0, day, breakdown, ...(status ? { status } : {}) };
    onPick(figure, `${series[index]!.name}, ${periodNames(result.days)[place]}`);
  };
  // Where two periods are compared, a figure of the one before is out of the question's bounds.
  const isPicked = onPick && previous.length === 0 ? pick : undefined;
  if (view === "table") return <FigureTable label={label} names={names} series={series} onPick={isPicked} />;
  if (view === "bar") {
    return (
      <StackedBars
        label={label}
        summary={summary}
        rowTitle={words.frame.period}
        order={series.map(({ name }) => name)}
        rows={names.map((name, place) => ({
          name,
          values: Object.fromEntries(series.map((one) => [one.name, one.values[place] ?? 0])),
        }))}
        onPick={
          isPicked &&
          ((place, name) =>
            isPicked(
              place,
              series.findIndex((one) => one.name === name),
            ))
        }
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
      onPick={isPicked}
    />
  );
}

function FunnelTrend({ results, label }: { results: readonly TrendResult[]; label: string }) {
  return (
    <LineChart
      label={label}
      summary={w.funnelTrendSummary}
      names={periodNames(results[0]!.days)}
      series={results.map(({ breakdown_value: value, data }) => ({
        name: value === undefined ? w.gotThrough : String(value),
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
  const rows = bins.map(([from, count]) => ({ name: duration(from), values: { [w.people]: count } }));
  return (
    <StackedBars
      label={label}
      summary={w.timesSummary(people, duration(average))}
      rowTitle={w.took}
      rows={rows}
      onPick={
        onPick &&
        ((place) => {
          const [from] = bins[place]!;
          onPick({ series: 0, seconds: [from, from + bins[1]![0] - bins[0]![0]] }, rows[place]!.name);
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
  onPick,
}: {
  rows: readonly RetentionRow[];
  label: string;
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
  const width = Math.max(0, ...rows.map(({ values }) => values.length));
  const began = rows.reduce((sum, { values }) => sum + (values[0]?.count ?? 0), 0);
  return (
    <figure class="chart">
      <figcaption>{w.retentionSummary(began)}</figcaption>
      <FigureFrame
        label={label}
        shape="heat"
        heads={[w.began, w.people, ...Array.from({ length: width }, (_, place) => place)]}
      >
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
