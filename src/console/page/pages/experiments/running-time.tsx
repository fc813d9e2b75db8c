/** Last step of an experiment: the smallest effect worth finding, the days it takes, and the statistics. */

import { useEffect, useState } from "preact/hooks";
import { Checkbox, Field, Segments } from "../../components/fields.tsx";
import { request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { counted, number } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { changeExperiment, type StepProps, variantKeys } from "../../model/experiments.ts";
import { StepForm } from "./step-form.tsx";

const w = lazyMessages.experiments;
const quietMs = 250;
const effectMin = 1;
const effectMax = 50;
const firstEffect = 10;
const firstLookback = 14;

interface Plan {
  sample_size_per_variant: number;
  recommended_sample_size: number;
  recommended_running_time_days: number | null;
  exposure_rate_per_day: number;
  advice: string | null;
}

export function RunningTime({ experiment, rejection, onDone }: StepProps) {
  const { running_time_calculation: planned, stats_config: stats } = experiment;
  const unsaved = useUnsavedFields("running time");
  const [effect, setEffect] = unsaved.field(
    "effect",
    toPercent(planned.minimum_detectable_effect ?? firstEffect),
  );
  const [rate, setRate] = unsaved.field(
    "rate",
    planned.exposure_rate_per_day === undefined ? "" : String(planned.exposure_rate_per_day),
  );
  const [method, setMethod] = unsaved.field("method", stats.method ?? "bayesian");
  const [isSequential, setSequential] = unsaved.field(
    "isSequential",
    stats.frequentist?.sequential !== false,
  );
  const [cuped, setCuped] = unsaved.field("cuped", stats.cuped?.enabled === true);
  const metric = experiment.metrics[0] ?? experiment.saved_metrics[0]?.query;
  const asked = useQuiet(
    metric &&
      JSON.stringify({
        metric,
        minimum_detectable_effect: effect / 100,
        number_of_variants: Math.max(2, variantKeys(experiment).length),
        sequential: method === "frequentist" && isSequential,
        ...(Number(rate) > 0 ? { exposure_rate_per_day: Number(rate) } : {}),
      }),
  );
  const plan = useResource<Plan>(
    asked === undefined ? null : `plan ${project.value?.id} ${asked}`,
    (signal) =>
      request(inProject("experiments/calculate_running_time/"), {
        method: "POST",
        body: JSON.parse(asked!) as object,
        signal,
      }),
  );
  const found = plan.failure === undefined ? plan.data : undefined;
  const send = async () => {
    const after = await changeExperiment(experiment.id, {
      running_time_calculation: {
        minimum_detectable_effect: effect,
        ...(found && {
          recommended_sample_size: found.recommended_sample_size,
          recommended_running_time: found.recommended_running_time_days,
          exposure_rate_per_day: found.exposure_rate_per_day,
        }),
      },
      stats_config: {
        ...stats,
        method,
        frequentist: { ...stats.frequentist, sequential: isSequential },
        cuped: { lookback_days: firstLookback, ...stats.cuped, enabled: cuped },
      },
    });
    onDone(after);
  };
  return (
    <StepForm
      title={w.steps.time}
      action={w.saveAndFinish}
      unsaved={unsaved}
      onSend={send}
      disabledReason={rejection}
    >
      {(errorOf) => (
        <>
          <label class="field">
            <span class="label">{w.effect}</span>
            <span class="row">
              <input
                class="grow"
                type="range"
                min={effectMin}
                max={effectMax}
                value={effect}
                aria-valuetext={`${effect}%`}
                onInput={(event) => setEffect(Number(event.currentTarget.value))}
              />
              <output class="number">{effect}%</output>
            </span>
          </label>
          <Field
            label={w.rate}
            type="number"
            min={0}
            step="any"
            value={rate}
            placeholder={found === undefined ? "" : String(Math.round(found.exposure_rate_per_day))}
            onInput={setRate}
            help={w.rateHelp}
          />
          <p role="status" class={plan.failure ? "error" : "plan"}>
            {metric === undefined
              ? w.planNeedsMetric
              : (plan.failure?.detail ??
                (plan.data ? <PlanText plan={plan.data} effect={effect} /> : `${messages.frame.loading}…`))}
          </p>
          <h3>{w.statistics}</h3>
          <Segments
            label={w.statistics}
            value={method}
            choices={Object.entries(w.methods) as [typeof method, string][]}
            onChange={setMethod}
          />
          <p class="help">{w.methodHelp[method]}</p>
          {method === "frequentist" && (
            <Checkbox label={w.sequential} isOn={isSequential} onChange={setSequential} />
          )}
          <Checkbox label={w.cuped} isOn={cuped} onChange={setCuped} />
          {errorOf("stats_config") && <p class="error">{errorOf("stats_config")}</p>}
        </>
      )}
    </StepForm>
  );
}

function PlanText({ plan, effect }: { plan: Plan; effect: number }) {
  const days = plan.recommended_running_time_days;
  const people = counted(plan.recommended_sample_size, "person", "people");
  return (
    <>
      {w.plan(effect, people, number(plan.sample_size_per_variant))}{" "}
      {days === null ? w.planNoRate : w.planDays(counted(days, "day", "days"))} {plan.advice}
    </>
  );
}

/** The planned effect is in percent, as in PostHog; drafts of earlier versions have a fraction. */
const toPercent = (effect: number) => Math.round(effect < 1 ? effect * 100 : effect);

/** The value after it has not changed for a moment. */
function useQuiet(value: string | undefined): string | undefined {
  const [quiet, setQuiet] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setQuiet(value), quietMs);
    return () => clearTimeout(timer);
  }, [value]);
  return quiet;
}
