/** A flag's page: its switch, tabs, and the draft being edited. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { criticalTag } from "../../../../flags/rules/shared-rules.ts";
import {
  type ApprovalRequired,
  ChangeRequestDialog,
  needsApproval,
} from "../../components/change-request-dialog.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Menu } from "../../components/menu.tsx";
import { Page } from "../../components/page.tsx";
import { Button, Switch, Tabs } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, me, project } from "../../lib/session.ts";
import { readUnsaved, writeUnsaved } from "../../lib/unsaved-drafts.ts";
import { messages } from "../../messages/index.ts";
import { useApprovals } from "../../model/approvals.ts";
import { useBlastRadius } from "../../model/blast-radius.ts";
import { useCohortNames } from "../../model/definitions.ts";
import { type Draft, differences, getProblems, toDraft } from "../../model/draft.ts";
import { isSame } from "../../model/filter-differences.ts";
import { changeFlag, type Flag, restoreFlag, rolloutSummary } from "../../model/flags.ts";
import { Code } from "./code.tsx";
import { CopyFlag } from "./copy.tsx";
import { Effect } from "./effect.tsx";
import { EveryoneDialog, type Extreme, toExtreme } from "./everyone.tsx";
import { GradualRollout } from "./gradual-rollout.tsx";
import { FlagFacts, UsedBy } from "./header.tsx";
import { History } from "./history.tsx";
import { FlagProposals, ScheduledBar } from "./pending.tsx";
import { Release } from "./release.tsx";
import { SaveBar } from "./save.tsx";
import { FlagSettings } from "./settings.tsx";
import { Usage } from "./usage.tsx";

const w = messages.flag;
type Tab = keyof typeof w.tabs;
/** Tabs in addresses of earlier versions. */
const formerTabs: Record<string, Tab> = {
  targeting: "release",
  try: "release",
  usage: "evaluations",
  access: "settings",
};
const getTab = (name = "release"): Tab => formerTabs[name] ?? (name in w.tabs ? (name as Tab) : "release");

/** An unsaved draft, with the flag it is based on. */
interface Unsaved {
  draft: Draft;
  base: Flag;
}

export function FlagPage() {
  const { id = "" } = useRoute().params as { id?: string };
  // The key includes the user: another user may sign in here.
  const key = `flag ${me.value?.uuid} ${project.value?.id} ${id}`;
  const flag = useResource<Flag>(key, (signal) =>
    request(inProject(`feature_flags/${encodeURIComponent(id)}/`), { signal }),
  );
  if (flag.data === undefined || (flag.failure !== undefined && !flag.failure.isPassing)) {
    return (
      <Page title={messages.frame.pages.flags}>
        <Content resource={flag}>{() => null}</Content>
      </Page>
    );
  }
  return <Loaded key={key} draftKey={key} flag={flag.data} onChanged={flag.replace} onReload={flag.reload} />;
}

