/** Lines over time or names (uPlot), with a table of the same figures and a sentence that sums them up. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { compact, decimal } from "../lib/format.ts";
import { colour } from "../lib/theme.ts";
import { words } from "../words/index.ts";
import { ChartFrame, type ChartSeries, FigureTable, type PickFigure } from "./figures.tsx";

const w = words.frame;
const height = 280;
const coloursCount = 8;
const linesMax = 25;

export function LineChart({
  label,
  summary,
  names,
  series: given,
  isLastUnfinished,
  onPick,
}: {
  label: string;
  summary: string;
  /** One for each place on the axis. */
  names: readonly string[];
  series: readonly ChartSeries[];
  /** The last bucket is not over yet: it is dashed. */
  isLastUnfinished?: boolean;
  onPick?: PickFigure | undefined;
}) {
  const [isTable, setTable] = useState(false);
  const [round, setRound] = useState(0);
  const host = useRef<HTMLDivElement>(null);
  const series = given.slice(0, linesMax);
  const pick = useRef(onPick);
  pick.current = onPick;

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
  const key = JSON.stringify([names, series]);
  useEffect(() => {
    const element = host.current;
    if (isTable || element === null) return;
    const axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { stroke: colour("line") },
    };
    const places = names.map((_, place) => place);
    const last = names.length - 1;
    const lines = series.flatMap(({ values, sameAs }, index) => {
      const stroke = colour(`series-${((sameAs ?? index) % coloursCount) + 1}`);
      const points = { show: names.length < 40 && sameAs === undefined, size: 6, fill: stroke };
      const line: uPlot.Series = { stroke, width: 2, points };
      if (sameAs !== undefined) return [{ line: { ...line, width: 1.5, dash: [2, 4] }, values: [...values] }];
      if (!isLastUnfinished || last < 1) return [{ line, values: [...values] as (number | null)[] }];
      return [
        { line, values: values.map((value, place) => (place === last ? null : value)) },
        {
          line: { ...line, dash: [5, 5] },
          values: values.map((value, place) => (place >= last - 1 ? value : null)),
        },
      ];
    });
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { y: false },
        // The last name has half of itself beyond the last place.
        padding: [null, 36, null, null],
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] } },
        axes: [
          {
            ...axis,
            values: (_, at) => at.map((place) => (Number.isInteger(place) ? (names[place] ?? "") : "")),
            space: 90,
          },
          { ...axis, values: (_, at) => at.map((value) => compact(value)), size: 60 },
        ],
        series: [{}, ...lines.map(({ line }) => line)],
        hooks: {
          ready: [
            (plot) => {
              plot.over.addEventListener("click", () => {
                const { idx, top } = plot.cursor;
                if (idx == null || top === undefined) return;
                const wanted = plot.posToVal(top, "y");
                const distances = series.map(({ values }) => Math.abs((values[idx] ?? Infinity) - wanted));
                pick.current?.(idx, distances.indexOf(Math.min(...distances)));
              });
            },
          ],
          setCursor: [
            (plot) => {
              const { idx } = plot.cursor;
              setHover(idx == null ? undefined : idx);
            },
          ],
        },
      },
      [places, ...lines.map(({ values }) => values)],
      element,
    );
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [key, isTable, round, isLastUnfinished]);
  const [hover, setHover] = useState<number>();
  return (
    <ChartFrame
      summary={summary}
      isTable={isTable}
      onToggle={() => setTable(!isTable)}
      legend={{
        names: series.map(({ name }) => name),
        places: series.map(({ sameAs }, index) => sameAs ?? index),
      }}
    >
      {isTable ? (
        <FigureTable label={label} names={names} series={series} onPick={onPick} />
      ) : (
        <>
          <div
            class={onPick ? "plot picks" : "plot"}
            ref={host}
            role="img"
            aria-label={`${label}. ${summary}`}
          />
          <p class="plot-values number" aria-hidden="true">
            {hover === undefined
              ? onPick
                ? w.pickHint
                : " "
              : `${names[hover]} · ${series.map(({ name, values }) => `${name} ${decimal(values[hover] ?? 0)}`).join(" · ")}`}
          </p>
        </>
      )}
    </ChartFrame>
  );
}
