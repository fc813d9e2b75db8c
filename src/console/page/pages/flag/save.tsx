/** Saves a draft: shows the changes first, and resolves conflicts with changes by other users. */

import { useState } from "preact/hooks";
import { ChangeLines } from "../../components/change-list.tsx";
import { needsApproval } from "../../components/change-request-dialog.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/fields.tsx";
import { Icon } from "../../components/icons.tsx";
import { Menu } from "../../components/menu.tsx";
import { Button } from "../../components/primitives.tsx";
import { toast } from "../../components/toast.tsx";
import { type ApiError, request, toApiError } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { type BlastRadius, getPersons, useBlastRadius } from "../../model/blast-radius.ts";
import { changedFields, type Draft, differences, getProblems, toDraft } from "../../model/draft.ts";
import { changeFlag, createChangeRequest, type Flag, userName } from "../../model/flags.ts";
import { ScheduleDialog } from "./schedule-dialog.tsx";

const w = messages.flag;

export function SaveBar({
  base,
  draft,
  changes,
  disabledReason,
  mustPropose,
  onDiscard,
  onSaved,
  onRebase,
  onProposed,
  onScheduled,
}: {
  base: Flag;
  draft: Draft;
  changes: readonly string[];
  disabledReason: string | false;
  /** Whether changes of this flag need approval. */
  mustPropose: boolean;
  onDiscard: () => void;
  onSaved: (flag: Flag) => void;
  /** Continues from the other user's version, with or without the draft applied. */
  onRebase: (flag: Flag, draft?: Draft) => void;
  onProposed: () => void;
  onScheduled: () => void;
}) {
  const [note, setNote] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [isProposing, setProposing] = useState(false);
  const [isScheduling, setScheduling] = useState(false);
  const [failure, setFailure] = useState<ApiError>();
  const [theirs, setTheirs] = useState<Flag>();
  const [isBusy, setBusy] = useState(false);
  const problems = [...getProblems(draft).values()];

  const save = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const saved = await changeFlag(base.id, {
        ...changedFields(base, draft),
        version: base.version,
        original_flag: base,
        ...(note.trim() ? { note: note.trim() } : {}),
      });
      setNote("");
      setOpen(false);
      toast(w.saved(saved.key));
      onSaved(saved);
    } catch (error) {
      const found = toApiError(error);
      const read = () => request<Flag>(inProject(`feature_flags/${base.id}/`)).catch(() => undefined);
      const newer = found.status === 409 ? await read() : undefined;
      if (newer) {
        setOpen(false);
        setTheirs(newer);
      } else setFailure(found);
    } finally {
      setBusy(false);
    }
  };
  const review = (asProposal: boolean) => {
    setProposing(asProposal);
    setOpen(true);
  };
  const isForApproval = mustPropose || isProposing || needsApproval(failure);
  const propose = async () => {
    setFailure(undefined);
    try {
      await createChangeRequest({ flag_id: base.id }, { changes: changedFields(base, draft) }, note);
      setNote("");
      setOpen(false);
      toast(w.pending.proposed);
      onProposed();
    } catch (error) {
      setFailure(toApiError(error));
    }
  };
  return (
    <>
      <section class="bar save-bar" aria-label={w.reviewTitle}>
        <span role="status">{w.unsaved(changes.length)}</span>
        <Button onClick={onDiscard}>{w.discard}</Button>
        <Button kind="main" disabledReason={disabledReason} onClick={() => review(false)}>
          {mustPropose ? w.pending.proposeChange : w.review}
        </Button>
        <Menu
          label={w.saveOptions}
          face={<Icon name="up" />}
          items={[
            [
              w.pending.scheduleChange,
              () => setScheduling(true),
              disabledReason || (mustPropose && w.pending.needsApproval),
            ],
            [w.pending.proposeChange, () => review(true), disabledReason],
          ]}
        />
      </section>
      {isOpen && (
        <Dialog
          title={isForApproval ? w.pending.proposeChange : w.reviewTitle}
          onClose={() => setOpen(false)}
          actions={
            <>
              <Button onClick={() => setOpen(false)}>{messages.frame.cancel}</Button>
              {isForApproval ? (
                <Button kind="main" isDisabled={problems.length > 0} onClick={() => void propose()}>
                  {w.pending.proposeChange}
                </Button>
              ) : (
                <Button kind="main" isDisabled={isBusy || problems.length > 0} onClick={() => void save()}>
                  {w.saveNow}
                </Button>
              )}
            </>
          }
        >
          <h3>{w.changes}</h3>
          <ChangeLines lines={changes} />
          <BlastRadiusChange base={base} draft={draft} />
          <Dependents id={base.id} />
          {problems.map((problem) => (
            <p key={problem} class="error" role="alert">
              {problem}
            </p>
          ))}
          <Field label={w.note} help={w.noteHelp} value={note} onInput={setNote} />
          {isForApproval && !isProposing && (
            <p role={mustPropose ? undefined : "alert"}>{w.pending.needsApproval}</p>
          )}
          {failure && !needsApproval(failure) && (
            <p class="error" role="alert">
              {failure.detail}
            </p>
          )}
        </Dialog>
      )}
      {isScheduling && (
        <ScheduleDialog
          flag={base}
          draft={draft}
          changes={changes}
          onClose={() => setScheduling(false)}
          onScheduled={onScheduled}
        />
      )}
      {theirs && (
        <Conflict
          base={base}
          mine={changes}
          theirs={theirs}
          onDiscard={() => {
            setTheirs(undefined);
            onRebase(theirs);
          }}
          onApply={() => {
            setTheirs(undefined);
            onRebase(theirs, onTop(base, theirs, draft));
          }}
          onClose={() => setTheirs(undefined)}
        />
      )}
    </>
  );
}

