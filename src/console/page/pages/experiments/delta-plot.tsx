/** Results per metric and variant: the delta with its interval around 0, all on one axis. */

import { Badge } from "../../components/primitives.tsx";
import { decimal, number, percent } from "../../lib/format.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  formatCertainty,
  formatDelta,
  getInterval,
  getVerdict,
  type MetricResult,
  metricName,
  type ResultRow,
} from "../../model/experiments.ts";

const w = lazyMessages.experiments;

const plotWidth = 240;
const plotHeight = 36;
const extentMin = 0.01;
/** A smaller one is displayed as 0 %. */
const shownReductionMin = 0.0005;
/** An interval far wider than the others would make them points. */
const extentFactor = 3;
/** Space for the end of an interval that extends beyond the axis. */
const margin = 8;

const tones = { better: "good", worse: "bad", none: "plain", open: "warn" } as const;

/** Half the width of the axis: all intervals, unless few of them are much wider than most. */
export function getExtent(rows: readonly ResultRow[]): number {
  const bounds = rows
    .flatMap((row) => {
      const interval = getInterval(row);
      return interval ? [Math.max(...interval.map(Math.abs))] : [];
    })
    .sort((a, b) => a - b);
  const most = bounds.at(-1) ?? extentMin;
  const median = bounds[bounds.length >> 1] ?? extentMin;
  return Math.max(extentMin, Math.min(most, median * extentFactor)) * 1.05;
}

/** One axis per kind of difference: percentages and absolute values have no common one. */
function getExtents(metrics: readonly MetricResult[]): Record<"relative" | "absolute", number> {
  const rows = metrics.flatMap(({ variant_results: all }) => all);
  return {
    relative: getExtent(rows.filter(({ difference }) => difference !== "absolute")),
    absolute: getExtent(rows.filter(({ difference }) => difference === "absolute")),
  };
}

export function DeltaPlot({ metrics, minimum }: { metrics: readonly MetricResult[]; minimum: number }) {
  const extents = getExtents(metrics);
  const hasRelative = metrics.some(({ variant_results: all }) =>
    all.some((row) => getInterval(row) && row.difference !== "absolute"),
  );
  return (
    <table class="delta-table" aria-label={w.metrics}>
      <thead>
        <tr>
          <th scope="col">{w.metric.variant}</th>
          <th scope="col" class="wide">
            {w.metric.people}
          </th>
          <th scope="col" class="wide">
            {w.metric.value}
          </th>
          <th scope="col" class="plot-cell">
            <span class="unseen">{w.metric.interval}</span>
            {hasRelative && <Axis extent={extents.relative} />}
          </th>
          <th scope="col">{w.metric.delta}</th>
          <th scope="col" class="chance">
            {w.metric.chance}
          </th>
          <th scope="col" class="wide">
            {w.metric.loss}
          </th>
        </tr>
      </thead>
      {metrics.map((metric, position) => (
        <MetricRows key={metric.uuid ?? position} metric={metric} extents={extents} minimum={minimum} />
      ))}
    </table>
  );
}

/** Ends and zero of the axis that all relative intervals share. */
function Axis({ extent }: { extent: number }) {
  return (
    <span class="plot-axis" aria-hidden="true">
      <span>{percent(-extent)}</span>
      <span>0</span>
      <span>{percent(extent)}</span>
    </span>
  );
}

/** Columns that phones show; the others are `wide`. */
const narrowColumns = 4;
const wideColumns = 3;

function MetricRows({
  metric,
  extents,
  minimum,
}: {
  metric: MetricResult;
  extents: Record<"relative" | "absolute", number>;
  minimum: number;
}) {
  const { baseline, variant_results: rows, holdout, role, goal, error } = metric;
  const isShare = metric.metric_type === "funnel" || metric.metric_type === "retention";
  const shownMean = ({ mean }: ResultRow) =>
    typeof mean !== "number" ? "–" : isShare ? percent(mean) : decimal(mean);
  return (
    <tbody>
      <tr class="metric-head">
        <th scope="rowgroup" colSpan={narrowColumns}>
          <span class="row">
            <b>{metricName(metric)}</b> <Badge>{w.roleNames[role]}</Badge>
            <Badge>{w.goals[goal]}</Badge>
          </span>
          {error && <p class="error">{error}</p>}
        </th>
        <td class="wide" colSpan={wideColumns} />
      </tr>
      {baseline && (
        <tr>
          <th scope="row">{baseline.key}</th>
          <td class="wide">{number(baseline.number_of_samples)}</td>
          <td class="wide">{shownMean(baseline)}</td>
          <td class="plot-cell" />
          <td class="muted">{w.baselineShort}</td>
          <td />
          <td class="wide" />
        </tr>
      )}
      {rows.map((row) => (
        <tr key={row.key}>
          <th scope="row">
            {row.key}
            <Verdict row={row} goal={goal} minimum={minimum} />
          </th>
          <td class="wide">{number(row.number_of_samples)}</td>
          <td class="wide">{shownMean(row)}</td>
          <td class="plot-cell">
            <IntervalBar row={row} goal={goal} extent={extents[row.difference ?? "relative"]} />
          </td>
          <td>
            <b class="number">{formatDelta(row.delta, row)}</b>
            <span class="sub">{intervalText(row)}</span>
          </td>
          <td class="number">
            {formatCertainty(row)}
            {row.cuped && row.cuped.variance_reduction >= shownReductionMin && (
              <span class="sub">{w.variance(percent(row.cuped.variance_reduction))}</span>
            )}
          </td>
          <td class="wide number">{lossText(row)}</td>
        </tr>
      ))}
      {holdout && (
        <tr class="muted">
          <th scope="row">{w.holdout}</th>
          <td class="wide">{number(holdout.number_of_samples)}</td>
          <td class="wide">{shownMean(holdout)}</td>
          <td colSpan={narrowColumns - 1}>{w.holdoutUntested}</td>
          <td class="wide" />
        </tr>
      )}
      {metric.metric_type === "funnel" && <Steps rows={[...(baseline ? [baseline] : []), ...rows]} />}
    </tbody>
  );
}

