/** Schedules a gradual rollout: steps of one condition set, and optionally a guardrail that stops them. */

import { useRef } from "preact/hooks";
import { getRolloutSteps, parsePercentages } from "../../../../flags/rules/shared-rules.ts";
import { Checkbox, Field, Select, ShareField } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { EventField } from "../../components/name-fields.tsx";
import { toast } from "../../components/toast.tsx";
import { useForm } from "../../lib/form.ts";
import { dateTime, percent } from "../../lib/format.ts";
import { toLocalField } from "../../lib/wall-time.ts";
import { messages } from "../../messages/index.ts";
import { changeFlag, type Flag, rolloutSummary } from "../../model/flags.ts";
import { scheduleChange } from "./schedule-dialog.tsx";

const w = messages.flag.gradual;
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
  /** Steps that were scheduled before an error: not repeated. */
  const done = useRef({ flag, steps: 0, isGuarded: false });
  const form = useForm(
    () => ({
      index: String(sets.length - 1),
      percentages: "5, 25, 50, 100",
      start: toLocalField(new Date(Math.ceil(Date.now() / hourMs) * hourMs)),
      interval: "24",
      turnsOn: !flag.active,
      hasGuardrail: false,
      event: "$exception",
      limit: 5,
      minutes: "60",
    }),
    schedule,
  );
  const { percentages, start, interval, hasGuardrail, event, limit, minutes } = form.values;
  const parsed = parsePercentages(percentages);
  const steps =
    parsed && start !== "" ? getRolloutSteps(parsed, new Date(start), Number(interval) * hourMs) : [];
  const existing = Array.isArray(flag.rollback_conditions) ? flag.rollback_conditions : [];
  const isReady =
    steps.length > 0 &&
    sets.length > 0 &&
    (!hasGuardrail || (event.trim() !== "" && Number(minutes) > 0 && !Number.isNaN(limit)));

  async function schedule({ index, turnsOn }: { index: string; turnsOn: boolean }) {
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
  }
  return (
    <FormDialog
      title={w.title}
      form={form}
      action={messages.flag.pending.add}
      size="large"
      isDisabled={!isReady}
      onCancel={onClose}
      onClose={onClose}
    >
      {sets.length === 0 && <p class="error">{w.noSets}</p>}
      {sets.length > 1 && (
        <Select
          label={w.set}
          choices={sets.map(
            (set, at) =>
              [String(at), `${messages.flag.set(at + 1)}: ${rolloutSummary({ groups: [set] })}`] as const,
          )}
          {...form.choice("index")}
        />
      )}
      <div class="columns">
        <Field
          label={w.percentages}
          {...form.input("percentages")}
          error={parsed === undefined ? w.percentagesWrong : undefined}
        />
        <Field label={w.start} type="datetime-local" {...form.input("start")} />
        <Select label={w.interval} choices={Object.entries(w.intervals)} {...form.choice("interval")} />
      </div>
      <ol class="plain-list" aria-label={w.steps}>
        {steps.map(({ percentage, at }) => (
          <li key={percentage}>
            <b>{percent(percentage / 100)}</b> <span class="muted">{dateTime(at)}</span>
          </li>
        ))}
      </ol>
      {!flag.active && <Checkbox label={w.turnOn} {...form.toggle("turnsOn")} />}
      {existing.length > 0 && <p class="help">{w.guarded(existing.length)}</p>}
      <Checkbox label={w.guardrail} {...form.toggle("hasGuardrail")} />
      {hasGuardrail && (
        <>
          <div class="columns">
            <EventField label={w.event} {...form.input("event")} />
            <ShareField label={w.limit} value={limit} onInput={(limit) => form.set({ limit })} />
            <Field label={w.minutes} type="number" min={1} {...form.input("minutes")} />
          </div>
          <p class="help">{w.guardrailHelp}</p>
        </>
      )}
    </FormDialog>
  );
}