/** The other user's version with all changes of the draft applied. */
function onTop(base: Flag, theirs: Flag, draft: Draft): Draft {
  const before = toDraft(base);
  const next = toDraft(theirs);
  const keep = <Name extends keyof Draft>(name: Name) => {
    if (JSON.stringify(before[name]) !== JSON.stringify(draft[name])) next[name] = draft[name];
  };
  for (const name of Object.keys(draft) as (keyof Draft)[]) keep(name);
  return next;
}

function BlastRadiusChange({ base, draft }: { base: Flag; draft: Draft }) {
  const before = useBlastRadius(base.key, base.filters);
  const after = useBlastRadius(draft.key, draft.filters);
  if (before === null || after === null) return <p class="muted">{w.notCounted}</p>;
  if (before === undefined || after === undefined) return <p class="muted">{w.counting}</p>;
  const text = (blastRadius: BlastRadius) => {
    const { reached, total } = getPersons(blastRadius);
    return w.blastRadius(reached, total, w.aboutPersons);
  };
  return (
    <p>
      <b>{w.blastRadiusChange}</b>: {w.blastRadiusArrow(text(before), text(after))}
    </p>
  );
}

/** Dependent flags that the change affects. */
function Dependents({ id }: { id: number }) {
  const found = useResource<{ id: number; key: string }[]>(`dependents ${id}`, (signal) =>
    request(inProject(`feature_flags/${id}/dependent_flags/`), { signal }),
  );
  if (!found.data?.length) return null;
  return (
    <p>
      <b>{w.usedBy(found.data.length)}</b>: {found.data.map(({ key }) => key).join(", ")}
    </p>
  );
}

function Conflict({
  base,
  mine,
  theirs,
  onDiscard,
  onApply,
  onClose,
}: {
  base: Flag;
  mine: readonly string[];
  theirs: Flag;
  onDiscard: () => void;
  onApply: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog
      title={w.conflict.title}
      size="large"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onDiscard}>{w.conflict.discardYours}</Button>
          <Button kind="main" onClick={onApply}>
            {w.conflict.applyYours}
          </Button>
        </>
      }
    >
      <p>{w.conflict.help}</p>
      <div class="columns">
        <section>
          <h3>{w.conflict.yours}</h3>
          <ChangeLines lines={mine} />
        </section>
        <section>
          <h3>
            {w.conflict.theirs} · {userName(theirs.last_modified_by)}
          </h3>
          <ChangeLines lines={differences(toDraft(base), toDraft(theirs))} />
        </section>
      </div>
    </Dialog>
  );
}
