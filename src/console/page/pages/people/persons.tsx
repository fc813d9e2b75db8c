/** Persons, and groups of each type, searched by the server. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ColumnChooser, useChosenColumns } from "../../components/chosen-columns.tsx";
import { useGroupTypes } from "../../components/conditions.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Properties } from "../../components/event-details.tsx";
import { SearchField } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Button, RelativeTime, Tabs } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { queryString, request } from "../../lib/api.ts";
import type { Group } from "../../lib/api-types.ts";
import { countryName, initials, number, toUtc } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { to, useAddress, useSearch } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { quoted } from "../../lib/sql.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { usePropertyNames } from "../../model/definitions.ts";
import { shortProperties } from "../../model/events.ts";
import { getIdentity, type Person } from "../../model/people.ts";

const w = lazyMessages.people;
const pageSize = 100;

/** Person properties: identities, and how the person arrived. */
const getText = ({ properties }: Person, ...names: readonly string[]) =>
  names.map((name) => properties[name]).find((value) => typeof value === "string" && value !== "") as
    | string
    | undefined;

function getReferrer(person: Person): string {
  const host = getText(person, "$initial_referring_domain", "$referring_domain");
  if (host === undefined) return "–";
  return host === "$direct" ? w.direct : host.replace(/^www\./, "");
}

function getCountry(person: Person): string {
  const code = getText(
    person,
    "$geoip_country_code",
    "$initial_geoip_country_code",
    "$country_code",
    "country",
  );
  return code === undefined ? "–" : /^[A-Z]{2}$/.test(code) ? countryName(code) : code;
}

/** What persons did lately. */
interface Recent {
  /** Undefined: not lately. */
  last: string | undefined;
  events: number;
}

const recentDays = 30;

/** Undefined: not read yet; null: cannot be read. */
type RecentOf = (uuid: string) => Recent | undefined | null;

const noEvents: Recent = { last: undefined, events: 0 };

/** When each of the persons was last seen, and how many events they sent. */
function useRecent(persons: readonly Person[]): RecentOf {
  const ids = persons.map(({ uuid }) => quoted(uuid)).join(", ");
  const statement = `SELECT e.person_id AS id, max(e.timestamp) AS last, count(*)::INTEGER AS events FROM events e
WHERE e.timestamp >= now() - INTERVAL ${recentDays} DAY AND e.person_id IN (${ids}) GROUP BY ALL`;
  // The data of other persons stays until that of these is read.
  const { data, failure } = useBackgroundResource<ReadonlyMap<string, Recent>>(
    persons.length === 0 ? null : `recent ${project.value?.id} ${ids}`,
    async (signal) => {
      const { rows } = await request<{ rows: ({ id: string } & Recent)[] }>(inProject("query/"), {
        method: "POST",
        body: { query: statement, limit: persons.length },
        signal,
      });
      const found = new Map(rows.map(({ id, ...recent }) => [id, recent]));
      return new Map(persons.map(({ uuid }) => [uuid, found.get(uuid) ?? noEvents]));
    },
  );
  return (uuid) => data?.get(uuid) ?? (failure && null);
}

function LastSeen({ recent }: { recent: Recent }) {
  return recent.last === undefined ? (
    <span class="muted">{w.overMonthAgo}</span>
  ) : (
    <RelativeTime at={toUtc(recent.last)} />
  );
}

/** A figure of what a person did lately. */
function showRecent(
  recent: ReturnType<RecentOf>,
  show: (recent: Recent) => ComponentChildren,
): ComponentChildren {
  if (recent === undefined) return "";
  return recent === null ? "–" : show(recent);
}

function getColumns(recentOf: RecentOf): Column<Person>[] {
  // The name of the API is the e-mail address if there is one; that has its own column.
  const name = (person: Person) =>
    getText(person, "name", "$name") || person.name || person.distinct_ids[0] || person.uuid;
  return [
    {
      id: "name",
      title: w.columns.name,
      width: "minmax(0, 1.4fr)",
      cell: (person) => (
        <span class="row with-avatar">
          <span class="initials" aria-hidden="true">
            {initials(name(person))}
          </span>
          <a href={to(`persons/${person.uuid}`)}>{name(person)}</a>
        </span>
      ),
    },
    {
      id: "email",
      title: w.columns.email,
      width: "minmax(0, 1.2fr)",
      isWideOnly: true,
      cell: (person) =>
        getText(person, "email", "$email") ?? <span class="muted">{getIdentity(person) ?? "–"}</span>,
    },
    {
      id: "lastSeen",
      title: w.columns.lastSeen,
      width: "8rem",
      cell: ({ uuid }) => showRecent(recentOf(uuid), (recent) => <LastSeen recent={recent} />),
    },
    {
      id: "events",
      title: w.columns.events,
      width: "6.5rem",
      isNumber: true,
      isWideOnly: true,
      cell: ({ uuid }) => showRecent(recentOf(uuid), ({ events }) => number(events)),
    },
    {
      id: "referrer",
      title: w.columns.referrer,
      width: "minmax(0, 1fr)",
      isWideOnly: true,
      cell: getReferrer,
    },
    {
      id: "properties",
      title: w.columns.country,
      width: "minmax(0, 0.8fr)",
      isWideOnly: true,
      cell: getCountry,
    },
  ];
}

/** A list of persons that link to their pages. */
export function PersonTable({ label, persons }: { label: string; persons: readonly Person[] }) {
  const { go } = useAddress();
  const { columns } = useChosenColumns(getColumns(useRecent(persons)));
  return (
    <DataTable
      label={label}
      columns={columns}
      count={persons.length}
      rowAt={(index) => persons[index]}
      keyOf={({ uuid }) => uuid}
      onOpen={({ uuid }) => go(`persons/${uuid}`)}
      rowHeight={40}
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
  const { chosen } = useChosenColumns<Person>([]);
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
            <ColumnChooser chosen={chosen} suggestions={names} />
          </div>
          <Content resource={persons} rows={10}>
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
                  <PersonTable label={messages.frame.pages.persons} persons={results} />
                  {more(next)}
                </>
              )
            }
          </Content>
        </>
      ) : (
        <Content resource={groups} rows={10}>
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
