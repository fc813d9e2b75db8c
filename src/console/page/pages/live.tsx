/** Live events and the stored ones before them, in one table. */

import { useState } from "preact/hooks";
import { ColumnChooser, useChosenColumns } from "../components/chosen-columns.tsx";
import { Dialog } from "../components/dialog.tsx";
import { downloadRows } from "../components/download.ts";
import { EventDetails } from "../components/event-details.tsx";
import { EventMinutes } from "../components/event-minutes.tsx";
import { Field, Select } from "../components/fields.tsx";
import { Filters } from "../components/filters.tsx";
import { EventField, PropertyField } from "../components/name-fields.tsx";
import { Page } from "../components/page.tsx";
import { Button, RelativeTime, Switch } from "../components/primitives.tsx";
import { Content, Empty, ErrorState, OfflineBar } from "../components/states.tsx";
import { type Column, DataTable } from "../components/table.tsx";
import { queryString, request } from "../lib/api.ts";
import { dayAndTime, decimal, elsewhere, number } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { to, useAddress } from "../lib/router.ts";
import { inProject, project } from "../lib/session.ts";
import { quoted } from "../lib/sql.ts";
import { messages } from "../messages/index.ts";
import { lazyMessages } from "../messages/later.ts";
import { usePropertyNames } from "../model/definitions.ts";
import { type StoredEvent, shortProperties } from "../model/events.ts";
import { useLive } from "../model/live.ts";

const w = messages.live;
const pageSize = 50;
const hourMs = 3_600_000;

const eventColumns: Column<StoredEvent>[] = [
  {
    id: "time",
    title: w.columns.time,
    width: "9rem",
    cell: ({ timestamp }) => (
      <time class="mono" dateTime={timestamp} title={elsewhere(timestamp)}>
        {dayAndTime(timestamp)}
      </time>
    ),
  },
  {
    id: "event",
    title: w.columns.event,
    width: "minmax(0, 1.2fr)",
    cell: ({ event, distinct_id: who }) => (
      <>
        <b>{event}</b>
        <span class="sub narrow-sub">{who}</span>
      </>
    ),
  },
  {
    id: "who",
    title: w.columns.who,
    width: "minmax(0, 1fr)",
    isWideOnly: true,
    cell: ({ distinct_id: who }) => <span class="mono">{who}</span>,
  },
  {
    id: "properties",
    title: w.columns.properties,
    width: "minmax(0, 2.4fr)",
    isWideOnly: true,
    cell: ({ properties }) => <span class="muted">{shortProperties(properties ?? {})}</span>,
  },
];

