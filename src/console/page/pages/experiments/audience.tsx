/** Third step of an experiment: who takes part, the holdout, and what counts as an exposure. */

import { Conditions } from "../../components/conditions.tsx";
import { Field, Select, ShareField } from "../../components/fields.tsx";
import { EventField } from "../../components/name-fields.tsx";
import { request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { changeExperiment, type Holdout, type StepProps } from "../../model/experiments.ts";
import { type ConditionSet, changeFlag } from "../../model/flags.ts";
import { StepForm } from "./step-form.tsx";

const w = lazyMessages.experiments;
const holdoutsMax = 500;

export function Audience({ experiment, rejection, onDone }: StepProps) {
  const { feature_flag: flag, exposure_criteria: criteria } = experiment;
  const groups = flag.filters.groups ?? [];
  const unsaved = useUnsavedFields("audience");
  const [group, setGroup] = unsaved.field<ConditionSet>(
    "group",
    groups[0] ?? { properties: [], rollout_percentage: 100 },
  );
  const [holdout, setHoldout] = unsaved.field("holdout", String(experiment.holdout_id ?? ""));
  const [exposure, setExposure] = unsaved.field("exposure", criteria.exposure_config?.event ?? "");
  const [activation, setActivation] = unsaved.field("activation", criteria.activation_config?.event ?? "");
  const [multiple, setMultiple] = unsaved.field("multiple", criteria.multiple_variant_handling ?? "exclude");
  const [minimum, setMinimum] = unsaved.field("minimum", String(experiment.minimum_exposures));
  const holdouts = useResource<{ results: Holdout[] }>(`holdouts ${project.value?.id}`, (signal) =>
    request(inProject(`experiment_holdouts/?limit=${holdoutsMax}`), { signal }),
  );
  const isDraft = experiment.status === "draft";
  const isSimple = groups.length < 2 && isDraft;
  const config = (before: { event: string } | null | undefined, event: string) =>
    event.trim() === ""
      ? null
      : { kind: "ExperimentEventExposureConfig", properties: [], ...before, event: event.trim() };
  const send = async () => {
    if (isSimple && JSON.stringify(group) !== JSON.stringify(groups[0]))
      await changeFlag(flag.id, { filters: { ...flag.filters, groups: [group] } });
    const after = await changeExperiment(experiment.id, {
      exposure_criteria: {
        ...criteria,
        exposure_config: config(criteria.exposure_config, exposure),
        activation_config: config(criteria.activation_config, activation),
        multiple_variant_handling: multiple,
      },
      minimum_exposures: Number(minimum),
      ...(isDraft ? { holdout_id: holdout === "" ? null : Number(holdout) } : {}),
    });
    onDone(after);
  };
  return (
    <StepForm title={w.steps.audience} unsaved={unsaved} onSend={send} disabledReason={rejection}>
      {(errorOf) => (
        <>
          <h3>{w.people}</h3>
          {isSimple ? (
            <>
              <Conditions
                conditions={group.properties ?? []}
                kinds={["person", "cohort"]}
                onChange={(properties) => setGroup({ ...group, properties })}
              />
              <ShareField
                label={messages.flag.rollout}
                value={group.rollout_percentage ?? 100}
                onInput={(share) => setGroup({ ...group, rollout_percentage: share })}
                class="share-field"
              />
              {errorOf("filters") && <p class="error">{errorOf("filters")}</p>}
            </>
          ) : (
            <p>
              {w.onFlagPage} <a href={to(`flags/${flag.id}`)}>{flag.key}</a>
            </p>
          )}
          <Select
            label={w.holdout}
            value={holdout}
            disabledReason={!isDraft && w.holdoutFixed}
            choices={[
              ["", w.noHoldout],
              ...(holdouts.data?.results ?? []).map(
                ({ id, name, filters }) =>
                  [String(id), w.holdoutNamed(name, filters[0]?.rollout_percentage ?? 0)] as const,
              ),
            ]}
            onChange={setHoldout}
          />
          <h3>{w.exposures}</h3>
          <EventField
            label={w.exposureEvent}
            value={exposure}
            onInput={setExposure}
            placeholder="$feature_flag_called"
            help={w.exposureHelp}
            error={errorOf("exposure_criteria")}
          />
          <EventField
            label={w.activationEvent}
            value={activation}
            onInput={setActivation}
            help={w.activationHelp}
          />
          <div class="row bottom">
            <Select
              label={w.multiple}
              value={multiple}
              choices={Object.entries(w.multiples) as [typeof multiple, string][]}
              onChange={setMultiple}
            />
            <Field
              label={w.minimum}
              type="number"
              min={0}
              isRequired
              value={minimum}
              onInput={setMinimum}
              error={errorOf("minimum_exposures")}
            />
          </div>
          <p class="help">{w.minimumHelp}</p>
        </>
      )}
    </StepForm>
  );
}
