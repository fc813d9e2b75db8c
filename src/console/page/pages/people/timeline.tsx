/** Events of a person by visit. */

import { useState } from "preact/hooks";
import { EventDetails } from "../../components/event-details.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { dateTime, dayAndMinute, duration, elsewhere } from "../../lib/format.ts";
import type { Resource } from "../../lib/resource.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type StoredEvent, shortProperties } from "../../model/events.ts";
import { toVisits } from "../../model/visits.ts";

const w = lazyMessages.people;

export function Timeline({ events }: { events: Resource<{ results: StoredEvent[] }> }) {
  const [opened, setOpened] = useState<StoredEvent>();
  return (
    <>
      <Content resource={events}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title={messages.live.noStored} icon="live" />
          ) : (
            <ol class="timeline">
              {toVisits(results).map((visit, position) => (
                <li key={visit.id}>
                  <details open={position === 0}>
                    <summary>
                      <time dateTime={new Date(visit.from).toISOString()} title={elsewhere(visit.from)}>
                        {dayAndMinute(visit.from)}
                      </time>{" "}
                      · {duration((visit.to - visit.from) / 1000)} · {visit.channel} ·{" "}
                      {visit.pages > 0 ? w.pages(visit.pages) : w.eventCount(visit.events.length)}
                    </summary>
                    <ul>
                      {visit.events.map((event) => (
                        <li key={event.uuid}>
                          <button type="button" class="timeline-event" onClick={() => setOpened(event)}>
                            <span class="number muted">{dateTime(event.timestamp).split(", ").at(-1)}</span>
                            <b>{event.event}</b>
                            <span class="muted">{shortProperties(event.properties)}</span>
                          </button>
                        </li>
                      ))}
                    </ul>
                  </details>
                </li>
              ))}
            </ol>
          )
        }
      </Content>
      {opened && <EventDetails key={opened.uuid} event={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}
