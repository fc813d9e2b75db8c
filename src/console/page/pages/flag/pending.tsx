/** Pending changes: scheduled changes and change requests. */

import { useState } from "preact/hooks";
import { Field, Select } from "../../components/fields.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { Proposals } from "../../components/proposals.tsx";
import { toastError } from "../../components/toast.tsx";
import type { Refine } from "../../lib/api.ts";
import { queryString, request } from "../../lib/api.ts";
import type { ScheduledChange } from "../../lib/api-types.ts";
import { dateTime, elsewhere, percent } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { toLocalField } from "../../lib/wall-time.ts";
import { messages } from "../../messages/index.ts";
import { type Draft, differences, toDraft } from "../../model/draft.ts";
import { type Flag, userName } from "../../model/flags.ts";

const w = messages.flag.pending;
/** Changes that the bar names. */
const shownMax = 4;

type Scheduled = Refine<ScheduledChange, { payload: { operation: string; value: unknown } }>;

/** A flag's draft with the fields of a PATCH applied. */
function withChanges(flag: Flag, changes: Record<string, unknown>): Draft {
  return toDraft({ ...flag, ...(changes as Partial<Flag>) });
}

function getLines(flag: Flag, changes: Record<string, unknown>): string[] {
  const lines = differences(toDraft(flag), withChanges(flag, changes));
  if (typeof changes.active === "boolean" && changes.active !== flag.active) {
    lines.unshift(changes.active ? messages.activity.switchedOn : messages.activity.switchedOff);
  }
  if (changes.deleted === true) lines.unshift(w.delete);
  return lines;
}

/** Pending change requests of a flag. */
export function FlagProposals({
  flag,
  ...more
}: {
  flag: Flag;
  /** Changes when there may be a new change request. */
  round: number;
  disabledReason: string | false;
  onDecided: () => void;
}) {
  return (
    <Proposals
      target={{ flag_id: flag.id }}
      version={flag.version}
      getLines={({ changes }) => getLines(flag, changes)}
      {...more}
    />
  );
}

const useScheduled = (flag: Flag, round: number) =>
  useResource<{ results: Scheduled[] }>(`scheduled ${flag.id} ${flag.version} ${round}`, (signal) =>
    request(inProject(`scheduled_changes/${queryString({ record_id: flag.id })}`), { signal }),
  );

/** Pending scheduled changes in one line. @param round changes when there may be a new one. */
export function ScheduledBar({ flag, round }: { flag: Flag; round: number }) {
  const { set } = useAddress();
  const pending = (useScheduled(flag, round).data?.results ?? [])
    .filter(({ executed_at: at }) => at === null)
    .reverse();
  if (pending.length === 0) return null;
  return (
    <section class="bar" aria-label={w.schedule}>
      <span>
        <b>{w.scheduledCount(pending.length)}</b>{" "}
        {pending
          .slice(0, shownMax)
          .map((change) => `${dateTime(change.scheduled_at)}: ${toDisplayString(flag, change)}`)
          .join(" · ")}
      </span>
      <Button onClick={() => set({ tab: "settings" }, true)}>{w.showSchedule}</Button>
    </section>
  );
}

