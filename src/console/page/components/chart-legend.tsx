/** Legend of a chart as a table: color, name, total, change. A click hides a series, a double click shows only that one. */

import { percent } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
import { type ChartFigures, type ChartSeries, seriesClass } from "./chart-frame.tsx";

const w = messages.frame;

export function Legend({
  label,
  series,
  hidden,
  hasTotals,
  format,
  onHide,
}: Omit<ChartFigures, "names"> & {
  /** Names of the hidden series. */
  hidden: ReadonlySet<string>;
  hasTotals: boolean;
  onHide: (hidden: ReadonlySet<string>) => void;
}) {
  // The previous period has the color of its series, and no entry.
  const current = series.flatMap((line, index) => (line.sameAs === undefined ? [{ one: line, index }] : []));
  const getSum = ({ values }: ChartSeries) => values.reduce((sum, value) => sum + value, 0);
  const getChange = (index: number, line: ChartSeries) => {
    const before = series.find(({ sameAs }) => sameAs === index);
    return before === undefined || !hasTotals ? undefined : change(getSum(line), getSum(before));
  };
  const toggle = (name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    if (next.size < current.length) onHide(next);
  };
  const showOnly = (name: string) =>
    onHide(new Set(current.flatMap(({ one }) => (one.name === name ? [] : [one.name]))));
  return (
    <table class="legend" aria-label={w.legend(label)}>
      <tbody>
        {current.map(({ one, index }) => (
          <tr key={one.name} class={hidden.has(one.name) ? "hidden-series" : undefined}>
            <th scope="row">
              <button
                type="button"
                aria-pressed={!hidden.has(one.name)}
                title={w.legendHelp}
                onClick={(event) => {
                  if (event.detail < 2) toggle(one.name);
                }}
                onDblClick={() => showOnly(one.name)}
              >
                <span class={`swatch ${seriesClass(index)}`} aria-hidden="true" />
                {one.name}
              </button>
            </th>
            {hasTotals && <td>{format(getSum(one))}</td>}
            {getChange(index, one) !== undefined && <td class="muted">{getChange(index, one)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** "+8%", "−12%"; "–" without an earlier value. */
export function change(now: number, before: number): string {
  if (before === 0) return "–";
  return `${now > before ? "+" : now < before ? "−" : ""}${percent(Math.abs(now / before - 1))}`;
}
