/** Creates a change request for a change that needs another user's approval. */

import { useState } from "preact/hooks";
import { ApiError } from "../lib/api.ts";
import { useForm } from "../lib/form.ts";
import { messages } from "../messages/index.ts";
import { createChangeRequest, type Flag } from "../model/flags.ts";
import { Field } from "./fields.tsx";
import { FormDialog } from "./form.tsx";
import { toast } from "./toast.tsx";

const w = messages.flag;

/** A change that was rejected because it needs approval. */
export interface ApprovalRequired {
  flag?: Flag;
  cohort?: { id: number; name: string };
  changes: Record<string, unknown>;
  /** Instead of `changes`: the change of the flag's activity to undo with all later ones. */
  undo?: string;
}

/** Whether a change was rejected for that reason. */
export const needsApproval = (error: unknown): boolean =>
  error instanceof ApiError && error.code === "approval_required";

export function ChangeRequestDialog({
  onClose,
  onProposed,
  ...required
}: ApprovalRequired & { onClose: () => void; onProposed?: () => void }) {
  return <ChangeRequestsDialog all={[required]} onClose={onClose} onProposed={onProposed} />;
}

/** The same for several changes, with one reason. */
export function ChangeRequestsDialog({
  all,
  onClose,
  onProposed,
}: {
  all: readonly ApprovalRequired[];
  onClose: () => void;
  onProposed?: (() => void) | undefined;
}) {
  const [proposed, setProposed] = useState(0);
  const names = all.map(({ flag, cohort }) => (flag?.key ?? cohort?.name)!);
  const form = useForm({ note: "" }, async ({ note }) => {
    // After an error, those that exist already are not requested again.
    for (let position = proposed; position < all.length; position++) {
      const { flag, cohort, changes, undo } = all[position]!;
      const target = flag ? { flag_id: flag.id } : { cohort_id: cohort!.id };
      await createChangeRequest(target, undo === undefined ? { changes } : { activity_id: undo }, note);
      setProposed(position + 1);
    }
    onClose();
    toast(w.pending.proposed);
    onProposed?.();
  });
  return (
    <FormDialog
      title={names.length === 1 ? w.pending.proposeFor(names[0]!) : w.pending.proposeChanges(names.length)}
      form={form}
      action={w.pending.proposeChange}
      onCancel={onClose}
      onClose={onClose}
    >
      <p>{names.length === 1 ? w.pending.needsApproval : w.pending.needApproval(names)}</p>
      <Field label={w.note} help={w.noteHelp} {...form.input("note")} autofocus />
    </FormDialog>
  );
}
