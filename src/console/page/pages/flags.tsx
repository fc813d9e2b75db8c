/** Flag list: searched by the server; switches take effect immediately, with undo for ten seconds. */

import { useState } from "preact/hooks";
import { criticalTag } from "../../../flags/rules/critical-tag.ts";
import {
  type ApprovalRequired,
  ChangeRequestDialog,
  needsApproval,
} from "../components/change-request-dialog.tsx";
import { ConfirmDialog } from "../components/confirm.tsx";
import { Checkbox, SearchField, Select } from "../components/fields.tsx";
import { Filters } from "../components/filters.tsx";
import { Page } from "../components/page.tsx";
import { Badge, Button, RelativeTime, Switch } from "../components/primitives.tsx";
import { Sparkline } from "../components/sparkline.tsx";
import { Content, Empty, NotLoaded } from "../components/states.tsx";
import { type Column, DataTable } from "../components/table.tsx";
import { toast, toastError } from "../components/toast.tsx";
import { Waiting } from "../components/waiting.tsx";
import { errorMessage, request } from "../lib/api.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import { useBackgroundResource } from "../lib/resource.ts";
import { to, useAddress, useSearch } from "../lib/router.ts";
import { project } from "../lib/session.ts";
import { useShortcuts } from "../lib/shortcuts.ts";
import { words } from "../messages/index.ts";
import { useApprovals } from "../model/approvals.ts";
import { useCohortNames } from "../model/definitions.ts";
import { useFlagPages, useUsage } from "../model/flag-pages.ts";
import { changeFlag, type Flag, type FlagPage, restoreFlag, rolloutSummary } from "../model/flags.ts";
import { BulkBar } from "./flags-bulk.tsx";
import { NewFlag } from "./new-flag.tsx";

/** Loaded when a user starts a clean-up. */
const CleanUp = lazyPage(() => import("./flags-clean-up.tsx").then(({ CleanUp }) => CleanUp), NotLoaded);

const w = words.flags;
const stateValues = {
  all: undefined,
  on: "true",
  off: "false",
  stale: "STALE",
  deleted: undefined,
} as const;
const filterNames = ["state", "type", "tag", "by"] as const;
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
  const [rejected, setRejected] = useState<ApprovalRequired>();
  const [proposed, setProposed] = useState(0);
  const filter = {
    search: query.search,
    active: stateValues[(query.state ?? "all") as keyof typeof stateValues],
    deleted: query.state === "deleted" ? "true" : undefined,
    type: query.type,
    tags: query.tag ? JSON.stringify([query.tag]) : undefined,
    created_by_id: query.by,
    order: orderValues[(query.order ?? "newest") as keyof typeof orderValues],
  };
  const list = useFlagPages(filter, toastError);
  const usage = useUsage(list.inView);
  const isFiltered = ["search", ...filterNames].some((name) => query[name]);

  useShortcuts({ n: () => set({ new: "1" }, true) });

  useCohortNames();
  const approvals = useApprovals();

  const flip = async (flag: Flag, isOn: boolean, isUndo = false) => {
    if (await approvals.whenKnown(flag)) return setRejected({ flag, changes: { active: isOn } });
    list.put({ ...flag, active: isOn });
    try {
      list.put(await changeFlag(flag.id, { active: isOn }));
      if (isUndo) toast(w.switchedBack(flag.key));
      else toast(isOn ? w.switchedOn(flag.key) : w.switchedOff(flag.key), () => void flip(flag, !isOn, true));
    } catch (error) {
      list.put(flag);
      if (needsApproval(error)) setRejected({ flag, changes: { active: isOn } });
      else toastError(errorMessage(error));
    }
  };
  const restore = async (flag: Flag) => {
    if (await approvals.whenKnown(flag)) return setRejected({ flag, changes: { deleted: false } });
    try {
      toast(w.restored((await restoreFlag(flag.id)).key));
      list.reload();
    } catch (error) {
      if (needsApproval(error)) setRejected({ flag, changes: { deleted: false } });
      else toastError(errorMessage(error));
    }
  };
  const toggle = (flag: Flag) => {
    if (flag.tags.includes(criticalTag) && !approvals.needed(flag)) setQuestion(flag);
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
          <div class="sub">{flag.name || rolloutSummary(flag.filters)}</div>
        </>
      ),
    },
    {
      id: "who",
      title: w.columns.who,
      width: "minmax(0, 2.2fr)",
      isWideOnly: true,
      cell: (flag) => <span title={rolloutSummary(flag.filters)}>{rolloutSummary(flag.filters)}</span>,
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
      cell: (flag) => <RelativeTime at={flag.last_called_at} fallback={w.neverAsked} />,
    },
    {
      id: "on",
      title: w.columns.on,
      width: query.state === "deleted" ? "6rem" : "2.8rem",
      cell: (flag) =>
        flag.deleted ? (
          <Button
            label={`${w.restore}: ${flag.key}`}
            refusal={!flag.can_edit && w.notAllowed}
            onClick={() => void restore(flag)}
          >
            {w.restore}
          </Button>
        ) : (
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
      <Filters
        search={<SearchField label={w.search} value={text} onInput={setText} />}
        count={filterNames.filter((name) => query[name]).length}
        found={
          <span class="count" role="status">
            {list.count === undefined ? "" : w.found(list.count)}
          </span>
        }
      >
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
          choices={[["", w.anyTag], ...getTags(list.first.data, query.tag).map((tag) => [tag, tag] as const)]}
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
      </Filters>
      {query.state === "stale" && (list.count ?? 0) > 0 && (
        <p class="bar warn">
          <span>{w.cleanUp.offer(list.count ?? 0)}</span>
          <Button onClick={() => set({ clean: "1" }, true)}>{w.cleanUp.begin}</Button>
        </p>
      )}
      <Waiting round={proposed} />
      {chosen.size > 0 && (
        <BulkBar
          chosen={chosen}
          onClear={() => setChosen(new Map())}
          onProposed={() => setProposed(proposed + 1)}
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
              rowHeight={40}
              narrowHeight={60}
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
            toast(w.create.created(flag.key));
            go(`flags/${flag.id}`);
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
      {question && (
        <ConfirmDialog
          title={w.criticalTitle(question.key)}
          text={w.criticalText(question.key, rolloutSummary(question.filters))}
          action={question.active ? w.switchOff : w.switchOn}
          onYes={() => void flip(question, !question.active)}
          onClose={() => setQuestion(undefined)}
        />
      )}
    </Page>
  );
}

/** Tags of the flags found so far. */
const knownTags = new Map<number | undefined, Set<string>>();

function getTags(page: FlagPage | undefined, chosen: string | undefined): string[] {
  const known = knownTags.get(project.value?.id) ?? new Set<string>();
  knownTags.set(project.value?.id, known);
  for (const { tags } of page?.results ?? []) for (const tag of tags) known.add(tag);
  if (chosen) known.add(chosen);
  return [...known].sort();
}

function MadeBy({ value, onChange }: { value: string; onChange: (id: string) => void }) {
  const members = useBackgroundResource<{
    results: { user: { id: number; first_name: string; email: string } }[];
  }>("members", (signal) => request("/api/organizations/@current/members/?limit=500", { signal }));
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
