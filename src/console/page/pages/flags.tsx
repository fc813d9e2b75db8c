/** The list of flags: found by the server, switched at once, taken back for ten seconds. */

import { useState } from "preact/hooks";
import { criticalTag } from "../../../flags/rules/critical-tag.ts";
import { to, useAddress, useSearch } from "../lib/address.ts";
import { ask, wordsOf } from "../lib/api.ts";
import { useKeys } from "../lib/keys.ts";
import { later } from "../lib/later.ts";
import { useAside, useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { useFlagPages, useUsage } from "../model/flag-pages.ts";
import { changeFlag, type Flag, type FlagPage, whoGetsIt } from "../model/flags.ts";
import { Badge, Button, Switch, When } from "../parts/basics.tsx";
import { Question } from "../parts/confirm.tsx";
import { Checkbox, SearchField, Select } from "../parts/fields.tsx";
import { Page } from "../parts/page.tsx";
import { needsApproval, Propose, type Refused } from "../parts/propose.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { Content, Empty } from "../parts/states.tsx";
import { type Column, DataTable } from "../parts/table.tsx";
import { complain, tell } from "../parts/toast.tsx";
import { words } from "../words/index.ts";
import { ChosenBar } from "./flags-chosen.tsx";
import { NewFlag } from "./new-flag.tsx";

/** Read when somebody cleans up. */
const CleanUp = later(() => import("./flags-clean-up.tsx").then(({ CleanUp }) => CleanUp));

const w = words.flags;
/** Flags with proposals that are named; the others are behind dots. */
const waitingShown = 10;
const stateValues = { all: undefined, on: "true", off: "false", stale: "STALE" } as const;
const orderValues = {
  newest: "-created_at",
  key: "key",
  changed: "-updated_at",
  asked: "-last_called_at",
} as const;

export function Flags() {
  const address = useAddress();
  const { query, set, go } = address;
  const [text, setText] = useSearch(address);
  const [chosen, setChosen] = useState<ReadonlyMap<number, Flag>>(new Map());
  const [question, setQuestion] = useState<Flag>();
  const [refused, setRefused] = useState<Refused>();
  const [proposed, setProposed] = useState(0);
  const filter = {
    search: query.search,
    active: stateValues[(query.state ?? "all") as keyof typeof stateValues],
    type: query.type,
    tags: query.tag ? JSON.stringify([query.tag]) : undefined,
    created_by_id: query.by,
    order: orderValues[(query.order ?? "newest") as keyof typeof orderValues],
  };
  const list = useFlagPages(filter, complain);
  const usage = useUsage(list.inView);
  const isFiltered = ["search", "state", "type", "tag", "by"].some((name) => query[name]);

  useKeys({ n: () => set({ new: "1" }, true) });

  const flip = async (flag: Flag, isOn: boolean, isUndo = false) => {
    list.put({ ...flag, active: isOn });
    try {
      list.put(await changeFlag(flag.id, { active: isOn }));
      if (isUndo) tell(w.switchedBack(flag.key));
      else tell(isOn ? w.switchedOn(flag.key) : w.switchedOff(flag.key), () => void flip(flag, !isOn, true));
    } catch (error) {
      list.put(flag);
      if (needsApproval(error)) setRefused({ flag, changes: { active: isOn } });
      else complain(wordsOf(error));
    }
  };
  const toggle = (flag: Flag) => {
    if (flag.tags.includes(criticalTag)) setQuestion(flag);
    else void flip(flag, !flag.active);
  };
  const clear = () => {
    setText("");
    set({ search: undefined, state: undefined, type: undefined, tag: undefined, by: undefined });
  };
  const choose = (flag: Flag) => {
    const next = new Map(chosen);
    if (!next.delete(flag.id)) next.set(flag.id, flag);
    setChosen(next);
  };

  const columns: Column<Flag>[] = [
    {
      id: "choose",
      title: <span class="unseen">{w.columns.choose}</span>,
      width: "1.7rem",
      isWideOnly: true,
      cell: (flag) => (
        <Checkbox
          label={w.chooseOne(flag.key)}
          isLabelHidden
          isOn={chosen.has(flag.id)}
          onChange={() => choose(flag)}
        />
      ),
    },
    {
      id: "key",
      title: w.columns.key,
      width: "minmax(0, 3fr)",
      cell: (flag) => (
        <>
          <a href={to(`flags/${flag.id}`)}>{flag.key}</a>{" "}
          {flag.status === "STALE" && <Badge tone="warn">{w.stale}</Badge>}{" "}
          {flag.tags.map((tag) => (
            <Badge key={tag} tone={tag === criticalTag ? "bad" : "plain"}>
              {tag}
            </Badge>
          ))}
          <div class="sub">{flag.name || whoGetsIt(flag.filters)}</div>
        </>
      ),
    },
    {
      id: "who",
      title: w.columns.who,
      width: "minmax(0, 2.2fr)",
      isWideOnly: true,
      cell: (flag) => <span title={whoGetsIt(flag.filters)}>{whoGetsIt(flag.filters)}</span>,
    },
    {
      id: "usage",
      title: w.columns.usage,
      width: "5.6rem",
      isWideOnly: true,
      cell: (flag) => {
        const days = usage.get(flag.id);
        return days ? <Sparkline values={days} label={w.sparkline(days.reduce((a, b) => a + b, 0))} /> : null;
      },
    },
    {
      id: "asked",
      title: w.columns.lastAsked,
      width: "8.6rem",
      isWideOnly: true,
      cell: (flag) => <When at={flag.last_called_at} fallback={w.neverAsked} />,
    },
    {
      id: "on",
      title: w.columns.on,
      width: "2.8rem",
      cell: (flag) => (
        <Switch
          name={flag.key}
          isOn={flag.active}
          refusal={!flag.can_edit && w.notAllowed}
          onChange={() => toggle(flag)}
        />
      ),
    },
  ];

  return (
    <Page
      title={words.frame.pages.flags}
      action={
        <Button kind="main" icon="plus" onClick={() => set({ new: "1" }, true)}>
          {w.newFlag}
        </Button>
      }
    >
      <div class="filters">
        <SearchField label={w.search} value={text} onInput={setText} />
        <Select
          label={w.state}
          isLabelHidden
          value={(query.state ?? "all") as keyof typeof w.states}
          choices={Object.entries(w.states) as [keyof typeof w.states, string][]}
          onChange={(state) => set({ state: state === "all" ? undefined : state })}
        />
        <Select
          label={w.type}
          isLabelHidden
          value={(query.type ?? "all") as keyof typeof w.types}
          choices={Object.entries(w.types) as [keyof typeof w.types, string][]}
          onChange={(type) => set({ type: type === "all" ? undefined : type })}
        />
        <Select
          label={w.tag}
          isLabelHidden
          value={query.tag ?? ""}
          choices={[["", w.anyTag], ...tagsOf(list.first.data, query.tag).map((tag) => [tag, tag] as const)]}
          onChange={(tag) => set({ tag: tag || undefined })}
        />
        <MadeBy value={query.by ?? ""} onChange={(by) => set({ by: by || undefined })} />
        <Select
          label={w.order}
          isLabelHidden
          value={(query.order ?? "newest") as keyof typeof w.orders}
          choices={Object.entries(w.orders) as [keyof typeof w.orders, string][]}
          onChange={(order) => set({ order: order === "newest" ? undefined : order })}
        />
        {isFiltered && list.count !== 0 && (
          <Button kind="quiet" icon="close" onClick={clear}>
            {w.clearFilters}
          </Button>
        )}
        <span class="count" role="status">
          {list.count === undefined ? "" : w.found(list.count)}
        </span>
      </div>
      {query.state === "stale" && (list.count ?? 0) > 0 && (
        <p class="bar warn">
          <span>{w.cleanUp.offer(list.count ?? 0)}</span>
          <Button onClick={() => set({ clean: "1" }, true)}>{w.cleanUp.begin}</Button>
        </p>
      )}
      <Waiting round={proposed} />
      {chosen.size > 0 && (
        <ChosenBar
          chosen={chosen}
          onClear={() => setChosen(new Map())}
          onDone={() => {
            setChosen(new Map());
            list.reload();
          }}
        />
      )}
      <Content of={list.first} rows={10}>
        {() =>
          list.count === 0 ? (
            isFiltered ? (
              <Empty title={w.nothingFound} icon="search">
                <Button onClick={clear}>{w.clearFilters}</Button>
              </Empty>
            ) : (
              <Empty title={w.emptyTitle} command={w.emptyCommand}>
                <p class="muted">{w.emptyText}</p>
                <Button kind="main" icon="plus" onClick={() => set({ new: "1" }, true)}>
                  {w.firstFlag}
                </Button>
              </Empty>
            )
          ) : (
            <DataTable
              label={words.frame.pages.flags}
              columns={columns}
              count={list.count ?? 0}
              rowAt={list.at}
              keyOf={(flag) => flag.id}
              onView={list.view}
              onOpen={(flag) => go(`flags/${flag.id}`)}
              onChoose={choose}
              rowHeight={56}
              narrowHeight={68}
            />
          )
        }
      </Content>
      {query.clean && (
        <CleanUp
          onClose={() => {
            set({ clean: undefined });
            list.reload();
          }}
        />
      )}
      {query.new && (
        <NewFlag
          onClose={() => set({ new: undefined })}
          onMade={(flag) => {
            tell(w.create.created(flag.key));
            go(`flags/${flag.id}`);
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
      {question && (
        <Question
          title={w.criticalTitle(question.key)}
          text={w.criticalText(question.key, whoGetsIt(question.filters))}
          action={question.active ? w.switchOff : w.switchOn}
          onYes={() => void flip(question, !question.active)}
          onClose={() => setQuestion(undefined)}
        />
      )}
    </Page>
  );
}

/** Proposed changes that somebody has to agree to. */
function Waiting({ round }: { round: number }) {
  const found = useResource<{
    results: { flag_id: number | null; flag_key: string; cohort_id: number; cohort_name: string }[];
  }>(`waiting ${project.value?.id} ${round}`, (signal) =>
    ask(inProject("change_requests/?state=pending"), { signal }),
  );
  const all = found.data?.results ?? [];
  if (all.length === 0) return null;
  const keys = new Map(
    all.map((one) =>
      one.flag_id === null
        ? [`cohorts/${one.cohort_id}`, one.cohort_name]
        : [`flags/${one.flag_id}`, one.flag_key],
    ),
  );
  return (
    <p class="bar accent">
      <span>
        {w.waiting(all.length)}{" "}
        {[...keys].slice(0, waitingShown).map(([page, key], place) => (
          <>
            {place > 0 && ", "}
            <a key={page} href={to(page)}>
              {key}
            </a>
          </>
        ))}
        {keys.size > waitingShown && " …"}
      </span>
    </p>
  );
}

/** Tags of the flags that were found; they gather while one looks around. */
const knownTags = new Map<number | undefined, Set<string>>();

function tagsOf(page: FlagPage | undefined, chosen: string | undefined): string[] {
  const known = knownTags.get(project.value?.id) ?? new Set<string>();
  knownTags.set(project.value?.id, known);
  for (const { tags } of page?.results ?? []) for (const tag of tags) known.add(tag);
  if (chosen) known.add(chosen);
  return [...known].sort();
}

function MadeBy({ value, onChange }: { value: string; onChange: (id: string) => void }) {
  const members = useAside<{ results: { user: { id: number; first_name: string; email: string } }[] }>(
    "members",
    (signal) => ask("/api/organizations/@current/members/?limit=500", { signal }),
  );
  const found = members.data?.results ?? [];
  if (found.length < 2 && value === "") return null;
  return (
    <Select
      label={w.by}
      isLabelHidden
      value={value}
      choices={[
        ["", w.anybody],
        ...found.map(({ user }) => [String(user.id), user.first_name || user.email] as const),
      ]}
      onChange={onChange}
    />
  );
}
