/** Goals and their conversion; a dialog changes them. */

import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { errorMessage } from "../../lib/api.ts";
import { number, percent } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import {
  type Goal,
  type GoalRow,
  readGoalSettings,
  readGoals,
  saveGoals,
  type View,
} from "../../model/overview.ts";
import { Panel, ShareBar } from "./panel.tsx";

const w = words.overview;
const refreshMs = 60_000;

export function Goals({ view, resourceKey }: { view: View; resourceKey: string }) {
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
      <Panel of={goals} rows={2}>
        {(rows) => (rows.length === 0 ? <p class="muted">{w.noGoals}</p> : <GoalTable rows={rows} />)}
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

function GoalTable({ rows }: { rows: readonly GoalRow[] }) {
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
              <span class="share-name">{name}</span>
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
  const [name, setName] = useState("");
  const [kind, setKind] = useState("event");
  const [target, setTarget] = useState("");
  const [error, setError] = useState<string>();
  const save = async (goals: readonly Goal[]) => {
    try {
      await saveGoals(goals);
      stored.reload();
      setError(undefined);
      return true;
    } catch (failure) {
      setError(errorMessage(failure));
      return false;
    }
  };
  const add = async () => {
    const goal = { name, event: kind === "event" ? target : null, path: kind === "path" ? target : null };
    if (!(await save([...(stored.data ?? []), goal]))) return;
    setName("");
    setTarget("");
  };
  return (
    <Dialog
      title={w.editGoals}
      onClose={onClose}
      onSubmit={add}
      actions={
        <Button kind="main" type="submit">
          {w.addGoal}
        </Button>
      }
    >
      <Content of={stored} rows={2}>
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
                  onClick={() => void save(goals.filter((one) => one.name !== goal.name))}
                />
              </li>
            ))}
          </ul>
        )}
      </Content>
      <Field label={w.goalName} value={name} onInput={setName} isRequired />
      <Select label={w.goalKind} value={kind} choices={Object.entries(w.goalKinds)} onChange={setKind} />
      <Field
        label={kind === "event" ? w.goalEvent : w.goalPath}
        value={target}
        onInput={setTarget}
        placeholder={kind === "event" ? undefined : "/thanks"}
        error={error}
        isRequired
      />
    </Dialog>
  );
}
