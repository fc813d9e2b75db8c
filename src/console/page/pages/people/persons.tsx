/** Persons, and groups of each type, searched by the server. */

import { useState } from "preact/hooks";
import { useGroupTypes } from "../../components/conditions.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Properties } from "../../components/event-details.tsx";
import { SearchField } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, RelativeTime, Tabs } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { TokenField } from "../../components/tokens.tsx";
import { queryString, request } from "../../lib/api.ts";
import type { Group } from "../../lib/api-types.ts";
import { formatValue } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress, useSearch } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { usePropertyNames } from "../../model/definitions.ts";
import { shortProperties } from "../../model/events.ts";
import { getIdentity, type Person } from "../../model/people.ts";

const w = lazyMessages.people;
const pageSize = 100;

const personColumns: Column<Person>[] = [
  {
    id: "name",
    title: w.columns.name,
    width: "minmax(0, 1.4fr)",
    cell: (person) => (
      <>
        <a href={to(`persons/${person.uuid}`)}>{person.name || person.distinct_ids[0] || person.uuid}</a>
        <span class="sub">{getIdentity(person)}</span>
      </>
    ),
  },
  {
    id: "ids",
    title: w.columns.ids,
    width: "minmax(0, 1.2fr)",
    isWideOnly: true,
    cell: ({ distinct_ids: ids }) => (
      <span class="mono">
        {ids[0]} {ids.length > 1 && <Badge>+{ids.length - 1}</Badge>}
      </span>
    ),
  },
  {
    id: "properties",
    title: w.columns.properties,
    width: "minmax(0, 2fr)",
    isWideOnly: true,
    cell: ({ properties }) => <span class="muted">{shortProperties(properties)}</span>,
  },
  {
    id: "created",
    title: w.columns.created,
    width: "6.8rem",
    cell: ({ created_at: at }) => <RelativeTime at={at} />,
  },
];

/** A list of persons that link to their pages. */
export function PersonTable({
  label,
  columns = personColumns,
  persons,
}: {
  label: string;
  columns?: Column<Person>[];
  persons: readonly Person[];
}) {
  const { go } = useAddress();
  return (
    <DataTable
      label={label}
      columns={columns}
      count={persons.length}
      rowAt={(index) => persons[index]}
      keyOf={({ uuid }) => uuid}
      onOpen={({ uuid }) => go(`persons/${uuid}`)}
      rowHeight={56}
      narrowHeight={60}
    />
  );
}

const groupColumns: Column<Group>[] = [
  { id: "key", title: w.columns.key, width: "minmax(0, 1fr)", cell: ({ group_key: key }) => <b>{key}</b> },
  {
    id: "properties",
    title: w.columns.properties,
    width: "minmax(0, 2fr)",
    isWideOnly: true,
    cell: ({ group_properties: properties }) => <span class="muted">{shortProperties(properties)}</span>,
  },
  {
    id: "created",
    title: w.columns.created,
    width: "8rem",
    cell: ({ created_at: at }) => <RelativeTime at={at} />,
  },
];

export function Persons() {
  const address = useAddress();
  const { query, set } = address;
  const types = useGroupTypes();
  const kind = types.some(({ group_type_index: index }) => String(index) === query.group) ? query.group! : "";
  const [text, setText] = useSearch(address);
  const [limit, setLimit] = useState(pageSize);
  const [opened, setOpened] = useState<Group>();
  const persons = useResource<{ results: Person[]; next: string | null }>(
    kind === "" ? `persons ${project.value?.id} ${query.search} ${query.cohort} ${limit}` : null,
    (signal) =>
      request(inProject(`persons/${queryString({ search: query.search, cohort: query.cohort, limit })}`), {
        signal,
      }),
  );
  const groups = useResource<{ results: Group[]; next: string | null }>(
    kind === "" ? null : `groups ${project.value?.id} ${kind} ${limit}`,
    (signal) => request(inProject(`groups/${queryString({ group_type_index: kind, limit })}`), { signal }),
  );
  const names = usePropertyNames("person");
  const chosen = (query.columns ?? "").split(",").filter((name) => name !== "");
  const shown =
    chosen.length === 0
      ? personColumns
      : [
          ...personColumns.filter(({ id }) => id !== "properties"),
          ...chosen.map(
            (name): Column<Person> => ({
              id: `p-${name}`,
              title: name,
              width: "minmax(0, 1fr)",
              isWideOnly: true,
              cell: ({ properties }) => (name in properties ? formatValue(properties[name]) : "–"),
            }),
          ),
        ];
  const more = (next: string | null) =>
    next && (
      <div>
        <Button onClick={() => setLimit(limit + pageSize)}>{w.more}</Button>
      </div>
    );
  return (
    <Page title={messages.frame.pages.persons}>
      {types.length > 0 && (
        <Tabs
          label={w.kinds}
          tabs={[
            ["", w.persons],
            ...types.map(({ group_type: name, group_type_index: index }) => [String(index), name] as const),
          ]}
          current={kind}
          onChoose={(next) => set({ group: next || undefined }, true)}
        />
      )}
      {kind === "" ? (
        <>
          <div class="filters">
            <SearchField label={w.search} value={text} onInput={setText} />
            <TokenField
              label={w.choose}
              addLabel={w.choose}
              values={chosen}
              suggestions={names}
              onChange={(columns) => set({ columns: columns.join(",") || undefined })}
            />
          </div>
          <Content of={persons} rows={10}>
            {({ results, next }) =>
              results.length === 0 ? (
                query.search || query.cohort ? (
                  <Empty title={w.nothingFound} icon="search" />
                ) : (
                  <Empty title={w.empty} icon="persons" command="flagkeep import FILE">
                    <p class="muted">{w.emptyText}</p>
                    <Button href={to("start")}>{messages.live.emptyAction}</Button>
                  </Empty>
                )
              ) : (
                <>
                  <PersonTable label={messages.frame.pages.persons} columns={shown} persons={results} />
                  {more(next)}
                </>
              )
            }
          </Content>
        </>
      ) : (
        <Content of={groups} rows={10}>
          {({ results, next }) =>
            results.length === 0 ? (
              <Empty title={w.noGroups} icon="persons" />
            ) : (
              <>
                <DataTable
                  label={
                    types.find(({ group_type_index: index }) => String(index) === kind)?.group_type ?? w.kinds
                  }
                  columns={groupColumns}
                  count={results.length}
                  rowAt={(index) => results[index]}
                  keyOf={({ group_key: key }) => key}
                  onOpen={setOpened}
                  narrowHeight={52}
                />
                {more(next)}
              </>
            )
          }
        </Content>
      )}
      {opened && (
        <Dialog title={opened.group_key} size="large" onClose={() => setOpened(undefined)}>
          <Properties entries={Object.entries(opened.group_properties)} />
        </Dialog>
      )}
    </Page>
  );
}
