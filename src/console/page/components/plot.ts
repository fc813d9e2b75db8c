/** uPlot configuration of charts: lines or stacked bars, their colors, and what the pointer selects. */

import uPlot from "uplot";
import { download } from "../lib/csv.ts";
import { compact } from "../lib/format.ts";
import { themeColor } from "../lib/theme.ts";
import { type ChartFigures, colorsCount } from "./chart-frame.tsx";
import { type Band, stackBands } from "./stacks.ts";

export type ChartShape = "line" | "bars";

const heightDefault = 280;
/** Charts with more positions show dots only under the pointer. */
const dotsMax = 14;
const areaAlpha = 0.08;
const previousAlpha = 0.45;
/** Of the axis that carries the numbers; `.flag-marks` in the style sheet uses the same lengths. */
const axisSize = 60;
const endPadding = 36;
const barWidthMax = 48;
/** Distances of ticks between whole numbers: 1, 2, 5, 10, 20, 25, 50 … */
const wholeSteps = Array.from({ length: 15 }, (_, power) => [1, 2, 2.5, 5].map((step) => step * 10 ** power))
  .flat()
  .filter(Number.isInteger);
/** Between ticks with numbers: four or five on most charts. */
const tickSpace = 44;

interface PlotOptions extends Pick<ChartFigures, "names" | "series"> {
  shape: ChartShape;
  isLastUnfinished: boolean;
  isShown: (index: number) => boolean;
  /** @param left distance of the position from the chart's left edge, in pixels */
  onPoint: (position: number | undefined, left: number) => void;
  onPick: (position: number, series: number) => void;
  /** Dragging selects positions; absent: it does not. */
  onSelect?: ((from: number, to: number) => void) | undefined;
}

export interface Plot {
  /** Moves the pointer's line to a position; undefined removes it. */
  pointAt: (position: number | undefined) => void;
  savePng: (name: string) => Promise<void>;
  destroy: () => void;
}

interface Line {
  line: uPlot.Series;
  values: (number | null)[];
}

const withAlpha = (color: string, alpha: number) =>
  color.replace("rgb(", "rgba(").replace(")", `, ${alpha})`);

/** Draws a chart into an element, as wide as it is and as high as the element's `--plot-height`. */
export function createPlot(element: HTMLElement, options: PlotOptions): Plot {
  const getSize = () => ({
    width: element.clientWidth,
    height: parseFloat(getComputedStyle(element).getPropertyValue("--plot-height")) || heightDefault,
  });
  const { names, shape, onPoint } = options;
  const bands = stackBands(
    options.series.map(({ values }) => values),
    getStacked(options),
  );
  const lines = shape === "bars" ? barLines(options, bands) : plainLines(options);
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: themeColor("muted"), ticks: { show: false }, font };
  const grid = { stroke: themeColor("gridline"), width: 1 };
  const edge = shape === "bars" ? 0.5 : 0;
  // Half a person is no tick.
  const isWhole = options.series.every(({ values }) => values.every(Number.isInteger));
  const chart = new uPlot(
    {
      ...getSize(),
      legend: { show: false },
      cursor: { y: false, drag: { x: options.onSelect !== undefined, y: false, setScale: false } },
      // Half of the last label extends beyond the last position.
      padding: [null, endPadding, null, null],
      scales: {
        x: { time: false, range: () => [-edge, Math.max(names.length - 1, edge === 0 ? 1 : 0) + edge] },
        y: { range: (_, least, most) => [Math.min(0, (least ?? 0) * 1.08), Math.max(1, (most ?? 0) * 1.08)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          values: (_, at) => at.map((index) => (Number.isInteger(index) ? (names[index] ?? "") : "")),
          space: 90,
          size: 30,
        },
        {
          ...axis,
          grid,
          values: (_, at) => at.map((value) => compact(value)),
          size: axisSize,
          space: tickSpace,
          ...(isWhole ? { incrs: wholeSteps } : {}),
        },
      ],
      series: [{}, ...lines.map(({ line }) => line)],
      hooks: {
        ready: [(plot) => plot.over.addEventListener("click", () => pickAt(plot, options, bands))],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            const [from, to] = [left, left + width].map((at) => Math.round(plot.posToVal(at, "x")));
            const last = names.length - 1;
            if (width > 0 && from! < to!) options.onSelect?.(Math.max(0, from!), Math.min(last, to!));
          },
        ],
        setCursor: [
          (plot) => {
            const { idx } = plot.cursor;
            onPoint(idx ?? undefined, idx == null ? 0 : axisSize + plot.valToPos(idx, "x"));
          },
        ],
      },
    },
    [names.map((_, index) => index), ...lines.map(({ values }) => values)],
    element,
  );
  const observer = new ResizeObserver(() => chart.setSize(getSize()));
  observer.observe(element);
  return {
    pointAt: (position) =>
      chart.setCursor(
        position === undefined ? { left: -10, top: -10 } : { left: chart.valToPos(position, "x"), top: 0 },
      ),
    savePng: async (name) => {
      const { canvas } = chart.ctx;
      const picture = new OffscreenCanvas(canvas.width, canvas.height);
      const context = picture.getContext("2d")!;
      context.fillStyle = themeColor("surface");
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(canvas, 0, 0);
      download(`${name}.png`, await picture.convertToBlob());
    },
    destroy: () => {
      observer.disconnect();
      chart.destroy();
    },
  };
}

