/** One person: properties, flags with values and why, events, ids. */

import { useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { to, useAddress } from "../../lib/address.ts";
import { ask, queryText } from "../../lib/api.ts";
import { dateTime, valueText } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { type StoredEvent, shortProperties } from "../../model/events.ts";
import { Badge, CopyButton, Tabs, When } from "../../parts/basics.tsx";
import { EventDetails, Properties } from "../../parts/event-details.tsx";
import { SearchField } from "../../parts/fields.tsx";
import { Page } from "../../parts/page.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { type Column, DataTable } from "../../parts/table.tsx";
import { words } from "../../words/index.ts";
import type { Person } from "./persons.tsx";

const w = words.people;
type Tab = keyof typeof w.tabs;
const eventsMax = 100;
const cohortsMax = 20;

export function PersonPage() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set } = useAddress();
  const person = useResource<Person>(`person ${project.value?.id} ${id}`, (signal) =>
    ask(inProject(`persons/${encodeURIComponent(id)}/`), { signal }),
  );
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "properties") as Tab;
  const found = person.data;
  const name = found ? found.name || found.distinct_ids[0] || found.uuid : words.frame.pages.persons;
  return (
    <Page title={name}>
      <Content of={person}>
        {(data) => (
          <>
            <p class="row">
              <Badge tone={data.is_identified ? "good" : "plain"}>
                {data.is_identified ? w.identified : w.anonymous}
              </Badge>
              <span class="muted">
                {w.columns.made} <When at={data.created_at} />
              </span>
            </p>
            <Tabs
              label={w.tabsLabel}
              tabs={Object.entries(w.tabs) as [Tab, string][]}
              current={tab}
              onChoose={(next) => set({ tab: next === "properties" ? undefined : next }, true)}
            />
            {tab === "properties" && <PropertiesTab person={data} />}
            {tab === "flags" && <FlagsTab person={data} />}
            {tab === "events" && <EventsTab person={data} />}
            {tab === "ids" && (
              <section class="card stack">
                <p class="help">{w.idsHelp}</p>
                <ul class="lines">
                  {data.distinct_ids.map((one) => (
                    <li key={one} class="row apart">
                      <code>{one}</code> <CopyButton text={one} />
                    </li>
                  ))}
                </ul>
              </section>
            )}
          </>
        )}
      </Content>
    </Page>
  );
}

/** The latest events of a person. */
function useEventsOf({ uuid }: Person) {
  return useResource<{ results: StoredEvent[] }>(`events of ${uuid}`, (signal) =>
    ask(inProject(`events/${queryText({ person_id: uuid, limit: eventsMax })}`), { signal }),
  );
}

interface CohortName {
  id: number;
  name: string;
}

/** The newest cohorts that hold a person: each is asked. */
async function cohortsOf({ uuid }: Person, signal: AbortSignal): Promise<CohortName[]> {
  const { results } = await ask<{ results: CohortName[] }>(
    inProject(`cohorts/${queryText({ limit: cohortsMax, hide_behavioral_cohorts: true })}`),
    { signal },
  );
  const held = await Promise.all(
    results.map(({ id }) =>
      ask<{ results: unknown[] }>(inProject(`persons/${queryText({ cohort: id, uuid })}`), { signal }),
    ),
  );
  return results.filter((_, place) => held[place]!.results.length > 0);
}

