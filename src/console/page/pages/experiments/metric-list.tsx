/** The metrics of an experiment: by role, each with its value of the last days; add, change, remove. */

import { useState } from "preact/hooks";
import { Select } from "../../components/fields.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { decimal, number, percent } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  changeExperiment,
  type Experiment,
  getEvents,
  type Metric,
  metricName,
  type SavedMetric,
} from "../../model/experiments.ts";
import { MetricForm } from "./metric-form.tsx";

const w = lazyMessages.experiments;
const listMax = 500;

type Role = "primary" | "secondary";
const lists = { primary: "metrics", secondary: "metrics_secondary" } as const;

type Opened = { role: Role; metric?: Metric };

export function MetricList({
  experiment,
  rejection,
  onChanged,
}: {
  experiment: Experiment;
  rejection: string | false;
  onChanged: (after: Experiment) => void;
}) {
  const [opened, setOpened] = useState<Opened>();
  const patch = async (body: object) => {
    onChanged(await changeExperiment(experiment.id, body));
    setOpened(undefined);
  };
  const put = (role: Role, changed: Metric, before: Metric | undefined) => {
    const all = experiment[lists[role]];
    return patch({
      [lists[role]]:
        before === undefined
          ? [...all, changed]
          : all.map((metric) => (metric.uuid === before.uuid ? changed : metric)),
    });
  };
  const remove = (body: object) => void patch(body).catch(toastError);
  return (
    <div class="stack">
      {(["primary", "secondary"] as const).map((role) => {
        const own = experiment[lists[role]];
        const saved = experiment.saved_metrics.filter(
          ({ metadata }) =>
            (metadata.type ?? "primary") === role || (role === "secondary" && metadata.type === "guardrail"),
        );
        return (
          <section key={role} class="stack tight">
            <div class="row apart">
              <h3>{w.roles[role]}</h3>
              <Button
                icon="plus"
                label={role === "primary" ? w.addMetric : w.addSecondary}
                disabledReason={rejection}
                onClick={() => setOpened({ role })}
              >
                {role === "primary" ? w.addMetric : w.addSecondary}
              </Button>
            </div>
            {own.length + saved.length === 0 && (
              <p class="muted">{role === "primary" ? w.noPrimary : w.noMetrics}</p>
            )}
            <ul class="lines">
              {own.map((metric) => (
                <MetricLine
                  key={metric.uuid}
                  metric={metric}
                  name={metric.name}
                  rejection={rejection}
                  onEdit={() => setOpened({ role, metric })}
                  onRemove={() => remove({ [lists[role]]: own.filter((item) => item !== metric) })}
                />
              ))}
              {saved.map(({ saved_metric: id, name, query, metadata }) => (
                <MetricLine
                  key={id}
                  metric={query}
                  name={name}
                  isSaved
                  isGuardrail={metadata.type === "guardrail"}
                  rejection={rejection}
                  onRemove={() =>
                    remove({
                      saved_metrics_ids: experiment.saved_metrics_ids.filter(
                        (savedMetricsId) => savedMetricsId.id !== id,
                      ),
                    })
                  }
                />
              ))}
            </ul>
          </section>
        );
      })}
      <SavedChoice
        experiment={experiment}
        rejection={rejection}
        onChoose={(id) =>
          remove({
            saved_metrics_ids: [...experiment.saved_metrics_ids, { id, metadata: { type: "primary" } }],
          })
        }
      />
      {opened && (
        <MetricForm
          title={opened.metric ? w.editMetric : opened.role === "primary" ? w.addMetric : w.addSecondary}
          metric={opened.metric}
          action={opened.metric ? messages.frame.save : w.addMetric}
          onClose={() => setOpened(undefined)}
          onSend={(metric) => put(opened.role, metric, opened.metric)}
        />
      )}
    </div>
  );
}

function MetricLine({
  metric,
  name,
  isSaved,
  isGuardrail,
  rejection,
  onEdit,
  onRemove,
}: {
  metric: Metric;
  name: string | undefined;
  isSaved?: boolean;
  isGuardrail?: boolean;
  rejection: string | false;
  onEdit?: () => void;
  onRemove: () => void;
}) {
  const events = getEvents(metric);
  const shown = metricName({ name: name ?? null }, events);
  return (
    <li class="row apart">
      <span class="stack tight">
        <span class="row">
          <b>{shown}</b> <Badge>{w.types[metric.metric_type]}</Badge>
          <Badge>{w.goals[metric.goal]}</Badge>
          {(metric.guardrail || isGuardrail) && <Badge tone="warn">{w.guardrailShort}</Badge>}
          {isSaved && <Badge>{w.saved}</Badge>}
        </span>
        <span class="muted">
          {shown !== events && `${events} · `}
          <Baseline metric={metric} />
        </span>
      </span>
      <span class="row">
        {onEdit && (
          <Button label={w.editNamed(shown)} disabledReason={rejection} onClick={onEdit}>
            {w.edit}
          </Button>
        )}
        <Button
          kind="quiet"
          icon="trash"
          label={w.removePart(shown)}
          disabledReason={rejection}
          onClick={onRemove}
        />
      </span>
    </li>
  );
}

interface Plan {
  baseline_value: number;
  exposure_rate_per_day: number;
}

/** Any effect: only the baseline of the answer is shown. */
const anyEffect = 0.1;

/** The metric's value over the last two weeks. */
function Baseline({ metric }: { metric: Metric }) {
  const { uuid: _, ...body } = metric;
  const plan = useBackgroundResource<Plan>(
    `baseline ${project.value?.id} ${JSON.stringify(body)}`,
    (signal) =>
      request(inProject("experiments/calculate_running_time/"), {
        method: "POST",
        body: { metric: body, minimum_detectable_effect: anyEffect },
        signal,
      }),
  );
  if (plan.failure !== undefined) return <>{plan.failure.detail}</>;
  if (plan.data === undefined) return <>{messages.frame.loading}…</>;
  const { baseline_value: value, exposure_rate_per_day: rate } = plan.data;
  const isShare = metric.metric_type === "funnel" || metric.metric_type === "retention";
  return <>{w.baseline(isShare ? percent(value) : decimal(value), number(Math.round(rate)))}</>;
}

function SavedChoice({
  experiment,
  rejection,
  onChoose,
}: {
  experiment: Experiment;
  rejection: string | false;
  onChoose: (id: number) => void;
}) {
  const all = useResource<{ results: SavedMetric[] }>(`saved metrics ${project.value?.id}`, (signal) =>
    request(inProject(`experiment_saved_metrics/?limit=${listMax}`), { signal }),
  );
  const used = new Set(experiment.saved_metrics_ids.map(({ id }) => id));
  const free = (all.data?.results ?? []).filter(({ id }) => !used.has(id));
  if (free.length === 0) return null;
  return (
    <Select
      label={w.addSaved}
      value=""
      disabledReason={rejection}
      choices={[["", w.choose], ...free.map(({ id, name }) => [String(id), name] as const)]}
      onChange={(id) => id !== "" && onChoose(Number(id))}
    />
  );
}