const getColor = (index: number) => themeColor(`series-${(index % colorsCount) + 1}`);
const hasDots = ({ names }: PlotOptions) => names.length <= dotsMax;

/** Indices of the series that are stacked: shown ones of the current period. */
const getStacked = ({ series, isShown }: PlotOptions) =>
  series.flatMap(({ sameAs }, index) => (sameAs === undefined && isShown(index) ? [index] : []));

/** The previous period, dashed and behind the current one. */
function previousLines({ series, isShown }: PlotOptions): Line[] {
  return series.flatMap(({ values, sameAs }, index) =>
    sameAs === undefined || !isShown(index)
      ? []
      : [
          {
            line: {
              stroke: withAlpha(getColor(sameAs), previousAlpha),
              width: 1.5,
              dash: [4, 4],
              points: { show: false },
            },
            values: [...values],
          },
        ],
  );
}

function plainLines(options: PlotOptions): Line[] {
  const { names, series, isLastUnfinished, isShown } = options;
  const last = names.length - 1;
  const isSingle = getStacked(options).length === 1;
  const current = series.flatMap(({ values, sameAs }, index) => {
    if (sameAs !== undefined || !isShown(index)) return [];
    const stroke = getColor(index);
    const line: uPlot.Series = {
      stroke,
      width: 2,
      points: { show: hasDots(options), size: 6, fill: stroke },
      ...(isSingle ? { fill: withAlpha(stroke, areaAlpha) } : {}),
    };
    if (!isLastUnfinished || last < 1) return [{ line, values: [...values] as (number | null)[] }];
    return [
      { line, values: values.map((value, index) => (index === last ? null : value)) },
      {
        line: { ...line, dash: [5, 5] },
        values: values.map((value, index) => (index >= last - 1 ? value : null)),
      },
    ];
  });
  return [...previousLines(options), ...current];
}

/** The outermost bars are drawn first, from zero: the inner ones cover them. */
function barLines(options: PlotOptions, bands: readonly (readonly Band[])[]): Line[] {
  const { names, isLastUnfinished } = options;
  const last = names.length - 1;
  const bars = getStacked(options)
    .reverse()
    .flatMap((index) => {
      const color = getColor(index);
      const ends = bands[index]!.map(({ to }) => to);
      const line = (fill: string): uPlot.Series => ({
        stroke: themeColor("surface"),
        fill,
        width: 1,
        points: { show: false },
        paths: uPlot.paths.bars!({ size: [0.85, barWidthMax] }),
      });
      if (!isLastUnfinished || last < 1) return [{ line: line(color), values: ends }];
      return [
        { line: line(color), values: ends.map((end, index) => (index === last ? null : end)) },
        // Opaque: an inner bar must cover an outer one.
        {
          line: line(`color-mix(in srgb, ${color} 55%, ${themeColor("surface")})`),
          values: ends.map((end, index) => (index === last ? end : null)),
        },
      ];
    });
  return [...bars, ...previousLines(options)];
}

/** The series of the bar, or of the line nearest to the pointer. */
function pickAt(plot: uPlot, options: PlotOptions, bands: readonly (readonly Band[])[]): void {
  const { series, shape, isShown, onPick } = options;
  const { idx, top } = plot.cursor;
  if (idx == null || top === undefined) return;
  const wanted = plot.posToVal(top, "y");
  const distances = series.map(({ values }, index) => {
    if (!isShown(index)) return Number.POSITIVE_INFINITY;
    if (shape === "line") return Math.abs((values[idx] ?? Number.POSITIVE_INFINITY) - wanted);
    const { from, to } = bands[index]?.[idx] ?? { from: 0, to: 0 };
    const isInside = wanted >= Math.min(from, to) && wanted <= Math.max(from, to) && from !== to;
    return isInside ? 0 : Number.POSITIVE_INFINITY;
  });
  const nearest = Math.min(...distances);
  if (nearest < Number.POSITIVE_INFINITY) onPick(idx, distances.indexOf(nearest));
}