function PropertiesTab({ person }: { person: Person }) {
  const cohorts = useResource(`cohorts of ${person.uuid}`, (signal) => cohortsOf(person, signal));
  const events = useEventsOf(person);
  // As the latest events name them: a person belongs to no group by itself.
  const groups = [
    ...new Set(
      (events.data?.results ?? []).flatMap(({ properties }) =>
        Object.entries((properties.$groups ?? {}) as Record<string, unknown>).map(
          ([type, key]) => `${type}: ${valueText(key)}`,
        ),
      ),
    ),
  ].sort();
  const [search, setSearch] = useState("");
  const wanted = search.toLowerCase();
  const entries = Object.entries(person.properties).filter(([name, value]) =>
    `${name} ${valueText(value)}`.toLowerCase().includes(wanted),
  );
  return (
    <section class="card stack">
      <SearchField label={w.searchProperties} value={search} onInput={setSearch} />
      {entries.length === 0 ? <p class="muted">{w.noProperties}</p> : <Properties entries={entries} />}
      {(cohorts.data?.length ?? 0) > 0 && (
        <>
          <h2>{words.frame.pages.cohorts}</h2>
          <ul class="changes">
            {cohorts.data!.map(({ id, name }) => (
              <li key={id}>
                <a href={to(`cohorts/${id}`)}>{name}</a>
              </li>
            ))}
          </ul>
        </>
      )}
      {groups.length > 0 && (
        <>
          <h2>{w.groups}</h2>
          <ul class="changes">
            {groups.map((group) => (
              <li key={group}>{group}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

interface Reason {
  value: unknown;
  evaluation: { reason: string; condition_index: number | null; description?: string };
}

function FlagsTab({ person }: { person: Person }) {
  const distinctId = person.distinct_ids[0] ?? "";
  const flags = useResource<Record<string, Reason>>(`flags of ${person.uuid}`, (signal) =>
    ask(inProject(`feature_flags/evaluation_reasons/${queryText({ distinct_id: distinctId })}`), { signal }),
  );
  const columns: Column<[string, Reason]>[] = [
    {
      id: "flag",
      title: w.flag,
      width: "minmax(0, 2fr)",
      cell: ([key]) => <a href={to("flags", { search: key })}>{key}</a>,
    },
    {
      id: "value",
      title: w.value,
      width: "minmax(0, 1fr)",
      cell: ([, { value }]) => <Badge tone={value ? "good" : "plain"}>{valueText(value)}</Badge>,
    },
    {
      id: "why",
      title: w.why,
      width: "minmax(0, 2fr)",
      isWideOnly: true,
      cell: ([, { evaluation }]) => (
        <span class="muted">{evaluation.description ?? evaluation.reason.replaceAll("_", " ")}</span>
      ),
    },
  ];
  return (
    <Content of={flags}>
      {(data) => {
        const rows = Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1));
        return rows.length === 0 ? (
          <Empty title={w.noFlags} icon="flag" />
        ) : (
          <DataTable
            label={w.tabs.flags}
            columns={columns}
            count={rows.length}
            rowAt={(index) => rows[index]}
            keyOf={([key]) => key}
            narrowHeight={48}
          />
        );
      }}
    </Content>
  );
}

const eventColumns: Column<StoredEvent>[] = [
  {
    id: "time",
    title: words.live.columns.time,
    width: "13rem",
    cell: ({ timestamp }) => <span class="number">{dateTime(timestamp)}</span>,
  },
  {
    id: "event",
    title: words.live.columns.event,
    width: "minmax(0, 1fr)",
    cell: ({ event }) => <b>{event}</b>,
  },
  {
    id: "properties",
    title: words.live.columns.properties,
    width: "minmax(0, 2fr)",
    isWideOnly: true,
    cell: ({ properties }) => <span class="muted">{shortProperties(properties)}</span>,
  },
];

function EventsTab({ person }: { person: Person }) {
  const [opened, setOpened] = useState<StoredEvent>();
  const events = useEventsOf(person);
  return (
    <>
      <Content of={events}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title={words.live.noStored} icon="live" />
          ) : (
            <DataTable
              label={w.events}
              columns={eventColumns}
              count={results.length}
              rowAt={(index) => results[index]}
              keyOf={({ uuid }) => uuid}
              onOpen={setOpened}
              rowHeight={40}
              narrowHeight={44}
            />
          )
        }
      </Content>
      {opened && <EventDetails event={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}
