/** Lists as tabs: a row filters the page; Details shows all rows with search and CSV. */

import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { SearchField } from "../../components/fields.tsx";
import { Button, Tabs } from "../../components/primitives.tsx";
import { download, toCsv } from "../../lib/csv.ts";
import { number, percent } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { messages } from "../../messages/index.ts";
import {
  type Facet,
  type List,
  type ListName,
  type ListRow,
  listColumns,
  lists,
  readList,
  type View,
} from "../../model/overview.ts";
import { Panel, ShareBar } from "./panel.tsx";

const w = messages.overview;
const shownRows = 8;
const detailRows = 1_000;
const refreshMs = 60_000;

interface ListProps {
  view: View;
  /** Identifies the view and project. */
  resourceKey: string;
  onFilter: (facet: Facet, value: string) => void;
}

export function ListPanel({
  label,
  tabs,
  ...props
}: ListProps & { label: string; tabs: readonly ListName[] }) {
  const [current, setCurrent] = useState(tabs[0]!);
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="overview-panel" aria-label={label}>
      <div class="panel-head">
        <Tabs
          label={label}
          tabs={tabs.map((name) => [name, w.lists[name]] as const)}
          current={current}
          onChoose={setCurrent}
        />
        <Button
          kind="quiet"
          label={w.detailsOf(w.lists[current])}
          icon="expand"
          onClick={() => setOpen(true)}
        />
      </div>
      {/* By list: rows of another one must not stand under its title. */}
      <ShortList key={current} name={current} {...props} />
      {isOpen && <Details name={current} {...props} onClose={() => setOpen(false)} />}
    </section>
  );
}

function ShortList({ name, view, resourceKey, onFilter }: ListProps & { name: ListName }) {
  const list = useBackgroundResource<List>(
    `overview ${name} ${resourceKey}`,
    (signal) => readList(view, name, shownRows, signal),
    refreshMs,
  );
  return (
    <Panel resource={list}>{(found) => <ListTable name={name} list={found} onFilter={onFilter} />}</Panel>
  );
}

export function ListTable({
  name,
  list: { rows, isEstimated, hasGoal },
  onFilter,
}: {
  name: ListName;
  list: List;
  /** Absent: rows filter nothing. */
  onFilter?: ListProps["onFilter"];
}) {
  if (rows.length === 0) return <p class="muted">{w.nothing}</p>;
  const most = Math.max(1, ...rows.map(({ visitors }) => visitors[0] ?? 0));
  const { facet } = lists[name];
  return (
    <>
      <table class="share-table">
        <thead>
          <tr>
            {[w.lists[name], ...listColumns(hasGoal)].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ value, label, visitors, amount, rate }) => (
            <tr key={value}>
              <th scope="row">
                <ShareBar share={(visitors[0] ?? 0) / most} />
                {onFilter !== undefined && facet !== undefined && value !== null ? (
                  <button type="button" class="share-name" onClick={() => onFilter(facet, value)}>
                    {label}
                  </button>
                ) : (
                  <span class="share-name">{label}</span>
                )}
              </th>
              <td>{number(visitors[0] ?? 0)}</td>
              <td>{number(amount[0] ?? 0)}</td>
              <td>{rate[0] === null ? w.noValue : percent(rate[0])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {isEstimated && <p class="help">{w.estimated}</p>}
    </>
  );
}

function Details({
  name,
  view,
  resourceKey,
  onFilter,
  onClose,
}: ListProps & { name: ListName; onClose: () => void }) {
  const [search, setSearch] = useState("");
  const list = useResource<List>(`overview details ${name} ${resourceKey}`, (signal) =>
    readList(view, name, detailRows, signal),
  );
  const isFound = ({ label }: ListRow) => label.toLowerCase().includes(search.trim().toLowerCase());
  const save = () => {
    const columns = [w.lists[name], ...listColumns(view.goal !== undefined)];
    const rows = (list.data?.rows ?? []).filter(isFound).map((row) => ({
      [columns[0]!]: row.label,
      [columns[1]!]: row.visitors[0],
      [columns[2]!]: row.amount[0],
      [columns[3]!]: row.rate[0],
    }));
    download(`${name}.csv`, toCsv(columns, rows));
  };
  return (
    <Dialog title={w.lists[name]} size="large" onClose={onClose}>
      <div class="row apart">
        <SearchField label={w.lists[name]} value={search} onInput={setSearch} />
        <Button icon="download" onClick={save}>
          {w.csv}
        </Button>
      </div>
      <Panel resource={list}>
        {(found) => (
          <ListTable
            name={name}
            list={{ ...found, rows: found.rows.filter(isFound) }}
            onFilter={(facet, value) => {
              onClose();
              onFilter(facet, value);
            }}
          />
        )}
      </Panel>
    </Dialog>
  );
}
