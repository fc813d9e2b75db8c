/** Flag list: searched by the server; switches take effect immediately, with undo for ten seconds. */

import { useState } from "preact/hooks";
import { criticalTag } from "../../../../flags/rules/shared-rules.ts";
import {
  type ApprovalRequired,
  ChangeRequestDialog,
  needsApproval,
} from "../../components/change-request-dialog.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { SearchField } from "../../components/fields.tsx";
import { Filters } from "../../components/filters.tsx";
import { Page } from "../../components/page.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content, Empty, NotLoaded } from "../../components/states.tsx";
import { DataTable } from "../../components/table.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { lazyPage } from "../../lib/lazy-page.ts";
import { useAddress, useSearch } from "../../lib/router.ts";
import { useShortcuts } from "../../lib/shortcuts.ts";
import { messages } from "../../messages/index.ts";
import { useApprovals } from "../../model/approvals.ts";
import { useCohortNames } from "../../model/definitions.ts";
import { useFlagPages, useUsage } from "../../model/flag-pages.ts";
import { changeFlag, type Flag, restoreFlag, rolloutSummary } from "../../model/flags.ts";
import { flagColumns } from "./columns.tsx";
import { defaultOrder, FilterChips, filterNames, getOrder, useFlagFilter } from "./filter-bar.tsx";

const BulkBar = lazyPage<Parameters<typeof import("./bulk.tsx").BulkBar>[0]>(
  () => import("./bulk.tsx").then(({ BulkBar }) => BulkBar),
  NotLoaded,
);
const NewFlag = lazyPage<Parameters<typeof import("./new-flag.tsx").NewFlag>[0]>(
  () => import("./new-flag.tsx").then(({ NewFlag }) => NewFlag),
  NotLoaded,
);
/** Loaded when a user starts a clean-up. */
const CleanUp = lazyPage(() => import("./clean-up.tsx").then(({ CleanUp }) => CleanUp), NotLoaded);
const Views = lazyPage<Parameters<typeof import("./views.tsx").Views>[0]>(
  () => import("./views.tsx").then(({ Views }) => Views),
  NotLoaded,
);

const w = messages.flags;

export function Flags() {
  const address = useAddress();
  const { query, set, go } = address;
  const [text, setText] = useSearch(address);
  const [chosen, setChosen] = useState<ReadonlyMap<number, Flag>>(new Map());
  const [question, setQuestion] = useState<Flag>();
  const [rejected, setRejected] = useState<ApprovalRequired>();
  const [proposed, setProposed] = useState(0);
  const [isViewing, setViewing] = useState(false);
  const filter = useFlagFilter(query);
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
      else toastError(error);
    }
  };
  const restore = async (flag: Flag) => {
    if (await approvals.whenKnown(flag)) return setRejected({ flag, changes: { deleted: false } });
    try {
      toast(w.restored((await restoreFlag(flag.id)).key));
      list.reload();
    } catch (error) {
      if (needsApproval(error)) setRejected({ flag, changes: { deleted: false } });
      else toastError(error);
    }
  };
  const toggle = (flag: Flag) => {
    if (flag.tags.includes(criticalTag) && !approvals.needed(flag)) setQuestion(flag);
    else void flip(flag, !flag.active);
  };
  const clear = () => {
    setText("");
    set(Object.fromEntries(["search", ...filterNames].map((name) => [name, undefined])));
  };
  const choose = (flag: Flag) => {
    const next = new Map(chosen);
    if (!next.delete(flag.id)) next.set(flag.id, flag);
    setChosen(next);
  };

  const columns = flagColumns({
    chosen,
    onChoose: choose,
    onToggle: toggle,
    onRestore: (flag) => void restore(flag),
    usage,
    isOfDeleted: query.state === "deleted",
  });

  return (
    <Page
      title={messages.frame.pages.flags}
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
        <FilterChips query={query} set={set} page={list.first.data} />
        {isFiltered && list.count !== 0 && (
          <Button kind="quiet" icon="close" onClick={clear}>
            {w.clearFilters}
          </Button>
        )}
        <Button icon="filter" onClick={() => setViewing(true)}>
          {isFiltered || query.order ? w.views.saveView : w.views.open}
        </Button>
      </Filters>
      {query.state === "stale" && (list.count ?? 0) > 0 && (
        <p class="bar warn">
          <span>{w.cleanUp.copyOffer(list.count ?? 0)}</span>
          <Button onClick={() => set({ clean: "1" }, true)}>{w.cleanUp.start}</Button>
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
      <Content resource={list.first} rows={10}>
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
              label={messages.frame.pages.flags}
              columns={columns}
              count={list.count ?? 0}
              rowAt={list.at}
              keyOf={(flag) => flag.id}
              onView={list.view}
              onOpen={(flag) => go(`flags/${flag.id}`)}
              onChoose={choose}
              rowHeight={40}
              rowClass={(flag) => (flag.active || flag.deleted ? undefined : "off")}
              order={getOrder(query)}
              onOrder={(order) => set({ order: order === defaultOrder ? undefined : order })}
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
      {isViewing && <Views query={query} onClose={() => setViewing(false)} />}
      {query.new && (
        <NewFlag
          onClose={() => set({ new: undefined })}
          onCreated={(flag) => {
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
