/** Saved metrics: metrics that several experiments use. */

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { Empty, ResourceList } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { getEvents, type Metric, metricName, type SavedMetric } from "../../model/experiments.ts";
import { MetricForm } from "./metric-form.tsx";

const w = lazyMessages.experiments;
const listMax = 500;
const path = (rest = "") => inProject(`experiment_saved_metrics/${rest}`);

type Opened = { kind: "edit"; saved?: SavedMetric } | { kind: "remove"; saved: SavedMetric };

export function SavedMetrics() {
  const [opened, setOpened] = useState<Opened>();
  const all = useResource<{ results: SavedMetric[] }>(`saved metrics ${project.value?.id}`, (signal) =>
    request(path(`?limit=${listMax}`), { signal }),
  );
  const close = () => setOpened(undefined);
  const save = async (metric: Metric, before: SavedMetric | undefined) => {
    await request(path(before === undefined ? "" : `${before.id}/`), {
      method: before === undefined ? "POST" : "PATCH",
      body: { name: metricName(metric, getEvents(metric)), query: metric },
    });
    close();
    all.reload();
  };
  return (
    <section class="card stack">
      <div class="row apart">
        <p class="help">{w.savedHelp}</p>
        <Button icon="plus" onClick={() => setOpened({ kind: "edit" })}>
          {w.newSavedMetric}
        </Button>
      </div>
      <ResourceList resource={all} rows={2} empty={<Empty title={w.noSaved} icon="chart" />}>
        {(saved) => (
          <li key={saved.id} class="row apart">
            <span class="stack tight">
              <span class="row">
                <b>{saved.name}</b> <Badge>{w.types[saved.query.metric_type]}</Badge>
                <Badge>{w.goals[saved.query.goal]}</Badge>
              </span>
              <span class="muted">{getEvents(saved.query)}</span>
            </span>
            <span class="row">
              <Button label={w.editNamed(saved.name)} onClick={() => setOpened({ kind: "edit", saved })}>
                {w.edit}
              </Button>
              <Button
                kind="quiet"
                icon="trash"
                label={w.deleteNamed(saved.name)}
                onClick={() => setOpened({ kind: "remove", saved })}
              />
            </span>
          </li>
        )}
      </ResourceList>
      {opened?.kind === "edit" && (
        <MetricForm
          title={opened.saved === undefined ? w.newSavedMetric : w.editNamed(opened.saved.name)}
          metric={opened.saved && { ...opened.saved.query, name: opened.saved.name }}
          action={opened.saved === undefined ? w.createSaved : messages.frame.save}
          onClose={close}
          onSend={(metric) => save(metric, opened.saved)}
        />
      )}
      {opened?.kind === "remove" && (
        <ConfirmDialog
          title={w.deleteSaved}
          text={w.deleteSavedText(opened.saved.name)}
          action={w.deleteSaved}
          onClose={close}
          onYes={() =>
            void request(path(`${opened.saved.id}/`), { method: "DELETE" }).then(all.reload, toastError)
          }
        />
      )}
    </section>
  );
}