/** Scheduled changes, executed ones included. */
export function Schedule({
  flag,
  round,
  disabledReason,
}: {
  flag: Flag;
  /** Changes when there may be a new one. */
  round: number;
  disabledReason: string | false;
}) {
  const [edited, setEdited] = useState<number>();
  const found = useScheduled(flag, round);
  const cancelScheduled = ({ id }: Scheduled) =>
    request(inProject(`scheduled_changes/${id}/`), { method: "DELETE" }).then(found.reload, toastError);
  const onDone = () => {
    setEdited(undefined);
    found.reload();
  };
  return (
    <section class="card stack">
      <h2>{w.schedule}</h2>
      <ul class="lines">
        {(found.data?.results ?? []).map((change) => (
          <li key={change.id} class="stack tight">
            <div class="row apart">
              <span>
                <b title={elsewhere(change.scheduled_at)}>{dateTime(change.scheduled_at)}</b>{" "}
                {toDisplayString(flag, change)} <span class="muted">{userName(change.created_by)}</span>{" "}
                {change.failure_reason ? (
                  <Badge tone="bad">{change.failure_reason}</Badge>
                ) : (
                  change.executed_at && <Badge tone="good">{w.done}</Badge>
                )}
              </span>
              {!change.executed_at && (
                <span class="row">
                  <Button
                    kind="quiet"
                    label={w.change(dateTime(change.scheduled_at))}
                    disabledReason={disabledReason}
                    onClick={() => setEdited(edited === change.id ? undefined : change.id)}
                  >
                    {w.edit}
                  </Button>
                  <Button
                    kind="quiet"
                    icon="trash"
                    label={w.cancelScheduled(dateTime(change.scheduled_at))}
                    disabledReason={disabledReason}
                    onClick={() => void cancelScheduled(change)}
                  />
                </span>
              )}
            </div>
            {edited === change.id && (
              <ScheduleForm flag={flag} disabledReason={disabledReason} change={change} onDone={onDone} />
            )}
          </li>
        ))}
      </ul>
      {edited === undefined && <ScheduleForm flag={flag} disabledReason={disabledReason} onDone={onDone} />}
      <p class="help">{w.help}</p>
    </section>
  );
}

type What = "on" | "off" | "same";

/** Form for a new scheduled change, or for changing one. */
function ScheduleForm({
  flag,
  disabledReason,
  change,
  onDone,
}: {
  flag: Flag;
  disabledReason: string | false;
  change?: Scheduled;
  onDone: () => void;
}) {
  const [at, setAt] = useState(change ? toLocalField(change.scheduled_at) : "");
  const [what, setWhat] = useState<What>(change ? getSubjectName(change) : flag.active ? "off" : "on");
  const save = () => {
    const payload = { operation: "update_status", value: what === "on" };
    const body = {
      ...(change ? {} : { record_id: flag.id, model_name: "FeatureFlag" }),
      ...(what === "same" ? {} : { payload }),
      scheduled_at: new Date(at).toISOString(),
    };
    const path = change ? `scheduled_changes/${change.id}/` : "scheduled_changes/";
    request(inProject(path), { method: change ? "PATCH" : "POST", body }).then(() => {
      setAt("");
      onDone();
    }, toastError);
  };
  const choices = Object.entries(w.actions) as [What, string][];
  return (
    <div class="row bottom">
      <Select
        label={w.action}
        value={what}
        disabledReason={disabledReason}
        choices={choices.filter(([name]) => name !== "same" || (change && getSubjectName(change) === "same"))}
        onChange={setWhat}
      />
      <Field label={w.when} type="datetime-local" value={at} onInput={setAt} isDisabled={!!disabledReason} />
      <Button
        icon={change ? "check" : "plus"}
        disabledReason={disabledReason}
        isDisabled={at === ""}
        onClick={save}
      >
        {change ? w.save : w.add}
      </Button>
      {change && (
        <Button kind="quiet" onClick={onDone}>
          {messages.frame.cancel}
        </Button>
      )}
    </div>
  );
}

/** Subject of a scheduled change in the form; "same" for changes that the form cannot express. */
function getSubjectName({ payload: { operation, value } }: Scheduled): What {
  if (operation !== "update_status") return "same";
  return value === true ? "on" : "off";
}

function toDisplayString(flag: Flag, { payload }: Scheduled): string {
  if (payload.operation === "update_status") return payload.value === true ? w.actions.on : w.actions.off;
  if (payload.operation === "update" && typeof payload.value === "object" && payload.value !== null) {
    return getLines(flag, payload.value as Record<string, unknown>).join("; ") || w.nothing;
  }
  if (payload.operation === "update_rollout" && typeof payload.value === "object" && payload.value !== null) {
    const { condition_index: index, rollout_percentage: share } = payload.value as Record<string, number>;
    return messages.flag.gradual.step((index ?? 0) + 1, percent((share ?? 0) / 100));
  }
  return payload.operation.replaceAll("_", " ");
}