function Loaded({
  draftKey,
  flag,
  onChanged,
  onReload,
}: {
  draftKey: string;
  flag: Flag;
  onChanged: (flag: Flag) => void;
  onReload: () => void;
}) {
  const { query, set, go } = useAddress();
  useCohortNames();
  const [unsaved] = useState(() => readUnsaved<Unsaved>(draftKey));
  const [draft, setDraft] = useState<Draft>(() => unsaved?.draft ?? toDraft(flag));
  const [base, setBase] = useState<Flag>(() => unsaved?.base ?? flag);
  const [isAsking, setAsking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [isCopying, setCopying] = useState(false);
  const [rejected, setRejected] = useState<ApprovalRequired>();
  const [proposed, setProposed] = useState(0);
  const [scheduled, setScheduled] = useState(0);
  const [extreme, setExtreme] = useState<Extreme>();
  const [isGradual, setGradual] = useState(false);
  const tab = getTab(query.tab);
  const changes = differences(toDraft(base), draft);
  const isChanged = changes.length > 0;
  const now = useBlastRadius(base.key, base.filters);
  // A draft that is being typed may be invalid: the effect of the last valid one stays.
  const valid = useRef(toDraft(base));
  if (getProblems(draft).size === 0) valid.current = draft;
  const draftBlastRadius = useBlastRadius(valid.current.key, isChanged ? valid.current.filters : undefined);
  const after = isChanged ? draftBlastRadius : now;
  const disabledReason = flag.deleted ? w.deleted(flag.key) : !flag.can_edit && messages.flags.notAllowed;

  const restart = (from: Flag, next: Draft = toDraft(from)) => {
    setBase(from);
    setDraft(next);
    onChanged(from);
  };
  // Without edits, show newly read data.
  useEffect(() => {
    if (!isChanged && flag.version !== base.version) restart(flag);
  }, [flag.version]);
  useEffect(() => {
    writeUnsaved(draftKey, isChanged ? { draft, base } : undefined);
  }, [draft, base]);

  const reject = (error: unknown, changes: Record<string, unknown>) => {
    if (needsApproval(error)) setRejected({ flag, changes });
    else toastError(error);
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
      if (isUndo) toast(messages.flags.switchedBack(flag.key));
      else
        toast(
          isOn ? messages.flags.switchedOn(flag.key) : messages.flags.switchedOff(flag.key),
          () => void flip(!isOn, true),
        );
    } catch (error) {
      onChanged(flag);
      reject(error, { active: isOn });
    }
  };
  const createCohort = async () => {
    try {
      const path = inProject(`feature_flags/${flag.id}/create_static_cohort_for_flag/`);
      const { cohort } = await request<{ cohort: { id: number } }>(path, { method: "POST", body: {} });
      toast(w.cohortCreated);
      go(`cohorts/${cohort.id}`);
    } catch (error) {
      toastError(error);
    }
  };
  const change = async (changes: Record<string, unknown>, done: string, undo?: Record<string, unknown>) => {
    if (await approvals.whenKnown(flag)) return setRejected({ flag, changes });
    try {
      restart(await changeFlag(flag.id, changes));
      toast(done, undo && (() => void change(undo, messages.flags.switchedBack(flag.key))));
    } catch (error) {
      reject(error, changes);
    }
  };
  const goExtreme = (to: Extreme) =>
    change(toExtreme(flag, to), w.extremes.done[to](flag.key), {
      active: flag.active,
      filters: flag.filters,
    });
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
          <span class="muted">{flag.active ? w.on : w.off}</span>
          <Switch name={flag.key} isOn={flag.active} onChange={toggle} disabledReason={disabledReason} />
          <Menu
            label={w.more}
            face={<span aria-hidden="true">⋯</span>}
            items={[
              [w.copyTo, () => setCopying(true)],
              [
                w.gradual.open,
                () => setGradual(true),
                disabledReason || (mustPropose && w.pending.needsApproval),
              ],
              [w.extremes.everyone, () => setExtreme("everyone"), disabledReason],
              [w.extremes.off, () => setExtreme("off"), disabledReason],
              [w.saveAsCohort, () => void createCohort(), disabledReason],
              [
                w.delete,
                () =>
                  void approvals
                    .whenKnown(flag)
                    .then((isNeeded) =>
                      isNeeded ? setRejected({ flag, changes: { deleted: true } }) : setDeleting(true),
                    ),
                disabledReason,
              ],
            ]}
          />
        </>
      }
    >
      <FlagFacts
        flag={flag}
        description={draft.name}
        blastRadius={now}
        disabledReason={disabledReason}
        onDescription={(name) => setDraft({ ...draft, name })}
      />
      <UsedBy flag={flag} />
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
        onChoose={(name) => set({ tab: name === "release" ? undefined : name }, true)}
      />
      {tab === "release" && (
        <>
          {disabledReason && (
            <p class="bar">
              <span>
                {disabledReason}
                {!flag.deleted && `. ${messages.frame.forbiddenHelp}`}
              </span>
            </p>
          )}
          <FlagProposals flag={flag} round={proposed} disabledReason={disabledReason} onDecided={onReload} />
          <ScheduledBar flag={flag} round={scheduled} />
          <div class="release">
            <Release
              flag={flag}
              draft={draft}
              blastRadius={after}
              onChange={setDraft}
              disabledReason={disabledReason}
            />
            <Effect flag={flag} draft={valid.current} isChanged={isChanged} now={now} after={after} />
          </div>
        </>
      )}
      {tab === "evaluations" && <Usage flag={flag} />}
      {tab === "history" && (
        <History
          flag={flag}
          disabledReason={disabledReason}
          mustPropose={mustPropose}
          onReverted={restart}
          onPropose={(undo) => setRejected({ flag, changes: {}, undo })}
        />
      )}
      {tab === "code" && <Code flag={flag} />}
      {tab === "settings" && (
        <FlagSettings
          flag={flag}
          draft={draft}
          round={scheduled}
          onChange={setDraft}
          disabledReason={disabledReason}
        />
      )}
      {isChanged ? (
        <SaveBar
          base={base}
          draft={draft}
          changes={changes}
          disabledReason={disabledReason}
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
          onScheduled={() => {
            restart(flag);
            setScheduled(scheduled + 1);
          }}
        />
      ) : (
        <div class="save-bar-space" />
      )}
      {isGradual && (
        <GradualRollout
          flag={flag}
          onClose={() => setGradual(false)}
          onScheduled={(stored) => {
            setBase((now) => (isSame(toDraft(now), toDraft(stored)) ? stored : now));
            onChanged(stored);
            setScheduled(scheduled + 1);
          }}
        />
      )}
      {extreme && (
        <EveryoneDialog
          flag={flag}
          to={extreme}
          onYes={() => goExtreme(extreme)}
          onClose={() => setExtreme(undefined)}
        />
      )}
      {isAsking && (
        <ConfirmDialog
          title={messages.flags.criticalTitle(flag.key)}
          text={messages.flags.criticalText(flag.key, rolloutSummary(flag.filters))}
          action={flag.active ? messages.flags.switchOff : messages.flags.switchOn}
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
                writeUnsaved(draftKey, undefined);
                toast(w.deleted(flag.key), () => {
                  restoreFlag(flag.id).then((restored) => {
                    toast(messages.flags.restored(restored.key));
                    go(`flags/${restored.id}`);
                  }, toastError);
                });
                go("flags");
              },
              (error) => reject(error, { deleted: true }),
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
