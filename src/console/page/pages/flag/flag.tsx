/** A flag's page: its switch, tabs, and the draft being edited. */

import { useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { criticalTag } from "../../../../flags/rules/critical-tag.ts";
import {
  type ApprovalRequired,
  ChangeRequestDialog,
  needsApproval,
} from "../../components/change-request-dialog.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Menu } from "../../components/menu.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, Switch, Tabs } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { errorMessage, request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, me, project } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import { useApprovals } from "../../model/approvals.ts";
import { useCohortNames } from "../../model/definitions.ts";
import { type Draft, differences, isSame, toDraft } from "../../model/draft.ts";
import { changeFlag, type Flag, restoreFlag, rolloutSummary } from "../../model/flags.ts";
import { Access } from "./access.tsx";
import { Code } from "./code.tsx";
import { CopyFlag } from "./copy.tsx";
import { History } from "./history.tsx";
import { FlagProposals, Schedule } from "./pending.tsx";
import { SaveBar } from "./save.tsx";
import { Targeting } from "./targeting.tsx";
import { TryIt } from "./try-it.tsx";
import { Usage } from "./usage.tsx";

const w = words.flag;
type Tab = keyof typeof w.tabs;

/** Unsaved drafts, which survive leaving the page, with the flag they are based on. */
const drafts = new Map<string, { draft: Draft; base: Flag }>();

export function FlagPage() {
  const { id = "" } = useRoute().params as { id?: string };
  // The key includes the user: another user may sign in here.
  const key = `flag ${me.value?.uuid} ${project.value?.id} ${id}`;
  const flag = useResource<Flag>(key, (signal) =>
    request(inProject(`feature_flags/${encodeURIComponent(id)}/`), { signal }),
  );
  if (flag.data === undefined || (flag.failure !== undefined && !flag.failure.isPassing)) {
    return (
      <Page title={words.frame.pages.flags}>
        <Content of={flag}>{() => null}</Content>
      </Page>
    );
  }
  return <Loaded key={key} place={key} flag={flag.data} onChanged={flag.replace} onReload={flag.reload} />;
}

