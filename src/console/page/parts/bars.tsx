/** Stacked bars, one per day or step, with the same figures as a table. What is below zero hangs from the line of zero. */

import { useState } from "preact/hooks";
import { compact, number } from "../lib/format.ts";
import { ChartFrame, FigureTable, seriesClass } from "./figures.tsx";

const height = 180;
const barWidth = 26;

export interface BarRow {
  name: string;
  values: Record<string, number>;
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
    <ChartFrame
      summary={summary}
      isTable={isTable}
      onToggle={() => setTable(!isTable)}
      legend={{ names: series }}
    >
      {isTable ? (
        <FigureTable
          label={label}
          rowTitle={rowTitle}
          names={rows.map(({ name }) => name)}
          series={series.map((name) => ({ name, values: rows.map(({ values }) => values[name] ?? 0) }))}
          onPick={onPick && ((place, index) => onPick(place, series[index]!))}
        />
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
    </ChartFrame>
  );
}
