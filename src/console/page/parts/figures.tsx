/** What is around charts of every kind: the table of their figures, the colours of their series, and the frame. */

import type { ComponentChildren } from "preact";
import { decimal } from "../lib/format.ts";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";

const w = words.frame;
const seriesMax = 8;

export interface ChartSeries {
  name: string;
  values: readonly number[];
  /** Drawn dashed, in the colour of the series of that place: the same thing at another time. */
  sameAs?: number;
}

/** What is done with a figure that is chosen: its place on the axis, and its series'. */
export type PickFigure = (place: number, series: number) => void;

/** Class of the nth series: its colour. */
export function seriesClass(place: number): string {
  return `series-${(place % seriesMax) + 1}`;
}

/** A sentence that sums a chart up, the chart or the table of its figures, and which colour is which series. */
export function ChartFrame({
  summary,
  isTable,
  onToggle,
  legend,
  children,
}: {
  summary: string;
  isTable: boolean;
  onToggle: () => void;
  legend: Parameters<typeof Legend>[0];
  children: ComponentChildren;
}) {
  return (
    <figure class="chart">
      <figcaption class="row apart">
        <span>{summary}</span>
        <Button kind="quiet" onClick={onToggle}>
          {isTable ? w.showChart : w.showTable}
        </Button>
      </figcaption>
      {children}
      <Legend {...legend} />
    </figure>
  );
}

/** A table of figures, moved by keys and by hand where it is wider than the page. */
export function FigureFrame({
  label,
  shape,
  heads,
  children,
}: {
  label: string;
  shape?: "wide" | "heat";
  /** What stands above each column. */
  heads: readonly (string | number)[];
  /** The rows. */
  children: ComponentChildren;
}) {
  return (
    <div class="table-scroll" role="region" aria-label={label} tabIndex={0}>
      <table class={shape ? `figures ${shape}` : "figures"}>
        <thead>
          <tr>
            {heads.map((head, place) => (
              <th key={place} scope="col">
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

/** The figures of a chart. */
export function FigureTable({
  label,
  rowTitle = w.period,
  names,
  series,
  onPick,
}: {
  label: string;
  rowTitle?: string;
  /** One for each row. */
  names: readonly string[];
  series: readonly Pick<ChartSeries, "name" | "values">[];
  onPick?: PickFigure | undefined;
}) {
  return (
    <FigureFrame label={label} heads={[rowTitle, ...series.map(({ name }) => name)]}>
      {names.map((name, place) => (
        <tr key={place}>
          <th scope="row">{name}</th>
          {series.map((one, index) => {
            const value = one.values[place] ?? 0;
            return (
              <td key={one.name}>
                {onPick && value !== 0 ? (
                  <button type="button" class="figure" onClick={() => onPick(place, index)}>
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

/** Which colour is which series. */
function Legend({ names, places }: { names: readonly string[]; places?: readonly number[] }) {
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