function Loaded({
  place,
  flag,
  onChanged,
  onReload,
}: {
  place: string;
  flag: Flag;
  onChanged: (flag: Flag) => void;
  onReload: () => void;
}) {
  const { query, set, go } = useAddress();
  useCohortNames();
  const kept = drafts.get(place);
  const [draft, setDraftState] = useState<Draft>(() => kept?.draft ?? toDraft(flag));
  const [base, setBase] = useState<Flag>(() => kept?.base ?? flag);
  const [isAsking, setAsking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [isCopying, setCopying] = useState(false);
  const [rejected, setRejected] = useState<ApprovalRequired>();
  const [proposed, setProposed] = useState(0);
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "targeting") as Tab;
  const changes = differences(toDraft(base), draft);
  const refusal = flag.deleted ? w.deleted(flag.key) : !flag.can_edit && words.flags.notAllowed;

  const setDraft = (next: Draft) => {
    setDraftState(next);
    drafts.set(place, { draft: next, base });
  };
  const restart = (from: Flag, next: Draft = toDraft(from)) => {
    drafts.delete(place);
    setBase(from);
    setDraftState(next);
    if (differences(toDraft(from), next).length > 0) drafts.set(place, { draft: next, base: from });
    onChanged(from);
  };
  // Without edits, show newly read data.
  useEffect(() => {
    if (changes.length === 0 && flag.version !== base.version) restart(flag);
  }, [flag.version]);
  useEffect(() => {
    if (changes.length === 0) drafts.delete(place);
    const onLeave = (event: BeforeUnloadEvent) => {
      if (changes.length > 0) event.preventDefault();
    };
    addEventListener("beforeunload", onLeave);
    return () => removeEventListener("beforeunload", onLeave);
  }, [changes.length]);

  const refuse = (error: unknown, changes: Record<string, unknown>) => {
    if (needsApproval(error)) setRejected({ flag, changes });
    else toastError(errorMessage(error));
  };
  const approvals = useApprovals();
  const mustPropose = approvals.needed(flag);
  const flip = async (isOn: boolean, isUndo = false) => {
    if (await approvals.whenKnown(flag)) return setRejected({ flag, changes: { active: isOn } });
    onChanged({ ...flag, active: isOn });
    try {
      const stored = await changeFlag(flag.id, { active: isOn });
      // Rebase the draft if only the switch changed, which is not part of it. After changes by another user it keeps
      // the old base, and saving shows those changes.
      setBase((now) => (isSame(toDraft(now), toDraft(stored)) ? stored : now));
      onChanged(stored);
      if (isUndo) toast(words.flags.switchedBack(flag.key));
      else
        toast(
          isOn ? words.flags.switchedOn(flag.key) : words.flags.switchedOff(flag.key),
          () => void flip(!isOn, true),
        );
    } catch (error) {
      onChanged(flag);
      refuse(error, { active: isOn });
    }
  };
  const makeCohort = async () => {
    try {
      const path = inProject(`feature_flags/${flag.id}/create_static_cohort_for_flag/`);
      const { cohort } = await request<{ cohort: { id: number } }>(path, { method: "POST", body: {} });
      toast(w.cohortMade);
      go(`cohorts/${cohort.id}`);
    } catch (error) {
      toastError(errorMessage(error));
    }
  };
  const toggle = () => {
    if (flag.tags.includes(criticalTag) && !mustPropose) setAsking(true);
    else void flip(!flag.active);
  };

  return (
    <Page
      title={flag.key}
      heading={
        <span class="flag-title">
          <a class="crumb" href={to("flags")} aria-label={w.back} tabIndex={0}>
            ‹
          </a>
          <span>{flag.key}</span>
        </span>
      }
      action={
        <>
          <span class="muted">
            {flag.active ? w.on : w.off} · {w.version(flag.version)}
          </span>
          <Switch name={flag.key} isOn={flag.active} onChange={toggle} refusal={refusal} />
          <Menu
            label={w.more}
            face={<span aria-hidden="true">⋯</span>}
            items={[
              [w.copyTo, () => setCopying(true)],
              [w.tabs.code, () => set({ tab: "code" }, true)],
              [w.makeCohort, () => void makeCohort(), refusal],
              [
                w.delete,
                () =>
                  void approvals
                    .whenKnown(flag)
                    .then((isNeeded) =>
                      isNeeded ? setRejected({ flag, changes: { deleted: true } }) : setDeleting(true),
                    ),
                refusal,
              ],
            ]}
          />
        </>
      }
    >
      <div class="row">
        {flag.name && <span class="muted">{flag.name}</span>}
        {flag.status === "STALE" && <Badge tone="warn">{words.flags.stale}</Badge>}
        {flag.tags.map((tag) => (
          <Badge key={tag} tone={tag === criticalTag ? "bad" : "plain"}>
            {tag}
          </Badge>
        ))}
      </div>
      {flag.performed_rollback && (
        <p class="bar">
          <span>{w.rolledBack}</span>
          <Button onClick={() => set({ tab: "history" }, true)}>{w.rolledBackWhy}</Button>
        </p>
      )}
      {flag.local_evaluation_issues.length > 0 && (
        <details>
          <summary>{w.localIssues}</summary>
          <ul>
            {flag.local_evaluation_issues.map((issue) => (
              <li key={issue}>{issue}</li>
            ))}
          </ul>
        </details>
      )}
      <Tabs
        label={w.tabsLabel}
        tabs={Object.entries(w.tabs) as [Tab, string][]}
        current={tab}
        onChoose={(name) => set({ tab: name === "targeting" ? undefined : name }, true)}
      />
      {tab === "targeting" && (
        <>
          {refusal && (
            <p class="bar">
              <span>
                {refusal}
                {!flag.deleted && `. ${words.frame.refusedHelp}`}
              </span>
            </p>
          )}
          <FlagProposals flag={flag} round={proposed} refusal={refusal} onDecided={onReload} />
          <Targeting flag={flag} draft={draft} onChange={setDraft} refusal={refusal} />
          <Schedule flag={flag} draft={draft} refusal={refusal} />
        </>
      )}
      {tab === "try" && <TryIt flag={flag} draft={draft} isChanged={changes.length > 0} />}
      {tab === "usage" && <Usage flag={flag} />}
      {tab === "history" && (
        <History
          flag={flag}
          refusal={refusal || (mustPropose && w.pending.revertHelp)}
          onReverted={restart}
        />
      )}
      {tab === "access" && <Access flag={flag} />}
      {tab === "code" && <Code flag={flag} />}
      {changes.length > 0 && (
        <SaveBar
          base={base}
          draft={draft}
          changes={changes}
          refusal={refusal}
          mustPropose={mustPropose}
          onDiscard={() => {
            restart(flag);
            onReload();
          }}
          onSaved={(saved) => restart(saved)}
          onRebase={restart}
          onProposed={() => {
            restart(flag);
            setProposed(proposed + 1);
          }}
        />
      )}
      {isAsking && (
        <ConfirmDialog
          title={words.flags.criticalTitle(flag.key)}
          text={words.flags.criticalText(flag.key, rolloutSummary(flag.filters))}
          action={flag.active ? words.flags.switchOff : words.flags.switchOn}
          onYes={() => void flip(!flag.active)}
          onClose={() => setAsking(false)}
        />
      )}
      {isDeleting && (
        <ConfirmDialog
          title={`${w.delete}: ${flag.key}`}
          text={w.deleteText(flag.key)}
          action={w.delete}
          onClose={() => setDeleting(false)}
          onYes={() => {
            changeFlag(flag.id, { deleted: true }).then(
              () => {
                drafts.delete(place);
                toast(w.deleted(flag.key), () => {
                  restoreFlag(flag.id).then(
                    (restored) => {
                      toast(words.flags.restored(restored.key));
                      go(`flags/${restored.id}`);
                    },
                    (error) => toastError(errorMessage(error)),
                  );
                });
                go("flags");
              },
              (error) => refuse(error, { deleted: true }),
            );
          }}
        />
      )}
      {rejected && (
        <ChangeRequestDialog
          {...rejected}
          onClose={() => setRejected(undefined)}
          onProposed={() => setProposed(proposed + 1)}
        />
      )}
      {isCopying && <CopyFlag flag={flag} onClose={() => setCopying(false)} />}
    </Page>
  );
}
