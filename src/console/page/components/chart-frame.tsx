/** Shared parts of charts: data table and series colors. */

import type { ComponentChildren } from "preact";
import { decimal } from "../lib/format.ts";
import { messages } from "../messages/index.ts";

const w = messages.frame;
/** Number of colors before they repeat. */
export const colorsCount = 12;

export interface ChartSeries {
  name: string;
  values: readonly number[];
  /** Index of another series whose color it shares, dashed: the same data at another time. */
  sameAs?: number;
  /** Names of its positions, if they differ from the axis. */
  names?: readonly string[];
}

/** What a chart, its tooltip, its legend and its table show. */
export interface ChartFigures {
  label: string;
  /** One per position on the axis. */
  names: readonly string[];
  series: readonly ChartSeries[];
  /** Formats values where one is shown. */
  format: (value: number) => string;
}

/** Called with the axis position and series index of a selected number. */
export type PickFigure = (position: number, series: number) => void;

/** Color class of the nth series. */
export function seriesClass(position: number): string {
  return `series-${(position % colorsCount) + 1}`;
}

/** Scroll container of a table that may be wider than the page; keyboard accessible. */
export function FigureFrame({
  label,
  shape,
  heads,
  children,
}: {
  label: string;
  shape?: "wide" | "heat";
  /** Column headings. */
  heads: readonly (string | number)[];
  children: ComponentChildren;
}) {
  return (
    <div class="table-scroll" role="region" aria-label={label} tabIndex={0}>
      <table class={shape ? `figures ${shape}` : "figures"}>
        <thead>
          <tr>
            {heads.map((head, position) => (
              <th key={position} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function FigureTable({
  label,
  rowTitle = w.period,
  names,
  series,
  onPick,
}: {
  label: string;
  rowTitle?: string;
  /** Row headings. */
  names: readonly string[];
  series: readonly Pick<ChartSeries, "name" | "values">[];
  onPick?: PickFigure | undefined;
}) {
  return (
    <FigureFrame label={label} heads={[rowTitle, ...series.map(({ name }) => name)]}>
      {names.map((name, position) => (
        <tr key={position}>
          <th scope="row">{name}</th>
          {series.map((line, index) => {
            const value = line.values[position] ?? 0;
            return (
              <td key={line.name}>
                {onPick && value !== 0 ? (
                  <button type="button" class="figure" onClick={() => onPick(position, index)}>
                    {decimal(value)}
                  </button>
                ) : (
                  decimal(value)
                )}
              </td>
            );
          })}
        </tr>
      ))}
    </FigureFrame>
  );
}
