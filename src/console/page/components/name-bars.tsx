/** Horizontal bars by name, with their numbers. */

import { decimal } from "../lib/format.ts";
import { type ChartSeries, seriesClass } from "./chart-frame.tsx";

const rowsMax = 50;

export function NameBars({
  label,
  summary,
  names,
  series,
}: {
  label: string;
  summary: string;
  names: readonly string[];
  series: readonly Pick<ChartSeries, "name" | "values">[];
}) {
  const most = Math.max(0, ...series.flatMap(({ values }) => values));
  return (
    <figure class="chart">
      <figcaption>{summary}</figcaption>
      <table class="funnel name-bars" aria-label={label}>
        <tbody>
          {names.slice(0, rowsMax).map((name, position) =>
            series.map((line, index) => {
              const value = line.values[position] ?? 0;
              return (
                <tr key={`${position} ${line.name}`}>
                  <th scope="row">{series.length === 1 ? name : `${name} · ${line.name}`}</th>
                  <td class="funnel-bar">
                    <span
                      class={seriesClass(index)}
                      style={{ width: `${most > 0 ? (Math.max(0, value) / most) * 100 : 0}%` }}
                    />
                  </td>
                  <td class="number">{decimal(value)}</td>
                </tr>
              );
            }),
          )}
        </tbody>
      </table>
    </figure>
  );
}
