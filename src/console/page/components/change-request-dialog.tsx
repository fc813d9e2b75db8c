/** Creates a change request for a change that needs another user's approval. */

import { useState } from "preact/hooks";
import { ApiError, errorMessage } from "../lib/api.ts";
import { words } from "../messages/index.ts";
import { createChangeRequest, type Flag } from "../model/flags.ts";
import { Dialog } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { Button } from "./primitives.tsx";
import { toast } from "./toast.tsx";

const w = words.flag;

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
  const [note, setNote] = useState("");
  const [error, setError] = useState<string>();
  const [proposed, setProposed] = useState(0);
  const names = all.map(({ flag, cohort }) => (flag?.key ?? cohort?.name)!);
  const propose = async () => {
    try {
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
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  return (
    <Dialog
      title={names.length === 1 ? w.pending.proposeFor(names[0]!) : w.pending.proposeChanges(names.length)}
      onClose={onClose}
      onSubmit={propose}
      actions={
        <>
          <Button onClick={onClose}>{words.frame.cancel}</Button>
          <Button kind="main" type="submit">
            {w.pending.proposeChange}
          </Button>
        </>
      }
    >
      <p>{names.length === 1 ? w.pending.needed : w.pending.needApproval(names)}</p>
      <Field label={w.note} help={w.noteHelp} value={note} onInput={setNote} error={error} autofocus />
    </Dialog>
  );
}
