/** A funnel: one column per step with the bars of all breakdown values side by side, and their numbers below. */

import { duration, number, percent } from "../lib/format.ts";
import { lazyMessages } from "../messages/later.ts";
import type { FunnelStep } from "../model/insight.ts";
import type { Figure } from "../model/insight-sql.ts";
import { isNone } from "./breakdown-name.ts";
import { seriesClass } from "./chart-frame.tsx";

const w = lazyMessages.explore;

type Pick = ((figure: Figure, name: string) => void) | undefined;

export function Funnel({
  results,
  label,
  onPick,
}: {
  results: readonly unknown[];
  label: string;
  onPick: Pick;
}) {
  const groups = (Array.isArray(results[0]) ? results : [results]) as FunnelStep[][];
  const steps = groups[0] ?? [];
  const total = (index: number) => groups.reduce((sum, group) => sum + (group[index]?.count ?? 0), 0);
  const getShare = (group: readonly FunnelStep[], index: number) =>
    group[0]?.count ? (group[index]?.count ?? 0) / group[0].count : 0;
  const getName = (group: readonly FunnelStep[]) => {
    const value = group[0]?.breakdown_value;
    if (value === undefined) return w.people;
    const [one] = Array.isArray(value) ? value : [value];
    return isNone(one) || one === "" ? w.noValue : String(one);
  };
  return (
    <figure class="chart">
      <figcaption>{w.funnelSummary(total(0), total(steps.length - 1))}</figcaption>
      <div class="funnel-scroll" tabIndex={0} role="group" aria-label={label}>
        <table class="funnel" aria-label={label}>
          <thead>
            <tr>
              <td />
              {steps.map((step) => (
                <th key={step.order} scope="col">
                  {step.custom_name || step.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr>
              <td />
              {steps.map((step, index) => (
                <td key={step.order}>
                  <div class="funnel-columns">
                    {groups.map((group, position) => (
                      <span
                        key={position}
                        class={seriesClass(position)}
                        style={{ blockSize: `${getShare(group, index) * 100}%` }}
                      />
                    ))}
                  </div>
                </td>
              ))}
            </tr>
            {groups.map((group, position) => (
              <tr key={position}>
                <th scope="row">
                  {groups.length > 1 && <span class={`swatch ${seriesClass(position)}`} />} {getName(group)}
                </th>
                {group.map((step, index) => (
                  <td key={step.order} class="number">
                    <StepFigures steps={group} index={index} onPick={onPick} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

/** Conversion, drop-off and time of a step. */
function StepFigures({
  steps,
  index,
  onPick,
}: {
  steps: readonly FunnelStep[];
  index: number;
  onPick: Pick;
}) {
  const step = steps[index]!;
  const before = steps[index - 1]?.count ?? 0;
  const share = before === 0 ? 0 : step.count / before;
  const value = step.breakdown_value;
  const figure = { series: index, ...(value === undefined ? {} : { breakdown: [value].flat().map(String) }) };
  const median = step.median_conversion_time;
  return (
    <>
      {onPick && step.count > 0 ? (
        <button type="button" class="figure" onClick={() => onPick(figure, step.custom_name || step.name)}>
          {number(step.count)}
        </button>
      ) : (
        number(step.count)
      )}
      {index > 0 && (
        <>
          <span class="sub">{w.fromBefore(percent(share))}</span>
          {before > step.count && (
            <span class="sub">{w.droppedOff(before - step.count, percent(1 - share))}</span>
          )}
          {typeof median === "number" && step.count > 0 && (
            <span class="sub">{w.medianTime(duration(median))}</span>
          )}
        </>
      )}
    </>
  );
}
