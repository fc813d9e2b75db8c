/** A change that somebody else has to agree to: it is proposed instead of made. */

import { useState } from "preact/hooks";
import { Failure, wordsOf } from "../lib/api.ts";
import { type Flag, proposeChange } from "../model/flags.ts";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";
import { Dialog } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { tell } from "./toast.tsx";

const w = words.flag;

/** What was refused because somebody else has to agree. */
export interface Refused {
  flag?: Flag;
  cohort?: { id: number; name: string };
  changes: Record<string, unknown>;
}

/** Whether that is why a change was refused. */
export const needsApproval = (error: unknown): boolean =>
  error instanceof Failure && error.code === "approval_required";

export function Propose({
  flag,
  cohort,
  changes,
  onClose,
  onProposed,
}: Refused & { onClose: () => void; onProposed?: () => void }) {
  const [note, setNote] = useState("");
  const [error, setError] = useState<string>();
  const propose = async () => {
    try {
      await proposeChange(flag ? { flag_id: flag.id } : { cohort_id: cohort!.id }, changes, note);
      onClose();
      tell(w.pending.proposed);
      onProposed?.();
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  return (
    <Dialog
      title={w.pending.proposeFor((flag?.key ?? cohort?.name)!)}
      onClose={onClose}
      onSubmit={propose}
      actions={
        <>
          <Button onClick={onClose}>{words.frame.cancel}</Button>
          <Button kind="main" type="submit">
            {w.pending.propose}
          </Button>
        </>
      }
    >
      <p>{w.pending.needed}</p>
      <Field label={w.note} help={w.noteHelp} value={note} onInput={setNote} error={error} autofocus />
    </Dialog>
  );
}
