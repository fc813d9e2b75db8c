/** One event in full detail. */

import { useState } from "preact/hooks";
import { queryString, request, serverAddress } from "../lib/api.ts";
import { dateTime, duration, formatValue } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { to } from "../lib/router.ts";
import { inProject, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { asCurl, asSql, type StoredEvent } from "../model/events.ts";
import { SearchField } from "./fields.tsx";
import { Badge, Button, CopyButton } from "./primitives.tsx";
import { SidePanel } from "./side-panel.tsx";

const w = messages.live;

export function EventDetails({ event, onClose }: { event: StoredEvent; onClose: () => void }) {
  const [search, setSearch] = useState("");
  const person = useResource<{ results: { uuid: string; name: string }[] }>(
    `person of ${event.distinct_id}`,
    (signal) => request(inProject(`persons/${queryString({ distinct_id: event.distinct_id })}`), { signal }),
  );
  const wanted = search.toLowerCase();
  const entries = Object.entries(event.properties).filter(
    ([name, value]) => wanted === "" || `${name} ${formatValue(value)}`.toLowerCase().includes(wanted),
  );
  const found = person.data?.results[0];
  return (
    <SidePanel
      title={event.event}
      onClose={onClose}
      actions={
        <>
          <CopyButton text={() => JSON.stringify(event, null, 2)} label={w.copyJson} />
          <CopyButton
            text={() => asCurl(event, serverAddress(), project.value?.api_token ?? "")}
            label={w.copyCurl}
          />
          <CopyButton text={() => asSql(event)} label={w.copySql} />
        </>
      }
    >
      <div class="row">
        <span class="mono">{event.distinct_id}</span>
        <span class="muted">{dateTime(event.timestamp)}</span>
        <Badge>{event.historical ? w.historical : w.realtime}</Badge>
        {event.received_at && (
          <span class="muted">
            {w.receivedAfter(
              duration(Math.max(0, Date.parse(event.received_at) - Date.parse(event.timestamp)) / 1000),
            )}
          </span>
        )}
        {event.properties.$lib !== undefined && (
          <Badge>
            {`${formatValue(event.properties.$lib)} ${event.properties.$lib_version === undefined ? "" : formatValue(event.properties.$lib_version)}`}
          </Badge>
        )}
      </div>
      <div class="row">
        {found && (
          <Button
            href={to(`persons/${found.uuid}`)}
          >{`${w.person}: ${found.name || event.distinct_id}`}</Button>
        )}
        <Button href={to("events", { id: event.distinct_id })}>{w.sameId}</Button>
      </div>
      {event.is_cut && <p class="muted">{w.truncated}</p>}
      <SearchField label={w.searchProperties} value={search} onInput={setSearch} />
      <Properties entries={entries} />
    </SidePanel>
  );
}

/** A name that can be broken after underscores, rather than in the middle of a word. */
const breakable = (name: string) =>
  name.split(/(?<=_)/).flatMap((part, index) => (index === 0 ? [part] : [<wbr key={index} />, part]));

/** Names and values; nested values as formatted JSON. */
export function Properties({ entries }: { entries: readonly (readonly [string, unknown])[] }) {
  return (
    <dl class="properties">
      {[...entries]
        .sort(([a], [b]) => Number(a.startsWith("$")) - Number(b.startsWith("$")) || (a < b ? -1 : 1))
        .map(([name, value]) => (
          <div key={name}>
            <dt>{breakable(name)}</dt>
            <dd>
              {typeof value === "object" && value !== null ? (
                <pre>{JSON.stringify(value, null, 2)}</pre>
              ) : (
                formatValue(value)
              )}
            </dd>
          </div>
        ))}
    </dl>
  );
}
