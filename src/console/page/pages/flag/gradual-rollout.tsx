/** Schedules a gradual rollout: steps of one condition set, and optionally a guardrail that stops them. */

import { useRef, useState } from "preact/hooks";
import { getRolloutSteps, parsePercentages } from "../../../../flags/rules/shared-rules.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Checkbox, Field, Select, ShareField } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { toast } from "../../components/toast.tsx";
import { errorMessage } from "../../lib/api.ts";
import { dateTime, percent } from "../../lib/format.ts";
import { toLocalField } from "../../lib/wall-time.ts";
import { words } from "../../messages/index.ts";
import { useEventNames } from "../../model/definitions.ts";
import { changeFlag, type Flag, rolloutSummary } from "../../model/flags.ts";
import { scheduleChange } from "./schedule-dialog.tsx";

const w = words.flag.gradual;
const hourMs = 3_600_000;

export function GradualRollout({
  flag,
  onClose,
  onScheduled,
}: {
  flag: Flag;
  onClose: () => void;
  /** With the flag as it is then. */
  onScheduled: (flag: Flag) => void;
}) {
  const sets = flag.filters.groups ?? [];
  const [index, setIndex] = useState(String(sets.length - 1));
  const [percentages, setPercentages] = useState("5, 25, 50, 100");
  const [start, setStart] = useState(() => toLocalField(new Date(Math.ceil(Date.now() / hourMs) * hourMs)));
  const [interval, setInterval] = useState("24");
  const [turnsOn, setTurnsOn] = useState(!flag.active);
  const [hasGuardrail, setHasGuardrail] = useState(false);
  const [event, setEvent] = useState("$exception");
  const [limit, setLimit] = useState(5);
  const [minutes, setMinutes] = useState("60");
  const [error, setError] = useState<string>();
  /** Steps that were scheduled before an error: not repeated. */
  const done = useRef({ flag, steps: 0, isGuarded: false });
  const eventNames = useEventNames();
  const parsed = parsePercentages(percentages);
  const steps =
    parsed && start !== "" ? getRolloutSteps(parsed, new Date(start), Number(interval) * hourMs) : [];
  const existing = Array.isArray(flag.rollback_conditions) ? flag.rollback_conditions : [];
  const isReady =
    steps.length > 0 &&
    sets.length > 0 &&
    (!hasGuardrail || (event.trim() !== "" && Number(minutes) > 0 && !Number.isNaN(limit)));

  const schedule = async () => {
    if (!isReady) return;
    setError(undefined);
    try {
      if (hasGuardrail && !done.current.isGuarded) {
        const guardrail = {
          threshold_type: "event_rate",
          event: event.trim(),
          operator: "gt",
          threshold: limit / 100,
          window_minutes: Number(minutes),
        };
        done.current.flag = await changeFlag(flag.id, { rollback_conditions: [...existing, guardrail] });
        done.current.isGuarded = true;
      }
      const changes = [
        ...(turnsOn
          ? [{ payload: { operation: "update_status", value: true as unknown }, at: steps[0]!.at }]
          : []),
        ...steps.map(({ percentage, at }) => ({
          payload: {
            operation: "update_rollout",
            value: { condition_index: Number(index), rollout_percentage: percentage } as unknown,
          },
          at,
        })),
      ];
      for (const { payload, at } of changes.slice(done.current.steps)) {
        await scheduleChange(flag, payload, at);
        done.current.steps += 1;
      }
      toast(w.scheduled(flag.key));
      onClose();
      onScheduled(done.current.flag);
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  return (
    <Dialog
      title={w.title}
      size="large"
      onClose={onClose}
      onSubmit={schedule}
      actions={
        <>
          <Button onClick={onClose}>{words.frame.cancel}</Button>
          <Button kind="main" type="submit" isDisabled={!isReady}>
            {words.flag.pending.add}
          </Button>
        </>
      }
    >
      {sets.length === 0 && <p class="error">{w.noSets}</p>}
      {sets.length > 1 && (
        <Select
          label={w.set}
          value={index}
          choices={sets.map(
            (set, at) =>
              [String(at), `${words.flag.set(at + 1)}: ${rolloutSummary({ groups: [set] })}`] as const,
          )}
          onChange={setIndex}
        />
      )}
      <div class="columns">
        <Field
          label={w.percentages}
          value={percentages}
          onInput={setPercentages}
          error={parsed === undefined ? w.percentagesWrong : undefined}
        />
        <Field label={w.start} type="datetime-local" value={start} onInput={setStart} />
        <Select
          label={w.interval}
          value={interval}
          choices={Object.entries(w.intervals)}
          onChange={setInterval}
        />
      </div>
      <ol class="plain-list" aria-label={w.steps}>
        {steps.map(({ percentage, at }) => (
          <li key={percentage}>
            <b>{percent(percentage / 100)}</b> <span class="muted">{dateTime(at)}</span>
          </li>
        ))}
      </ol>
      {!flag.active && <Checkbox label={w.turnOn} isOn={turnsOn} onChange={setTurnsOn} />}
      {existing.length > 0 && <p class="help">{w.guarded(existing.length)}</p>}
      <Checkbox label={w.guardrail} isOn={hasGuardrail} onChange={setHasGuardrail} />
      {hasGuardrail && (
        <>
          <div class="columns">
            <Field label={w.event} value={event} onInput={setEvent} suggestions={eventNames} />
            <ShareField label={w.limit} value={limit} onInput={setLimit} />
            <Field label={w.minutes} type="number" min={1} value={minutes} onInput={setMinutes} />
          </div>
          <p class="help">{w.guardrailHelp}</p>
        </>
      )}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </Dialog>
  );
}
