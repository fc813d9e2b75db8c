/** The delta of a metric by day, cumulative, with its interval. */

import { useEffect, useRef, useState } from "preact/hooks";
import { FigureFrame } from "../../components/chart-frame.tsx";
import { Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { queryString, request } from "../../lib/api.ts";
import { percent, periodNames } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  experimentPath,
  formatDelta,
  getInterval,
  type MetricResult,
  metricName,
  type ResultRow,
} from "../../model/experiments.ts";
import { getExtent } from "./delta-plot.tsx";

const w = lazyMessages.experiments;

interface Series {
  timeseries: Record<string, { variant_results: ResultRow[] }>;
}

export function EffectOverTime({ id, metrics }: { id: number; metrics: readonly MetricResult[] }) {
  const known = metrics.filter(({ uuid, error }) => uuid !== null && error === null);
  const [chosen, setChosen] = useState<string>();
  const [variant, setVariant] = useState<string>();
  const metric = known.find(({ uuid }) => uuid === chosen) ?? known[0];
  const series = useResource<Series>(
    metric === undefined ? null : `series ${project.value?.id} ${id} ${metric.uuid}`,
    (signal) =>
      request(experimentPath(id, `timeseries_results/${queryString({ metric_uuid: metric!.uuid })}`), {
        signal,
      }),
  );
  if (metric === undefined) return null;
  const keys = metric.variant_results.map(({ key }) => key);
  const key = keys.find((key) => key === variant) ?? keys[0] ?? "";
  return (
    <section class="card stack">
      <h2>{w.overTime}</h2>
      <div class="row bottom">
        <Select
          label={w.metric.name}
          value={metric.uuid ?? ""}
          choices={known.map((metricResult) => [metricResult.uuid ?? "", metricName(metricResult)] as const)}
          onChange={setChosen}
        />
        {keys.length > 1 && (
          <Select
            label={w.metric.variant}
            value={key}
            choices={keys.map((key) => [key, key] as const)}
            onChange={setVariant}
          />
        )}
      </div>
      <Content resource={series} rows={3}>
        {({ timeseries }) => (
          <DayChart label={`${metricName(metric)}, ${key}`} variant={key} series={timeseries} />
        )}
      </Content>
    </section>
  );
}

const firstWidth = 720;
const height = 220;
const axisHeight = 22;
const axisWidth = 64;

function DayChart({
  label,
  variant,
  series,
}: {
  label: string;
  variant: string;
  series: Series["timeseries"];
}) {
  const [isTable, setTable] = useState(false);
  // One unit is one pixel: labels keep their size on a phone.
  const [width, setWidth] = useState(firstWidth);
  const host = useRef<HTMLElement>(null);
  useEffect(() => {
    if (host.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(240, entry!.contentRect.width)));
    observer.observe(host.current);
    return () => observer.disconnect();
  }, []);
  const days = Object.keys(series).sort();
  const rows = days.map((day) => series[day]!.variant_results.find(({ key }) => key === variant));
  const found = rows.flatMap((row) =>
    row && getInterval(row) && typeof row.delta === "number" ? [row] : [],
  );
  const last = found.at(-1);
  if (last === undefined)
    return (
      <figure class="chart" ref={host}>
        <p class="muted">{w.noSeries}</p>
      </figure>
    );
  const names = periodNames(days);
  const extent = getExtent(found);
  const x = (position: number) =>
    axisWidth + (days.length === 1 ? 0.5 : position / (days.length - 1)) * (width - axisWidth - 12);
  const y = (value: number) =>
    ((extent - Math.max(-extent, Math.min(extent, value))) / (2 * extent)) * (height - axisHeight - 8) + 4;
  const points = rows.flatMap((row, position) => {
    const interval = row && getInterval(row);
    return interval && typeof row.delta === "number" ? [{ position, row, interval, delta: row.delta }] : [];
  });
  const line = (value: (point: (typeof points)[number]) => number, shown = points) =>
    shown.map((point) => `${x(point.position).toFixed(1)} ${y(value(point)).toFixed(1)}`).join("L");
  const band = `M${line(({ interval }) => interval[1])}L${line(({ interval }) => interval[0], [...points].reverse())}z`;
  const show = (value: number) => formatDelta(value, last);
  const getText = (row: ResultRow) => {
    const interval = getInterval(row)!;
    return `${show(row.delta!)} (${w.intervalFrom(show(interval[0]), show(interval[1]))})`;
  };
  const summary = w.seriesSummary(variant, getText(last));
  return (
    <figure class="chart" ref={host}>
      <figcaption class="row apart">
        <span>{summary}</span>
        <Button kind="quiet" onClick={() => setTable(!isTable)}>
          {isTable ? messages.frame.showChart : messages.frame.showTable}
        </Button>
      </figcaption>
      {isTable ? (
        <FigureFrame label={label} heads={[messages.frame.period, w.metric.delta, w.metric.interval]}>
          {points.map(({ position, row, interval }) => (
            <tr key={position}>
              <th scope="row">{names[position]}</th>
              <td>{show(row.delta!)}</td>
              <td>{w.intervalFrom(show(interval[0]), show(interval[1]))}</td>
            </tr>
          ))}
        </FigureFrame>
      ) : (
        <svg
          class="effect-chart"
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={`${label}. ${summary}`}
        >
          {[extent / 1.05, 0, -extent / 1.05].map((value) => (
            <g key={value}>
              <line
                class={value === 0 ? "zero" : "grid"}
                x1={axisWidth}
                x2={width}
                y1={y(value)}
                y2={y(value)}
              />
              <text x={axisWidth - 8} y={y(value) + 4} text-anchor="end">
                {value === 0 ? "0" : last.difference === "absolute" ? show(value) : percent(value)}
              </text>
            </g>
          ))}
          <path class="band" d={band} />
          <path class="course" d={`M${line(({ delta }) => delta)}`} />
          {points.length === 1 && (
            <line
              class="alone"
              x1={x(points[0]!.position)}
              x2={x(points[0]!.position)}
              y1={y(points[0]!.interval[0])}
              y2={y(points[0]!.interval[1])}
            />
          )}
          {points.map(({ position, row, delta }) => (
            <circle key={position} class="point" cx={x(position)} cy={y(delta)} r={3.5}>
              <title>{`${names[position]}: ${getText(row)}`}</title>
            </circle>
          ))}
          <text x={axisWidth} y={height - 4}>
            {names[0]}
          </text>
          {days.length > 1 && (
            <text x={width} y={height - 4} text-anchor="end">
              {names.at(-1)}
            </text>
          )}
        </svg>
      )}
    </figure>
  );
}
