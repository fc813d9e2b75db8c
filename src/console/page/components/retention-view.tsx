/** A retention: the average of all cohorts as a curve, and each cohort as a row of shares. */

import { number, percent, periodNames } from "../lib/format.ts";
import { lazyMessages } from "../messages/later.ts";
import type { RetentionRow } from "../model/insight.ts";
import type { Figure } from "../model/insight-sql.ts";
import { Chart } from "./chart.tsx";
import { FigureFrame } from "./chart-frame.tsx";

const w = lazyMessages.explore;
/** Percentage of the series' color behind the highest cell: text stays legible on it. */
const heatMost = 45;

/** Percentage of people who returned after each number of periods; only cohorts that are old enough count. */
function retentionCurve(rows: readonly RetentionRow[]): number[] {
  const width = Math.max(0, ...rows.map(({ values }) => values.length));
  return Array.from({ length: width }, (_, later) => {
    const old = rows.filter(({ values }) => values.length > later);
    const people = old.reduce((sum, { values }) => sum + (values[0]?.count ?? 0), 0);
    const returned = old.reduce((sum, { values }) => sum + (values[later]?.count ?? 0), 0);
    return people === 0 ? 0 : Math.round((returned / people) * 1_000) / 10;
  });
}

export function Retention({
  rows,
  label,
  people,
  onPick,
}: {
  rows: readonly RetentionRow[];
  label: string;
  /** Distinct persons; without them the curve is omitted. */
  people: number | undefined;
  onPick: ((figure: Figure, name: string) => void) | undefined;
}) {
  const curve = retentionCurve(rows);
  const names = curve.map((_, position) => rows[position]?.label ?? String(position));
  const getShare = ({ values }: RetentionRow, position: number) =>
    values[0]?.count ? (values[position]?.count ?? 0) / values[0].count : 0;
  // The first column is always 100 %: the scale ends at the highest cell after it.
  const most = Math.max(
    0,
    ...rows.flatMap((row) => row.values.slice(1).map((_, position) => getShare(row, position + 1))),
  );
  return (
    <>
      {people !== undefined && people > 0 && curve.length > 1 && (
        <Chart
          label={w.curve}
          summary={w.curveSummary}
          names={names}
          series={[{ name: w.curve, values: curve }]}
          format={(value) => percent(value / 100)}
        />
      )}
      <figure class="chart">
        {people !== undefined && <figcaption>{w.retentionSummary(people)}</figcaption>}
        <FigureFrame label={label} shape="heat" heads={[w.cohort, w.people, ...names]}>
          {rows.map((row) => {
            const { label: name, date, values } = row;
            const first = values[0]?.count ?? 0;
            return (
              <tr key={date ?? name}>
                <th scope="row">{date ? periodNames([date.slice(0, 10)])[0] : name}</th>
                <td>{number(first)}</td>
                {values.map(({ count }, position) => {
                  const share = getShare(row, position);
                  if (first === 0) return <td key={position} class="empty-cell" />;
                  const depth = position === 0 ? 0 : most === 0 ? 0 : Math.round((share / most) * heatMost);
                  return (
                    <td
                      key={position}
                      style={{ background: `color-mix(in srgb, var(--series-1) ${depth}%, transparent)` }}
                      title={number(count)}
                    >
                      {onPick && count > 0 ? (
                        <button
                          type="button"
                          class="figure"
                          onClick={() =>
                            onPick(
                              { series: 0, day: date.slice(0, 19), later: position },
                              w.retentionCell(date.slice(0, 10), position),
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
    </>
  );
}
