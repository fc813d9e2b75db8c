/** Schedules the changes of a draft for a later time. */

import { ChangeLines } from "../../components/change-list.tsx";
import { Field } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { toast } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { dateTime } from "../../lib/format.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { changedFields, type Draft, getProblems } from "../../model/draft.ts";
import type { Flag } from "../../model/flags.ts";

const w = messages.flag.pending;

/** Creates a scheduled change of a flag. */
export const scheduleChange = (flag: Flag, payload: { operation: string; value: unknown }, at: Date) =>
  request(inProject("scheduled_changes/"), {
    method: "POST",
    body: {
      record_id: flag.id,
      model_name: "FeatureFlag",
      payload,
      scheduled_at: at.toISOString(),
    },
  });

export function ScheduleDialog({
  flag,
  draft,
  changes,
  onClose,
  onScheduled,
}: {
  /** The flag that the draft is based on. */
  flag: Flag;
  draft: Draft;
  changes: readonly string[];
  onClose: () => void;
  onScheduled: () => void;
}) {
  const [problem] = getProblems(draft).values();
  const form = useForm({ at: "" }, async ({ at }) => {
    const time = new Date(at);
    await scheduleChange(flag, { operation: "update", value: changedFields(flag, draft) }, time);
    toast(w.scheduled(dateTime(time)));
    onClose();
    onScheduled();
  });
  return (
    <FormDialog
      title={w.scheduleChange}
      form={form}
      action={w.add}
      isDisabled={form.values.at === "" || problem !== undefined}
      onCancel={onClose}
      onClose={onClose}
    >
      <h3>{messages.flag.changes}</h3>
      <ChangeLines lines={changes} />
      <Field
        label={w.when}
        type="datetime-local"
        help={w.help}
        {...form.input("at")}
        error={form.error ?? problem}
        isRequired
      />
    </FormDialog>
  );
}
