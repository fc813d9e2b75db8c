/** Stacked bars, one per day or step, with the same figures as a table. What is below zero hangs from the line of zero. */

import { useState } from "preact/hooks";
import { compact, number } from "../lib/format.ts";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";

const w = words.frame;
const height = 180;
const barWidth = 26;
const seriesMax = 8;

export interface BarRow {
  name: string;
  values: Record<string, number>;
}

/** Class of the nth series: its colour. */
export function seriesClass(place: number): string {
  return `series-${(place % seriesMax) + 1}`;
}

export function StackedBars({
  label,
  summary,
  rowTitle,
  rows,
  order,
  onPick,
}: {
  label: string;
  summary: string;
  rowTitle: string;
  rows: readonly BarRow[];
  /** Names of the series from the line of zero outwards; by their letters when left out. */
  order?: readonly string[];
  /** Gets the place of the row and the name of the series. */
  onPick?: ((place: number, series: string) => void) | undefined;
}) {
  const [isTable, setTable] = useState(false);
  const series = order ?? [...new Set(rows.flatMap(({ values }) => Object.keys(values)))].sort();
  const sumOf = ({ values }: BarRow, sign: 1 | -1) =>
    Object.values(values).reduce((sum, value) => sum + Math.max(0, sign * value), 0);
  const most = Math.max(1, ...rows.map((row) => sumOf(row, 1)));
  const least = Math.max(0, ...rows.map((row) => sumOf(row, -1)));
  const scale = (height - (least > 0 ? 8 : 4)) / (most + least);
  const zero = height - (least > 0 ? 4 : 0) - least * scale;
  const width = rows.length * barWidth;
  return (
    <figure class="chart">
      <figcaption class="row apart">
        <span>{summary}</span>
        <Button kind="quiet" onClick={() => setTable(!isTable)}>
          {isTable ? w.showChart : w.showTable}
        </Button>
      </figcaption>
      {isTable ? (
        <div class="table-scroll" role="region" aria-label={label} tabIndex={0}>
          <table class="figures">
            <thead>
              <tr>
                <th scope="col">{rowTitle}</th>
                {series.map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ name, values }, place) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {series.map((one) => (
                    <td key={one}>
                      {onPick && values[one] ? (
                        <button type="button" class="figure" onClick={() => onPick(place, one)}>
                          {number(values[one])}
                        </button>
                      ) : (
                        number(values[one] ?? 0)
                      )}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <div class="bars-holder">
          <span class="axis-top" aria-hidden="true">
            {compact(most)}
          </span>
          {least > 0 && (
            <span class="axis-low" aria-hidden="true">
              {compact(-least)}
            </span>
          )}
          <svg
            class={onPick ? "bars picks" : "bars"}
            role="img"
            aria-label={`${label}. ${summary}`}
            viewBox={`0 0 ${width} ${height}`}
            preserveAspectRatio="none"
          >
            {rows.map((row, place) => {
              let top = zero;
              let bottom = zero;
              const parts = series.map((name) => `${name} ${number(row.values[name] ?? 0)}`);
              return (
                <g key={row.name}>
                  <title>{`${row.name}: ${parts.join(", ")}`}</title>
                  {series.map((name, index) => {
                    const value = row.values[name] ?? 0;
                    const size = Math.abs(value) * scale;
                    if (value > 0) top -= size;
                    else bottom += size;
                    return (
                      <rect
                        key={name}
                        class={seriesClass(index)}
                        x={place * barWidth + 3}
                        y={value > 0 ? top : bottom - size}
                        width={barWidth - 6}
                        height={size}
                        {...(onPick ? { onClick: () => onPick(place, name) } : {})}
                      />
                    );
                  })}
                </g>
              );
            })}
            {least > 0 && <line class="zero" x1={0} x2={width} y1={zero} y2={zero} />}
          </svg>
          <span class="axis-ends" aria-hidden="true">
            <span>{rows[0]?.name}</span>
            <span>{rows.at(-1)?.name}</span>
          </span>
        </div>
      )}
      <Legend names={series} />
    </figure>
  );
}

/** Which colour is which series. */
export function Legend({ names, places }: { names: readonly string[]; places?: readonly number[] }) {
  return (
    <ul class="legend">
      {names.map((name, place) => (
        <li key={name}>
          <span
            class={`swatch ${seriesClass(places?.[place] ?? place)}${(places?.[place] ?? place) === place ? "" : " dashed"}`}
            aria-hidden="true"
          />
          {name}
        </li>
      ))}
    </ul>
  );
}