function intervalText(row: ResultRow): string {
  const interval = getInterval(row);
  return interval ? w.intervalFrom(formatDelta(interval[0], row), formatDelta(interval[1], row)) : "";
}

function lossText(row: ResultRow): string {
  const loss = row.expected_loss?.variant;
  if (typeof loss !== "number") return "–";
  return row.difference === "absolute" ? decimal(loss) : percent(loss);
}

/** The result as a sentence, or the reason why it is missing. */
function Verdict({ row, goal, minimum }: { row: ResultRow; goal: MetricResult["goal"]; minimum: number }) {
  const verdict = getVerdict(row, goal);
  const reasons = row.validation_failures.map((code) =>
    code === "not-enough-exposures"
      ? w.tooFew(number(row.number_of_samples), number(minimum))
      : (w.failures[code as keyof typeof w.failures] ?? code),
  );
  return (
    <span class="verdict">
      <Badge tone={tones[verdict]}>{w.verdicts[verdict]}</Badge>
      {row.guardrail?.violated && <Badge tone="bad">{w.violated}</Badge>}
      {reasons.map((reason) => (
        <span key={reason} class="sub">
          {reason}
        </span>
      ))}
    </span>
  );
}

/** The interval as a bar, with the point and the zero line; the bad side beyond a guardrail's tolerance is hatched. */
export function IntervalBar({
  row,
  goal,
  extent,
  width = plotWidth,
  height = plotHeight,
}: {
  row: ResultRow;
  goal: MetricResult["goal"];
  extent: number;
  width?: number;
  height?: number;
}) {
  const interval = getInterval(row);
  if (!interval || typeof row.delta !== "number") return null;
  const at = (value: number) => margin + ((value + extent) / (2 * extent)) * (width - 2 * margin);
  const inside = (value: number) => Math.max(margin, Math.min(width - margin, at(value)));
  const [low, high] = interval;
  const left = inside(low);
  const right = inside(high);
  const middle = height / 2;
  const tolerance = row.guardrail?.tolerance;
  const edge = tolerance === undefined ? undefined : inside(goal === "increase" ? -tolerance : tolerance);
  const verdict = getVerdict(row, goal);
  const name = `${row.key}: ${formatDelta(row.delta, row)}, ${intervalText(row)}`;
  return (
    <svg class={`interval ${verdict}`} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={name}>
      <title>{name}</title>
      {edge !== undefined && (
        <Hatch
          from={goal === "increase" ? 0 : edge}
          to={goal === "increase" ? edge : width}
          height={height}
        />
      )}
      <line class="zero" x1={at(0)} x2={at(0)} y1={0} y2={height} />
      <rect class="span" x={left} y={middle - 5} width={Math.max(2, right - left)} height={10} rx={2} />
      {at(low) < left && <path class="beyond" d={`M${margin - 2} ${middle - 5}l-5 5 5 5`} />}
      {at(high) > right && <path class="beyond" d={`M${width - margin + 2} ${middle - 5}l5 5-5 5`} />}
      <circle class="point" cx={inside(row.delta)} cy={middle} r={4} />
    </svg>
  );
}

const hatchStep = 6;

function Hatch({ from, to, height }: { from: number; to: number; height: number }) {
  const lines: string[] = [];
  for (let x = from; x < to - hatchStep; x += hatchStep) lines.push(`M${x} ${height}l${hatchStep}-${height}`);
  return <path class="hatch" d={lines.join("")} />;
}

/** People who reached each step of a funnel. */
function Steps({ rows }: { rows: readonly ResultRow[] }) {
  const counted = rows.filter(({ step_counts: steps }) => (steps?.length ?? 0) > 1);
  if (counted.length === 0) return null;
  return (
    <tr>
      <td colSpan={narrowColumns}>
        <details>
          <summary>{w.funnelSteps}</summary>
          <ul class="plain-list">
            {counted.map(({ key, number_of_samples: all, step_counts: steps }) => (
              <li key={key}>
                <b>{key}</b> {[all, ...steps!].map((count) => number(count)).join(" → ")}
              </li>
            ))}
          </ul>
        </details>
      </td>
      <td class="wide" colSpan={wideColumns} />
    </tr>
  );
}
