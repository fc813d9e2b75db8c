/** One flag: its switch, its parts as tabs, and the draft that is being edited. */

import { useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { criticalTag } from "../../../../flags/rules/critical-tag.ts";
import { to, useAddress } from "../../lib/address.ts";
import { ask, wordsOf } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, me, project } from "../../lib/session.ts";
import { type Draft, differences, draftOf, isSame } from "../../model/draft.ts";
import { changeFlag, type Flag, whoGetsIt } from "../../model/flags.ts";
import { Badge, Switch, Tabs } from "../../parts/basics.tsx";
import { Question } from "../../parts/confirm.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Page } from "../../parts/page.tsx";
import { needsApproval, Propose, type Refused } from "../../parts/propose.tsx";
import { Content } from "../../parts/states.tsx";
import { complain, tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";
import { Access } from "./access.tsx";
import { Code } from "./code.tsx";
import { CopyFlag } from "./copy.tsx";
import { History } from "./history.tsx";
import { Proposals, Schedule } from "./pending.tsx";
import { SaveBar } from "./save.tsx";
import { Targeting } from "./targeting.tsx";
import { TryIt } from "./try-it.tsx";
import { Usage } from "./usage.tsx";

const w = words.flag;
type Tab = keyof typeof w.tabs;

/** Drafts that are not saved yet: leaving the page does not lose them. With the flag they were begun from. */
const drafts = new Map<string, { draft: Draft; base: Flag }>();

export function FlagPage() {
  const { id = "" } = useRoute().params as { id?: string };
  // Of whom the draft is, too: somebody else may sign in here.
  const key = `flag ${me.value?.uuid} ${project.value?.id} ${id}`;
  const flag = useResource<Flag>(key, (signal) =>
    ask(inProject(`feature_flags/${encodeURIComponent(id)}/`), { signal }),
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
  const kept = drafts.get(place);
  const [draft, setDraftState] = useState<Draft>(() => kept?.draft ?? draftOf(flag));
  const [base, setBase] = useState<Flag>(() => kept?.base ?? flag);
  const [isAsking, setAsking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [isCopying, setCopying] = useState(false);
  const [refused, setRefused] = useState<Refused>();
  const [proposed, setProposed] = useState(0);
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "targeting") as Tab;
  const changes = differences(draftOf(base), draft);
  const refusal = flag.deleted ? w.deleted(flag.key) : !flag.can_edit && words.flags.notAllowed;

  const setDraft = (next: Draft) => {
    setDraftState(next);
    drafts.set(place, { draft: next, base });
  };
  const restart = (from: Flag, next: Draft = draftOf(from)) => {
    drafts.delete(place);
    setBase(from);
    setDraftState(next);
    if (differences(draftOf(from), next).length > 0) drafts.set(place, { draft: next, base: from });
    onChanged(from);
  };
  // Nothing is edited: what is read anew is shown.
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
    if (needsApproval(error)) setRefused({ flag, changes });
    else complain(wordsOf(error));
  };
  const flip = async (isOn: boolean, isUndo = false) => {
    onChanged({ ...flag, active: isOn });
    try {
      const stored = await changeFlag(flag.id, { active: isOn });
      // The draft goes on from the new version: the switch is no part of it. What somebody else has changed meanwhile is:
      // then the draft stays one of the old version, and saving it shows theirs.
      setBase((now) => (isSame(draftOf(now), draftOf(stored)) ? stored : now));
      onChanged(stored);
      if (isUndo) tell(words.flags.switchedBack(flag.key));
      else
        tell(
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
      const { cohort } = await ask<{ cohort: { id: number } }>(path, { method: "POST", body: {} });
      tell(w.cohortMade);
      go(`cohorts/${cohort.id}`);
    } catch (error) {
      complain(wordsOf(error));
    }
  };
  const toggle = () => {
    if (flag.tags.includes(criticalTag)) setAsking(true);
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
              [w.delete, () => setDeleting(true), refusal],
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
          <Proposals flag={flag} round={proposed} refusal={refusal} onDecided={onReload} />
          <Targeting flag={flag} draft={draft} onChange={setDraft} refusal={refusal} />
          <Schedule flag={flag} draft={draft} refusal={refusal} />
        </>
      )}
      {tab === "try" && <TryIt flag={flag} draft={draft} isChanged={changes.length > 0} />}
      {tab === "usage" && <Usage flag={flag} />}
      {tab === "history" && <History flag={flag} refusal={refusal} onReverted={restart} />}
      {tab === "access" && <Access flag={flag} />}
      {tab === "code" && <Code flag={flag} />}
      {changes.length > 0 && (
        <SaveBar
          base={base}
          draft={draft}
          changes={changes}
          refusal={refusal}
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
        <Question
          title={words.flags.criticalTitle(flag.key)}
          text={words.flags.criticalText(flag.key, whoGetsIt(flag.filters))}
          action={flag.active ? words.flags.switchOff : words.flags.switchOn}
          onYes={() => void flip(!flag.active)}
          onClose={() => setAsking(false)}
        />
      )}
      {isDeleting && (
        <Question
          title={`${w.delete}: ${flag.key}`}
          text={w.deleteText(flag.key)}
          action={w.delete}
          onClose={() => setDeleting(false)}
          onYes={() => {
            changeFlag(flag.id, { deleted: true }).then(
              () => {
                drafts.delete(place);
                tell(w.deleted(flag.key));
                go("flags");
              },
              (error) => refuse(error, { deleted: true }),
            );
          }}
        />
      )}
      {refused && (
        <Propose
          {...refused}
          onClose={() => setRefused(undefined)}
          onProposed={() => setProposed(proposed + 1)}
        />
      )}
      {isCopying && <CopyFlag flag={flag} onClose={() => setCopying(false)} />}
    </Page>
  );
}
