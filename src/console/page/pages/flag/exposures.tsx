/** People who got each value of a flag, and how many of them then had a chosen event. */

import { useEffect, useState } from "preact/hooks";
import { EventField } from "../../components/name-fields.tsx";
import { Content } from "../../components/states.tsx";
import { request } from "../../lib/api.ts";
import { number, percent } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { localTime } from "../../lib/sql.ts";
import { messages } from "../../messages/index.ts";
import type { Flag } from "../../model/flags.ts";
import type { FlagUsage } from "../../model/usage.ts";

const w = messages.flag.usage;

interface Exposure {
  value: string;
  people: number;
  converted?: number;
}

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** @param goal an event; a person converted who had it after the first evaluation with the value. */
function exposuresSql(key: string, since: string, goal: string | undefined): string {
  const inRange = `${localTime()} >= TIMESTAMP '${since}'`;
  const person = "coalesce(person_id::VARCHAR, distinct_id)";
  const exposed = `SELECT ${person} AS person, coalesce(prop('$feature_flag_response'), '') AS value, min(timestamp) AS first
  FROM events e WHERE event = '$feature_flag_called' AND prop('$feature_flag') = ${quoted(key)} AND ${inRange} GROUP BY ALL`;
  if (!goal)
    return `SELECT value, count(*)::INTEGER AS people FROM (${exposed}) GROUP BY ALL ORDER BY people DESC, value`;
  return `SELECT s.value AS value, count(*)::INTEGER AS people,
  (count(*) FILTER (WHERE c.last >= s.first))::INTEGER AS converted
FROM (${exposed}) s
LEFT JOIN (SELECT ${person} AS person, max(timestamp) AS last FROM events e
  WHERE event = ${quoted(goal)} AND ${inRange} GROUP BY ALL) c ON c.person = s.person
GROUP BY ALL ORDER BY people DESC, value`;
}

export function Exposures({
  flag,
  since,
  values,
}: {
  flag: Flag;
  /** The first day. */
  since: string;
  /** Evaluations by value in the range. */
  values: FlagUsage["results"][number]["values"];
}) {
  const { query, set } = useAddress();
  const goal = query.goal;
  const [typed, setTyped] = useState(goal ?? "");
  // Also changed by going back.
  useEffect(() => setTyped(goal ?? ""), [goal]);
  const found = useResource<{ rows: Exposure[] }>(
    `exposures ${flag.id} ${flag.key} ${since} ${goal}`,
    (signal) =>
      request(inProject("query/"), {
        method: "POST",
        body: { query: exposuresSql(flag.key, since, goal) },
        signal,
      }),
  );
  return (
    <div class="stack tight">
      <div class="row apart">
        <h3>{w.exposures}</h3>
        <EventField
          label={w.goal}
          value={typed}
          placeholder={w.noGoal}
          onInput={setTyped}
          // While it is typed it is no event, and nothing is counted.
          onCommit={(name) => {
            if (name.trim() !== (goal ?? "")) set({ goal: name.trim() || undefined });
          }}
        />
      </div>
      <Content resource={found} rows={2}>
        {({ rows }) => (
          <table class="figures">
            <thead>
              <tr>
                <th scope="col">{w.value}</th>
                <th scope="col">{w.people}</th>
                <th scope="col">{w.evaluations}</th>
                {goal && <th scope="col">{w.converted}</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ value, people, converted = 0 }) => (
                <tr key={value}>
                  <th scope="row">{value || "–"}</th>
                  <td>{number(people)}</td>
                  <td>{number(values.find((item) => item.value === value)?.total ?? 0)}</td>
                  {goal && (
                    <td>
                      {percent(people === 0 ? 0 : converted / people)}{" "}
                      <span class="muted">{w.ofPeople(converted, people)}</span>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Content>
      {goal && <p class="help">{w.noExperiment}</p>}
    </div>
  );
}