export function LivePage() {
  const { query, set } = useAddress();
  const [isPaused, setPaused] = useState(false);
  const [opened, setOpened] = useState<StoredEvent>();
  const [limit, setLimit] = useState(pageSize);
  const { columns, chosen } = useChosenColumns(eventColumns);
  const [isShowingWarnings, setShowingWarnings] = useState(false);
  const properties = usePropertyNames("event");
  const live = useLive(
    { ...(query.event ? { event: query.event } : {}), ...(query.id ? { distinct_id: query.id } : {}) },
    isPaused,
  );
  const filters =
    query.property && query.value
      ? JSON.stringify([{ key: query.property, type: "event", operator: "exact", value: [query.value] }])
      : undefined;
  const hours = Number(query.range);
  const after = hours > 0 ? new Date(Date.now() - hours * hourMs).toISOString() : undefined;
  const stored = useResource<{ results: StoredEvent[]; next: string | null }>(
    `stored ${project.value?.id} ${query.event} ${query.id} ${filters} ${query.range} ${limit}`,
    (signal) =>
      request(
        inProject(
          `events/${queryString({ event: query.event, distinct_id: query.id, properties: filters, limit, after })}`,
        ),
        { signal },
      ),
  );
  const warnings = useResource<{
    results: { type: string; count: number; last_seen: string }[];
  }>(`warnings ${project.value?.id}`, (signal) => request(inProject("ingestion_warnings/"), { signal }));
  const warningCount = (warnings.data?.results ?? []).reduce((sum, { count }) => sum + count, 0);
  const rows = live.rows.filter(
    ({ properties: of }) =>
      !query.property || !query.value || String(of?.[query.property] ?? "") === query.value,
  );
  const shown = new Set(rows.map(({ uuid }) => uuid));
  const all: readonly StoredEvent[] = [
    ...rows,
    ...(stored.data?.results ?? []).filter(({ uuid }) => !shown.has(uuid)),
  ];
  return (
    <Page
      title={messages.frame.pages.events}
      action={
        <>
          <span class="row" role="status">
            <span class={`health-dot ${live.state === "open" && !isPaused ? "good" : "warn"}`}>
              <span class="dot" aria-hidden="true" />
              {isPaused ? w.isPaused : live.state === "open" ? "" : w.connecting}
            </span>
            <span class="muted number">{w.perSecond(decimal(Math.round(live.perSecond * 10) / 10))}</span>
          </span>
          {warningCount > 0 && (
            <Button icon="warning" onClick={() => setShowingWarnings(true)}>
              {w.warnings(warningCount)}
            </Button>
          )}
          <span class="row">
            <Switch name={w.live} isOn={!isPaused} onChange={(isOn) => setPaused(!isOn)} /> {w.live}
          </span>
        </>
      }
    >
      <Filters
        search={
          <EventField
            label={w.event}
            isLabelHidden
            placeholder={w.event}
            class="grow"
            value={query.event ?? ""}
            onInput={(event) => set({ event: event || undefined })}
          />
        }
        count={["id", "property", "value", "range"].filter((name) => query[name]).length}
      >
        <Field
          label={w.distinctId}
          isLabelHidden
          placeholder={w.distinctId}
          class="grow"
          value={query.id ?? ""}
          onInput={(id) => set({ id: id || undefined })}
        />
        <PropertyField
          label={w.property}
          isLabelHidden
          placeholder={w.property}
          class="grow"
          value={query.property ?? ""}
          onInput={(property) => set({ property: property || undefined })}
        />
        <Field
          label={w.value}
          isLabelHidden
          placeholder={w.value}
          class="grow"
          value={query.value ?? ""}
          onInput={(value) => set({ value: value || undefined })}
        />
        <Select
          label={lazyMessages.explore.range}
          isLabelHidden
          value={query.range ?? ""}
          choices={Object.entries(w.ranges)}
          onChange={(range) => set({ range: range || undefined })}
        />
        <ColumnChooser chosen={chosen} suggestions={properties} />
        {(["csv", "parquet"] as const).map((form) => (
          <Button
            key={form}
            icon="download"
            onClick={() => void downloadRows(eventsStatement(query, after), form, "events")}
          >
            {lazyMessages.sql[form]}
          </Button>
        ))}
      </Filters>
      <EventMinutes conditions={getConditions(query)} isLive={!isPaused} />
      {live.failure?.isPassing && <OfflineBar failure={live.failure} readAt={0} />}
      {live.failure && !live.failure.isPassing && <ErrorState failure={live.failure} />}
      {(live.behind > 0 || live.notShown > 0) && (
        <p class="bar accent" role="status">
          {live.behind > 0 && <span>{w.eventsSincePause(live.behind)}</span>}
          {live.notShown > 0 && <span>{w.notShown(live.notShown)}</span>}
          {isPaused && <Button onClick={() => setPaused(false)}>{w.resume}</Button>}
        </p>
      )}
      {all.length > 0 && (
        <DataTable
          label={messages.frame.pages.events}
          columns={columns}
          count={all.length}
          rowAt={(index) => all[index]}
          keyOf={({ uuid }) => uuid}
          onOpen={setOpened}
          rowHeight={40}
          narrowHeight={56}
        />
      )}
      <Content resource={stored}>
        {({ next }) =>
          all.length === 0 ? (
            <Empty title={w.empty} icon="live">
              <p class="muted">{w.emptyHelp}</p>
              <Button href={to("start")}>{w.emptyAction}</Button>
            </Empty>
          ) : (
            next && (
              <div>
                <Button onClick={() => setLimit(limit + pageSize)}>{w.older}</Button>
              </div>
            )
          )
        }
      </Content>
      {isShowingWarnings && (
        <Dialog title={w.rejectedTitle} onClose={() => setShowingWarnings(false)}>
          <ul class="lines">
            {(warnings.data?.results ?? []).map(({ type, count, last_seen: at }) => (
              <li key={type} class="row apart">
                <span>{type.replaceAll("_", " ")}</span>
                <span class="muted">
                  {number(count)} · <RelativeTime at={at} fallback="" />
                </span>
              </li>
            ))}
          </ul>
        </Dialog>
      )}
      {opened && <EventDetails key={opened.uuid} event={opened} onClose={() => setOpened(undefined)} />}
    </Page>
  );
}

/** SQL conditions on the events `e` that match the filters. */
function getConditions(query: Record<string, string>): string[] {
  return [
    ...(query.event ? [`e.event = ${quoted(query.event)}`] : []),
    ...(query.id ? [`e.distinct_id = ${quoted(query.id)}`] : []),
    ...(query.property && query.value
      ? [`lower(prop(e.properties, ${quoted(query.property)})) = ${quoted(query.value.toLowerCase())}`]
      : []),
  ];
}

/** SQL for all matching stored events. */
function eventsStatement(query: Record<string, string>, after: string | undefined): string {
  const conditions = [
    ...getConditions(query),
    ...(after ? [`e.timestamp > TIMESTAMP ${quoted(after.slice(0, 23))}`] : []),
  ];
  return `SELECT e.* FROM events e ${conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}` : ""} ORDER BY e.timestamp`;
}
