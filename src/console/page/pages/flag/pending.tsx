/** What is to come: changes at a time, and changes that somebody else has to agree to. */

import { useState } from "preact/hooks";
import { ask, queryText, wordsOf } from "../../lib/api.ts";
import { dateTime, elsewhere } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, me } from "../../lib/session.ts";
import { type Draft, differences, draftOf, problemsOf } from "../../model/draft.ts";
import { type Flag, type ShortUser, userName } from "../../model/flags.ts";
import { Badge, Button } from "../../parts/basics.tsx";
import { Field, Select } from "../../parts/fields.tsx";
import { complain, tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.flag.pending;

interface Scheduled {
  id: number;
  payload: { operation: string; value: unknown };
  scheduled_at: string;
  executed_at: string | null;
  failure_reason: string | null;
  created_by: ShortUser | null;
}

interface Proposal {
  id: number;
  changes: Record<string, unknown>;
  original: Partial<Flag>;
  note: string;
  state: string;
  created_by: (ShortUser & { uuid?: string }) | null;
  created_at: string;
}

/** The draft of a flag with the fields of a PATCH put in. */
function withChanges(flag: Flag, changes: Record<string, unknown>): Draft {
  return draftOf({ ...flag, ...(changes as Partial<Flag>) });
}

function linesOf(flag: Flag, changes: Record<string, unknown>): string[] {
  const lines = differences(draftOf(flag), withChanges(flag, changes));
  if (typeof changes.active === "boolean" && changes.active !== flag.active) {
    lines.unshift(changes.active ? words.activity.switchedOn : words.activity.switchedOff);
  }
  if (changes.deleted === true) lines.unshift(w.delete);
  return lines;
}

/** Proposals that wait for somebody. */
export function Proposals({
  flag,
  round,
  refusal,
  onDecided,
}: {
  flag: Flag;
  /** Another number: there may be a new one. */
  round: number;
  refusal: string | false;
  onDecided: () => void;
}) {
  const found = useResource<{ results: Proposal[] }>(
    `proposals ${flag.id} ${flag.version} ${round}`,
    (signal) =>
      ask(inProject(`change_requests/${queryText({ flag_id: flag.id, state: "pending" })}`), { signal }),
  );
  const decide = (proposal: Proposal, how: "approve" | "reject") => {
    ask(inProject(`change_requests/${proposal.id}/${how}/`), { method: "POST" }).then(
      () => {
        tell(how === "approve" ? w.approved : w.rejected);
        found.reload();
        onDecided();
      },
      (error) => complain(wordsOf(error)),
    );
  };
  return (
    <>
      {(found.data?.results ?? []).map((proposal) => {
        const isOwn = proposal.created_by?.uuid !== undefined && proposal.created_by.uuid === me.value?.uuid;
        return (
          <section key={proposal.id} class="bar accent" aria-label={w.proposal}>
            <span>
              <b>{w.proposedBy(userName(proposal.created_by))}</b> {proposal.note}
              <ul class="changes">
                {linesOf(flag, proposal.changes).map((line) => (
                  <li key={line}>{line}</li>
                ))}
              </ul>
            </span>
            <Button
              refusal={isOwn ? w.notOwn : refusal}
              kind="main"
              onClick={() => decide(proposal, "approve")}
            >
              {w.approve}
            </Button>
            <Button refusal={refusal} onClick={() => decide(proposal, "reject")}>
              {isOwn ? w.withdraw : w.reject}
            </Button>
          </section>
        );
      })}
    </>
  );
}

/** Changes at a time. */
export function Schedule({ flag, draft, refusal }: { flag: Flag; draft: Draft; refusal: string | false }) {
  const [edited, setEdited] = useState<number>();
  const found = useResource<{ results: Scheduled[] }>(`scheduled ${flag.id} ${flag.version}`, (signal) =>
    ask(inProject(`scheduled_changes/${queryText({ record_id: flag.id })}`), { signal }),
  );
  const takeBack = ({ id }: Scheduled) =>
    ask(inProject(`scheduled_changes/${id}/`), { method: "DELETE" }).then(found.reload, (error) =>
      complain(wordsOf(error)),
    );
  const onDone = () => {
    setEdited(undefined);
    found.reload();
  };
  return (
    <section class="card stack">
      <h2>{w.schedule}</h2>
      <ul class="lines">
        {(found.data?.results ?? []).map((change) => (
          <li key={change.id} class="stack tight">
            <div class="row apart">
              <span>
                <b title={elsewhere(change.scheduled_at)}>{dateTime(change.scheduled_at)}</b>{" "}
                {textOf(flag, change)} <span class="muted">{userName(change.created_by)}</span>{" "}
                {change.failure_reason ? (
                  <Badge tone="bad">{change.failure_reason}</Badge>
                ) : (
                  change.executed_at && <Badge tone="good">{w.done}</Badge>
                )}
              </span>
              {!change.executed_at && (
                <span class="row">
                  <Button
                    kind="quiet"
                    label={w.change(dateTime(change.scheduled_at))}
                    refusal={refusal}
                    onClick={() => setEdited(edited === change.id ? undefined : change.id)}
                  >
                    {w.edit}
                  </Button>
                  <Button
                    kind="quiet"
                    icon="trash"
                    label={w.takeBack(dateTime(change.scheduled_at))}
                    refusal={refusal}
                    onClick={() => void takeBack(change)}
                  />
                </span>
              )}
            </div>
            {edited === change.id && (
              <ScheduleForm flag={flag} draft={draft} refusal={refusal} change={change} onDone={onDone} />
            )}
          </li>
        ))}
      </ul>
      {edited === undefined && <ScheduleForm flag={flag} draft={draft} refusal={refusal} onDone={onDone} />}
      <p class="help">{w.help}</p>
    </section>
  );
}

type What = "on" | "off" | "draft" | "same";

/** What happens when: of a new change, or of one that is put off or made another. */
function ScheduleForm({
  flag,
  draft,
  refusal,
  change,
  onDone,
}: {
  flag: Flag;
  draft: Draft;
  refusal: string | false;
  change?: Scheduled;
  onDone: () => void;
}) {
  const [at, setAt] = useState(change ? ownClock(change.scheduled_at) : "");
  const [what, setWhat] = useState<What>(change ? whatOf(change) : flag.active ? "off" : "on");
  const save = () => {
    const payload =
      what === "draft"
        ? { operation: "update", value: { filters: draft.filters } }
        : { operation: "update_status", value: what === "on" };
    const body = {
      ...(change ? {} : { record_id: flag.id, model_name: "FeatureFlag" }),
      ...(what === "same" ? {} : { payload }),
      scheduled_at: new Date(at).toISOString(),
    };
    const path = change ? `scheduled_changes/${change.id}/` : "scheduled_changes/";
    ask(inProject(path), { method: change ? "PATCH" : "POST", body }).then(
      () => {
        setAt("");
        onDone();
      },
      (error) => complain(wordsOf(error)),
    );
  };
  const isWrong = what === "draft" && problemsOf(draft).size > 0;
  const choices = Object.entries(w.whats) as [What, string][];
  return (
    <div class="row bottom">
      <Select
        label={w.what}
        value={what}
        refusal={refusal}
        choices={choices.filter(([name]) => name !== "same" || (change && whatOf(change) === "same"))}
        onChange={setWhat}
      />
      <Field label={w.when} type="datetime-local" value={at} onInput={setAt} isDisabled={!!refusal} />
      <Button
        icon={change ? "check" : "plus"}
        refusal={refusal}
        isDisabled={at === "" || isWrong}
        onClick={save}
      >
        {change ? w.save : w.add}
      </Button>
      {change && (
        <Button kind="quiet" onClick={onDone}>
          {words.frame.cancel}
        </Button>
      )}
    </div>
  );
}

/** What a form can say of a change; "same" stands for what it has no words for. */
function whatOf({ payload: { operation, value } }: Scheduled): What {
  if (operation !== "update_status") return "same";
  return value === true ? "on" : "off";
}

/** A moment as a field for local times holds it. */
function ownClock(at: string): string {
  const moment = new Date(at);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function textOf(flag: Flag, { payload }: Scheduled): string {
  if (payload.operation === "update_status") return payload.value === true ? w.whats.on : w.whats.off;
  if (payload.operation === "update" && typeof payload.value === "object" && payload.value !== null) {
    return linesOf(flag, payload.value as Record<string, unknown>).join("; ") || w.nothing;
  }
  return payload.operation.replaceAll("_", " ");
}
