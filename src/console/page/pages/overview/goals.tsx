/** Goals and their conversion; a dialog changes them. */

import { useState } from "preact/hooks";
import { Field, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { EventField } from "../../components/name-fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { useForm } from "../../lib/form.ts";
import { number, percent } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import {
  type Goal,
  type GoalRow,
  readGoalSettings,
  readGoals,
  saveGoals,
  type View,
} from "../../model/overview.ts";
import { Panel, ShareBar } from "./panel.tsx";

const w = messages.overview;
const refreshMs = 60_000;

export function Goals({
  view,
  resourceKey,
  onChoose,
}: {
  view: View;
  resourceKey: string;
  /** The lists show the conversions of this goal; undefined: of none. */
  onChoose: (goal: string | undefined) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const goals = useBackgroundResource<GoalRow[]>(
    `overview goals ${resourceKey}`,
    (signal) => readGoals(view, signal),
    refreshMs,
  );
  return (
    <section class="overview-panel" aria-label={w.goals}>
      <div class="panel-head">
        <h2>{w.goals}</h2>
        <Button kind="quiet" onClick={() => setOpen(true)}>
          {w.editGoals}
        </Button>
      </div>
      <Panel resource={goals} rows={2}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="muted">{w.noGoals}</p>
          ) : (
            <GoalTable rows={rows} current={view.goal} onChoose={onChoose} />
          )
        }
      </Panel>
      {isOpen && (
        <EditGoals
          onClose={() => {
            setOpen(false);
            goals.reload();
          }}
        />
      )}
    </section>
  );
}

function GoalTable({
  rows,
  current,
  onChoose,
}: {
  rows: readonly GoalRow[];
  current: string | undefined;
  onChoose: (goal: string | undefined) => void;
}) {
  return (
    <table class="share-table">
      <thead>
        <tr>
          {[w.goal, w.visitors, w.conversions, w.rate].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, visitors, conversions, rate }) => (
          <tr key={name}>
            <th scope="row">
              <ShareBar share={rate[0] ?? 0} />
              <button
                type="button"
                class="share-name"
                aria-pressed={name === current}
                title={w.chooseGoal}
                onClick={() => onChoose(name === current ? undefined : name)}
              >
                {name}
              </button>
            </th>
            <td>{number(visitors[0] ?? 0)}</td>
            <td>{number(conversions[0] ?? 0)}</td>
            <td>{percent(rate[0] ?? 0)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function EditGoals({ onClose }: { onClose: () => void }) {
  const stored = useResource<Goal[]>(`overview goal settings ${project.value?.id}`, readGoalSettings);
  const save = async (goals: readonly Goal[]) => {
    await saveGoals(goals);
    stored.reload();
  };
  const form = useForm({ name: "", kind: "event", target: "" }, async ({ name, kind, target }) => {
    const goal = { name, event: kind === "event" ? target : null, path: kind === "path" ? target : null };
    await save([...(stored.data ?? []), goal]);
    form.set({ name: "", target: "" });
  });
  const isEvent = form.values.kind === "event";
  return (
    <FormDialog title={w.editGoals} form={form} action={w.addGoal} onClose={onClose}>
      <Content resource={stored} rows={2}>
        {(goals) => (
          <ul class="plain-list">
            {goals.map((goal) => (
              <li key={goal.name} class="row apart">
                <span>
                  {goal.name} <code>{goal.event ?? goal.path}</code>
                </span>
                <Button
                  kind="quiet"
                  icon="trash"
                  label={w.removeGoal(goal.name)}
                  onClick={() => void form.run(() => save(goals.filter((item) => item.name !== goal.name)))}
                />
              </li>
            ))}
          </ul>
        )}
      </Content>
      <Field label={w.goalName} {...form.input("name")} isRequired />
      <Select label={w.goalKind} choices={Object.entries(w.goalKinds)} {...form.choice("kind")} />
      {isEvent ? (
        <EventField label={w.goalEvent} {...form.input("target")} error={form.error} isRequired />
      ) : (
        <Field
          label={w.goalPath}
          placeholder="/thanks"
          {...form.input("target")}
          error={form.error}
          isRequired
        />
      )}
    </FormDialog>
  );
}
