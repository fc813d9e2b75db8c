/** Schedules the changes of a draft for a later time. */

import { useState } from "preact/hooks";
import { ChangeLines } from "../../components/change-lines.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { toast } from "../../components/toast.tsx";
import { errorMessage, request } from "../../lib/api.ts";
import { dateTime } from "../../lib/format.ts";
import { inProject } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import { changedFields, type Draft, getProblems } from "../../model/draft.ts";
import type { Flag } from "../../model/flags.ts";

const w = words.flag.pending;

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
  const [at, setAt] = useState("");
  const [error, setError] = useState<string>();
  const [problem] = getProblems(draft).values();
  const schedule = async () => {
    if (at === "" || problem !== undefined) return;
    try {
      const time = new Date(at);
      await scheduleChange(flag, { operation: "update", value: changedFields(flag, draft) }, time);
      toast(w.scheduled(dateTime(time)));
      onClose();
      onScheduled();
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  return (
    <Dialog
      title={w.scheduleChange}
      onClose={onClose}
      onSubmit={schedule}
      actions={
        <>
          <Button onClick={onClose}>{words.frame.cancel}</Button>
          <Button kind="main" type="submit" isDisabled={at === "" || problem !== undefined}>
            {w.add}
          </Button>
        </>
      }
    >
      <h3>{words.flag.changes}</h3>
      <ChangeLines lines={changes} />
      <Field
        label={w.when}
        type="datetime-local"
        value={at}
        onInput={setAt}
        help={w.help}
        error={error ?? problem}
        isRequired
      />
    </Dialog>
  );
}
