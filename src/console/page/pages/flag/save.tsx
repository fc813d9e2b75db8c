/** Saving a draft: what changes is shown first; if somebody else was faster, both are shown side by side. */

import { useState } from "preact/hooks";
import { asFailure, ask, type Failure } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import { changedFields, type Draft, differences, draftOf, problemsOf } from "../../model/draft.ts";
import { changeFlag, type Flag, proposeChange, userName } from "../../model/flags.ts";
import { personsOf, type Reach, useReach } from "../../model/reach.ts";
import { Button } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/fields.tsx";
import { needsApproval } from "../../parts/propose.tsx";
import { tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.flag;

export function SaveBar({
  base,
  draft,
  changes,
  refusal,
  onDiscard,
  onSaved,
  onRebase,
  onProposed,
}: {
  base: Flag;
  draft: Draft;
  changes: readonly string[];
  refusal: string | false;
  onDiscard: () => void;
  onSaved: (flag: Flag) => void;
  /** Goes on from somebody else's form, with or without the draft on top. */
  onRebase: (flag: Flag, draft?: Draft) => void;
  onProposed: () => void;
}) {
  const [note, setNote] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const [theirs, setTheirs] = useState<Flag>();
  const [isBusy, setBusy] = useState(false);
  const problems = [...problemsOf(draft).values()];

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
      tell(w.saved(saved.key));
      onSaved(saved);
    } catch (error) {
      const found = asFailure(error);
      const read = () => ask<Flag>(inProject(`feature_flags/${base.id}/`)).catch(() => undefined);
      const newer = found.status === 409 ? await read() : undefined;
      if (newer) {
        setOpen(false);
        setTheirs(newer);
      } else setFailure(found);
    } finally {
      setBusy(false);
    }
  };
  const isForApproval = needsApproval(failure);
  const propose = async () => {
    try {
      await proposeChange({ flag_id: base.id }, changedFields(base, draft), note);
      setOpen(false);
      tell(w.pending.proposed);
      onProposed();
    } catch (error) {
      setFailure(asFailure(error));
    }
  };
  return (
    <>
      <section class="bar save-bar" aria-label={w.reviewTitle}>
        <span role="status">{w.unsaved(changes.length)}</span>
        <Button onClick={onDiscard}>{w.discard}</Button>
        <Button kind="main" refusal={refusal} onClick={() => setOpen(true)}>
          {w.review}
        </Button>
      </section>
      {isOpen && (
        <Dialog
          title={w.reviewTitle}
          onClose={() => setOpen(false)}
          actions={
            <>
              <Button onClick={() => setOpen(false)}>{words.frame.cancel}</Button>
              {isForApproval ? (
                <Button kind="main" onClick={() => void propose()}>
                  {w.pending.propose}
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
          <ReachChange base={base} draft={draft} />
          <Dependents id={base.id} />
          {problems.map((problem) => (
            <p key={problem} class="error" role="alert">
              {problem}
            </p>
          ))}
          <Field label={w.note} help={w.noteHelp} value={note} onInput={setNote} />
          {isForApproval ? (
            <p role="alert">{w.pending.needed}</p>
          ) : (
            failure && (
              <p class="error" role="alert">
                {failure.detail}
              </p>
            )
          )}
        </Dialog>
      )}
      {theirs && (
        <Conflict
          base={base}
          mine={changes}
          theirs={theirs}
          onTake={() => {
            setTheirs(undefined);
            onRebase(theirs);
          }}
          onPut={() => {
            setTheirs(undefined);
            onRebase(theirs, onTop(base, theirs, draft));
          }}
          onClose={() => setTheirs(undefined)}
        />
      )}
    </>
  );
}

/** Their form with everything that the draft changed put on top. */
function onTop(base: Flag, theirs: Flag, draft: Draft): Draft {
  const before = draftOf(base);
  const next = draftOf(theirs);
  const keep = <Name extends keyof Draft>(name: Name) => {
    if (JSON.stringify(before[name]) !== JSON.stringify(draft[name])) next[name] = draft[name];
  };
  for (const name of Object.keys(draft) as (keyof Draft)[]) keep(name);
  return next;
}

function ReachChange({ base, draft }: { base: Flag; draft: Draft }) {
  const before = useReach(base.key, base.filters);
  const after = useReach(draft.key, draft.filters);
  if (before === null || after === null) return <p class="muted">{w.notCounted}</p>;
  if (before === undefined || after === undefined) return <p class="muted">{w.counting}</p>;
  const text = (reach: Reach) => {
    const { reached, total } = personsOf(reach);
    return w.reach(reached, total, w.aboutPersons);
  };
  return (
    <p>
      <b>{w.reachChange}</b>: {w.reachArrow(text(before), text(after))}
    </p>
  );
}

/** Flags that the change reaches, too. */
function Dependents({ id }: { id: number }) {
  const found = useResource<{ id: number; key: string }[]>(`dependents ${id}`, (signal) =>
    ask(inProject(`feature_flags/${id}/dependent_flags/`), { signal }),
  );
  if (!found.data?.length) return null;
  return (
    <p>
      <b>{w.usedBy(found.data.length)}</b>: {found.data.map(({ key }) => key).join(", ")}
    </p>
  );
}

function ChangeLines({ lines }: { lines: readonly string[] }) {
  return (
    <ul class="changes">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function Conflict({
  base,
  mine,
  theirs,
  onTake,
  onPut,
  onClose,
}: {
  base: Flag;
  mine: readonly string[];
  theirs: Flag;
  onTake: () => void;
  onPut: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog
      title={w.conflict.title}
      size="large"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onTake}>{w.conflict.takeTheirs}</Button>
          <Button kind="main" onClick={onPut}>
            {w.conflict.putMine}
          </Button>
        </>
      }
    >
      <p>{w.conflict.help}</p>
      <div class="columns">
        <section>
          <h3>{w.conflict.mine}</h3>
          <ChangeLines lines={mine} />
        </section>
        <section>
          <h3>
            {w.conflict.theirs} · {userName(theirs.last_modified_by)}
          </h3>
          <ChangeLines lines={differences(draftOf(base), draftOf(theirs))} />
        </section>
      </div>
    </Dialog>
  );
}
