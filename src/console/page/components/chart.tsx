/** Chart over time or names: lines or stacked bars (uPlot), with tooltip, legend, menu and the same numbers as a table. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { download, toCsv } from "../lib/csv.ts";
import { decimal } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
// For the file of charts: in one of its own it would be another request of most pages with charts.
import "./chart-marks.tsx";
import { type ChartFigures, type ChartSeries, FigureTable, type PickFigure } from "./chart-frame.tsx";
import { Legend } from "./chart-legend.tsx";
import { ChartTooltip } from "./chart-tooltip.tsx";
import { Menu, type MenuItem } from "./menu.tsx";
import { type ChartShape, createPlot, type Plot } from "./plot.ts";
import { Button } from "./primitives.tsx";

const w = messages.frame;
const linesMax = 25;

export function Chart({
  label,
  summary,
  rowTitle = w.period,
  names,
  series: sent,
  shape = "line",
  isLastUnfinished = false,
  below,
  format = decimal,
  hasTotals = false,
  actions = [],
  onPick,
  onSelect,
}: Omit<ChartFigures, "format"> & {
  summary: string;
  /** Heading of the positions, for the table. */
  rowTitle?: string;
  shape?: ChartShape;
  /** The last bucket is still in progress. */
  isLastUnfinished?: boolean;
  format?: ChartFigures["format"];
  /** The legend shows the sum of each series: only for values that can be added up. */
  hasTotals?: boolean;
  /** Content below the axis. */
  below?: ComponentChildren;
  /** More entries of the chart's menu. */
  actions?: readonly MenuItem[];
  onPick?: PickFigure | undefined;
  /** Dragging over the chart selects positions. */
  onSelect?: ((from: number, to: number) => void) | undefined;
}) {
  const [isTable, setTable] = useState(false);
  const [round, setRound] = useState(0);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [pointed, setPointed] = useState<{ position: number; left: number }>();
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | undefined>(undefined);
  const series = sent.slice(0, linesMax);
  const isShown = ({ name, sameAs }: ChartSeries) =>
    !hidden.has(sameAs === undefined ? name : (series[sameAs]?.name ?? name));
  const pick = useRef(onPick);
  pick.current = onPick;
  const select = useRef(onSelect);
  select.current = onSelect;

  useEffect(() => {
    const again = () => setRound((count) => count + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("themechange", again);
    dark.addEventListener("change", again);
    return () => {
      removeEventListener("themechange", again);
      dark.removeEventListener("change", again);
    };
  }, []);
  const key = JSON.stringify([names, series, shape, isLastUnfinished, [...hidden]]);
  useEffect(() => {
    const element = host.current;
    if (isTable || element === null) return;
    const created = createPlot(element, {
      names,
      series,
      shape,
      isLastUnfinished,
      isShown: (index) => isShown(series[index]!),
      onPoint: (position, left) => setPointed(position === undefined ? undefined : { position, left }),
      onPick: (position, index) => pick.current?.(position, index),
      ...(onSelect ? { onSelect: (from: number, to: number) => select.current?.(from, to) } : {}),
    });
    plot.current = created;
    return () => {
      setPointed(undefined);
      created.destroy();
    };
  }, [key, isTable, round]);

  const items: MenuItem[] = [
    [w.chartCsv, () => downloadFigures(label, rowTitle, names, series)],
    ...(isTable ? [] : [[w.chartPng, () => void plot.current?.savePng(label)] as const]),
    ...actions,
  ];
  return (
    <figure
      class="chart"
      style={
        shape === "bars"
          ? {
              "--offset": `${0.5 / Math.max(1, names.length)}`,
              "--spread": `${1 - 1 / Math.max(1, names.length)}`,
            }
          : undefined
      }
    >
      <figcaption class="row apart">
        <span>{summary}</span>
        <span class="row">
          <Button kind="quiet" onClick={() => setTable(!isTable)}>
            {isTable ? w.showChart : w.showTable}
          </Button>
          <Menu label={w.chartMenu(label)} face={<span aria-hidden="true">⋯</span>} items={items} />
        </span>
      </figcaption>
      {isTable ? (
        <FigureTable label={label} rowTitle={rowTitle} names={names} series={series} onPick={onPick} />
      ) : (
        <>
          <div class={onPick ? "plot picks" : "plot"}>
            <div ref={host} role="img" aria-label={`${label}. ${summary}`} />
            <ChartTooltip
              label={label}
              names={names}
              series={series}
              isLastUnfinished={isLastUnfinished}
              format={format}
              isShown={isShown}
              pointed={pointed}
              onMove={(position) => plot.current?.pointAt(position)}
              onLeave={() => plot.current?.pointAt(undefined)}
            />
          </div>
          {below}
          {onPick && <p class="help">{w.clickHint}</p>}
        </>
      )}
      <Legend
        label={label}
        series={series}
        hidden={hidden}
        hasTotals={hasTotals}
        format={format}
        onHide={setHidden}
      />
    </figure>
  );
}

function downloadFigures(
  label: string,
  rowTitle: string,
  names: readonly string[],
  series: readonly ChartSeries[],
): void {
  const columns = [rowTitle, ...series.map(({ name }) => name)];
  const rows = names.map((name, position) => ({
    ...Object.fromEntries(series.map((line) => [line.name, line.values[position] ?? 0])),
    [rowTitle]: name,
  }));
  download(`${label}.csv`, toCsv(columns, rows));
}
