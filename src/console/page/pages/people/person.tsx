/** A person: details next to the timeline of visits, flag values with reasons, and IDs. */

import { useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { Properties } from "../../components/event-details.tsx";
import { SearchField } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, CopyButton, RelativeTime, Tabs } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { queryString, request } from "../../lib/api.ts";
import { formatValue } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { StoredEvent } from "../../model/events.ts";
import { getIdentity, type Person } from "../../model/people.ts";
import { Timeline } from "./timeline.tsx";

const w = lazyMessages.people;
type Tab = keyof typeof w.tabs;
const eventsMax = 100;
const cohortsMax = 20;

export function PersonPage() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set } = useAddress();
  const person = useResource<Person>(`person ${project.value?.id} ${id}`, (signal) =>
    request(inProject(`persons/${encodeURIComponent(id)}/`), { signal }),
  );
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "timeline") as Tab;
  const found = person.data;
  const name = found ? found.name || found.distinct_ids[0] || found.uuid : messages.frame.pages.persons;
  return (
    <Page title={name}>
      <Content resource={person}>
        {(data) => (
          <>
            <p class="row">
              {getIdentity(data) && (
                <Badge tone={data.is_identified ? "good" : "plain"}>{getIdentity(data)}</Badge>
              )}
              <span class="muted">
                {w.columns.created} <RelativeTime at={data.created_at} />
              </span>
            </p>
            <Details key={data.uuid} person={data} tab={tab} onTab={(next) => set({ tab: next }, true)} />
          </>
        )}
      </Content>
    </Page>
  );
}

function Details({
  person,
  tab,
  onTab,
}: {
  person: Person;
  tab: Tab;
  onTab: (tab: string | undefined) => void;
}) {
  const events = useEventsOf(person);
  return (
    <div class="person">
      <Facts person={person} events={events.data?.results ?? []} />
      <section class="stack person-main">
        <Tabs
          label={w.tabsLabel}
          tabs={Object.entries(w.tabs) as [Tab, string][]}
          current={tab}
          onChoose={(next) => onTab(next === "timeline" ? undefined : next)}
        />
        {tab === "timeline" && <Timeline events={events} />}
        {tab === "flags" && <FlagsTab person={person} />}
        {tab === "ids" && (
          <section class="card stack">
            <p class="help">{w.idsHelp}</p>
            <ul class="lines">
              {person.distinct_ids.map((distinctId) => (
                <li key={distinctId} class="row apart">
                  <code>{distinctId}</code> <CopyButton text={distinctId} />
                </li>
              ))}
            </ul>
          </section>
        )}
      </section>
    </div>
  );
}

function useEventsOf({ uuid }: Person) {
  return useResource<{ results: StoredEvent[] }>(`events of ${uuid}`, (signal) =>
    request(inProject(`events/${queryString({ person_id: uuid, limit: eventsMax })}`), { signal }),
  );
}

interface CohortName {
  id: number;
  name: string;
}

/** The newest cohorts that contain a person: one request per cohort. */
async function getCohorts({ uuid }: Person, signal: AbortSignal): Promise<CohortName[]> {
  const { results } = await request<{ results: CohortName[] }>(
    inProject(`cohorts/${queryString({ limit: cohortsMax, hide_behavioral_cohorts: true })}`),
    { signal },
  );
  const held = await Promise.all(
    results.map(({ id }) =>
      request<{ results: unknown[] }>(inProject(`persons/${queryString({ cohort: id, uuid })}`), { signal }),
    ),
  );
  return results.filter((_, position) => held[position]!.results.length > 0);
}

/** Cohorts, groups and properties. */
function Facts({ person, events }: { person: Person; events: readonly StoredEvent[] }) {
  const cohorts = useResource(`cohorts of ${person.uuid}`, (signal) => getCohorts(person, signal));
  // From the latest events: persons do not belong to groups otherwise.
  const groups = [
    ...new Set(
      events.flatMap(({ properties }) =>
        Object.entries((properties.$groups ?? {}) as Record<string, unknown>).map(
          ([type, key]) => `${type}: ${formatValue(key)}`,
        ),
      ),
    ),
  ].sort();
  const [search, setSearch] = useState("");
  const wanted = search.toLowerCase();
  const entries = Object.entries(person.properties).filter(([name, value]) =>
    `${name} ${formatValue(value)}`.toLowerCase().includes(wanted),
  );
  return (
    <section class="card stack" aria-label={w.facts}>
      <SearchField label={w.searchProperties} value={search} onInput={setSearch} />
      {entries.length === 0 ? <p class="muted">{w.noProperties}</p> : <Properties entries={entries} />}
      {(cohorts.data?.length ?? 0) > 0 && (
        <>
          <h2>{messages.frame.pages.cohorts}</h2>
          <ul class="plain-list">
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

const isOn = (value: unknown) => value !== false && value !== null;

function FlagsTab({ person }: { person: Person }) {
  const [search, setSearch] = useState("");
  const distinctId = person.distinct_ids[0] ?? "";
  const flags = useResource<Record<string, Reason>>(`flags of ${person.uuid}`, (signal) =>
    request(inProject(`feature_flags/evaluation_reasons/${queryString({ distinct_id: distinctId })}`), {
      signal,
    }),
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
      cell: ([, { value }]) => <Badge tone={value ? "good" : "plain"}>{formatValue(value)}</Badge>,
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
    <Content resource={flags}>
      {(data) => {
        const all = Object.entries(data);
        if (all.length === 0) return <Empty title={w.noFlags} icon="flag" />;
        // Those that are on first.
        const rows = all
          .filter(([key]) => key.toLowerCase().includes(search.trim().toLowerCase()))
          .sort(
            ([a, one], [b, other]) => Number(isOn(other.value)) - Number(isOn(one.value)) || (a < b ? -1 : 1),
          );
        return (
          <>
            <SearchField label={w.searchFlags} value={search} onInput={setSearch} />
            <DataTable
              label={w.tabs.flags}
              columns={columns}
              count={rows.length}
              rowAt={(index) => rows[index]}
              keyOf={([key]) => key}
              rowHeight={40}
              narrowHeight={48}
            />
          </>
        );
      }}
    </Content>
  );
}
