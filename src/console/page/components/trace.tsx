/** Trace of an evaluation: each condition with expected and actual value, and the bucket on a ruler. */

import { decimal, formatValue, percent } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
import type { ExplainedCondition, ExplainedRollout, Explanation } from "../model/explanation.ts";
import { formatCondition } from "../model/flags.ts";
import { seriesClass } from "./chart-frame.tsx";
import { Icon } from "./icons.tsx";

const w = messages.flag.tryIt;

export function Trace({ explanation }: { explanation: Explanation }) {
  const { reason, conditions, variant, payload, super_condition: first } = explanation;
  return (
    <div class="trace stack tight">
      {reason && reason.condition_index === null && <p class="muted">{reason.description}</p>}
      {[...(first ? [first] : []), ...conditions].map((condition) => (
        <Condition key={condition.index} condition={condition} />
      ))}
      {variant && (
        <div>
          <p>{w.variantBucket(decimal(Math.round(variant.place * 1000) / 10))}</p>
          <div class="ruler">
            {variant.shares.map(({ key, from, below }, position) => (
              <span
                key={key}
                class={`part ${seriesClass(position)}`}
                style={{ left: `${from * 100}%`, width: `${(below - from) * 100}%` }}
                title={key}
              />
            ))}
            <span class="mark-at" style={{ left: `${variant.place * 100}%` }} />
          </div>
          <p class="muted">{variant.chosen}</p>
        </div>
      )}
      {payload !== null && (
        <p>
          {w.payload}: <code>{payload}</code>
        </p>
      )}
    </div>
  );
}

/** The deciding condition set and its bucket, in one line. */
export function ReasonSentence({ explanation: { reason, conditions } }: { explanation: Explanation }) {
  const decisive =
    conditions.find(({ index }) => index === reason?.condition_index) ??
    conditions.find(({ outcome }) => outcome === "out_of_rollout_bound") ??
    conditions[0];
  if (decisive === undefined) return <>{reason?.description ?? w.notComputed}</>;
  const { index, outcome, rollout, filters } = decisive;
  const missed = filters.find(({ result }) => result !== "match");
  return (
    <>
      <span>{w.set(index + 1, w.results[outcome] ?? outcome.replaceAll("_", " "))}</span>
      {missed && (
        <>
          {" · "}
          <span>{formatCondition(toCondition(missed))}</span>
        </>
      )}
      {rollout && (
        <>
          {" · "}
          <span>{rolloutSentence(rollout)}</span>
        </>
      )}
    </>
  );
}

const toCondition = ({ key, type, operator, value }: ExplainedCondition["filters"][number]) => ({
  key: key ?? "",
  type,
  operator,
  value,
});

const rolloutSentence = ({ place, percentage, is_in: isIn }: ExplainedRollout) =>
  w.ruler(decimal(Math.round(place * 1000) / 10), percent(percentage / 100), isIn);

function Condition({ condition }: { condition: ExplainedCondition }) {
  const outcome = w.results[condition.outcome] ?? condition.outcome.replaceAll("_", " ");
  return (
    <section class="trace-set">
      <h3>{w.set(condition.index + 1, outcome)}</h3>
      <ul>
        {condition.filters.map((filter, index) => (
          <li key={index} class={filter.result === "match" ? "fits" : "misses"}>
            <Icon name={filter.result === "match" ? "check" : "close"} size={15} />
            <span>{formatCondition(toCondition(filter))}</span>
            <span class="muted">
              {w.found} {filter.source === "missing" ? messages.frame.none : formatValue(filter.found)} ·{" "}
              {filter.source}
              {filter.note && ` · ${filter.note}`}
            </span>
          </li>
        ))}
      </ul>
      {condition.rollout && <Rollout rollout={condition.rollout} />}
    </section>
  );
}

function Rollout({ rollout }: { rollout: ExplainedRollout }) {
  const share = rollout.percentage;
  return (
    <div>
      <div class="ruler">
        <span class="part in" style={{ left: 0, width: `${share}%` }} />
        <span class="mark-at" style={{ left: `${rollout.place * 100}%` }} />
      </div>
      <p class="muted">{rolloutSentence(rollout)}</p>
    </div>
  );
}
