/** Bulk actions on flags. Each asks for confirmation and names the flags. */

import { useState } from "preact/hooks";
import {
  type ApprovalRequired,
  ChangeRequestsDialog,
  needsApproval,
} from "../../components/change-request-dialog.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { errorMessage } from "../../lib/api.ts";
import { messages } from "../../messages/index.ts";
import { changeFlag, type Flag, rolloutSummary } from "../../model/flags.ts";

const w = messages.flags;
const namedMax = 8;

interface Act {
  label: string;
  change: (flag: Flag) => Record<string, unknown>;
}

export function BulkBar({
  chosen,
  onClear,
  onDone,
  onProposed,
}: {
  chosen: ReadonlyMap<number, Flag>;
  onClear: () => void;
  onDone: () => void;
  /** There are new change requests. */
  onProposed: () => void;
}) {
  const [act, setAct] = useState<Act>();
  const [isTagging, setTagging] = useState(false);
  const [tag, setTag] = useState("");
  const [rejected, setRejected] = useState<readonly ApprovalRequired[]>();
  const flags = [...chosen.values()];
  const keys = flags.map(({ key, filters }) => `${key} (${rolloutSummary(filters)})`);
  const rejection = flags.some(({ can_edit: canEdit }) => !canEdit) && w.notAllowed;

  const run = async ({ change }: Act) => {
    let done = 0;
    const rejected: ApprovalRequired[] = [];
    for (const flag of flags) {
      const changes = change(flag);
      try {
        await changeFlag(flag.id, changes);
        done++;
      } catch (error) {
        const { version: _, original_flag: __, ...requested } = changes;
        if (needsApproval(error)) rejected.push({ flag, changes: requested });
        else toastError(`${flag.key}: ${errorMessage(error)}`);
      }
    }
    if (done > 0 || rejected.length === 0) toast(w.bulkDone(done));
    if (rejected.length === 0) onDone();
    else setRejected(rejected);
  };
  return (
    <div class="bar accent chooser">
      <span role="status">{w.chosen(chosen.size)}</span>
      <Button
        disabledReason={rejection}
        onClick={() => setAct({ label: w.switchOn, change: () => ({ active: true }) })}
      >
        {w.switchOn}
      </Button>
      <Button
        disabledReason={rejection}
        onClick={() => setAct({ label: w.switchOff, change: () => ({ active: false }) })}
      >
        {w.switchOff}
      </Button>
      <Button disabledReason={rejection} onClick={() => setTagging(true)}>
        {w.addTag}
      </Button>
      <Button
        kind="danger"
        disabledReason={rejection}
        onClick={() => setAct({ label: w.delete, change: () => ({ deleted: true }) })}
      >
        {w.delete}
      </Button>
      <Button kind="quiet" icon="close" label={w.chooseNone} onClick={onClear} />
      {rejected && (
        <ChangeRequestsDialog
          all={rejected}
          onProposed={onProposed}
          onClose={() => {
            setRejected(undefined);
            onDone();
          }}
        />
      )}
      {act && (
        <ConfirmDialog
          title={w.areYouSure(flags.length)}
          text={w.bulkText(keys.slice(0, namedMax), Math.max(0, keys.length - namedMax))}
          action={act.label}
          onYes={() => void run(act)}
          onClose={() => setAct(undefined)}
        />
      )}
      {isTagging && (
        <Dialog
          title={w.addTag}
          onClose={() => setTagging(false)}
          onSubmit={() => {
            setTagging(false);
            const added = tag.trim();
            if (added === "") return;
            void run({
              label: w.addTag,
              // Tags are replaced as a whole: merge to keep those added by others since.
              change: (flag) => ({
                tags: [...new Set([...flag.tags, added])],
                version: flag.version,
                original_flag: flag,
              }),
            });
          }}
          actions={
            <Button kind="main" type="submit">
              {w.addTag}
            </Button>
          }
        >
          <Field label={w.tagName} value={tag} onInput={setTag} autofocus />
        </Dialog>
      )}
    </div>
  );
}
