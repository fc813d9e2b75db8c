/** How often a flag was asked for, and with which values. */

import { to, useAddress } from "../../lib/address.ts";
import { ask } from "../../lib/api.ts";
import { number } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import type { Flag } from "../../model/flags.ts";
import { type FlagUsage, readUsage } from "../../model/usage.ts";
import { StackedBars } from "../../parts/bars.tsx";
import { When } from "../../parts/basics.tsx";
import { Segments } from "../../parts/fields.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { words } from "../../words/index.ts";

const w = words.flag.usage;
const ranges = ["7", "14", "30", "90"] as const;

interface Library {
  lib: string | null;
  version: string | null;
  times: number;
  first: string;
  last: string;
}

/** Which SDKs ask for a flag. */
function librariesOf(key: string): string {
  return `SELECT prop('$lib') AS lib, prop('$lib_version') AS version, count(*)::INTEGER AS times,
  min(timestamp) AS first, max(timestamp) AS last
FROM events WHERE event = '$feature_flag_called' AND prop('$feature_flag') = '${key.replaceAll("'", "''")}'
GROUP BY ALL ORDER BY times DESC LIMIT 20`;
}

/** Times of statements are UTC without saying so. */
const utc = (time: string) => (/(Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time.replace(" ", "T")}Z`);

export function Usage({ flag }: { flag: Flag }) {
  const { query, set } = useAddress();
  const days = ranges.find((range) => range === query.days) ?? "14";
  const usage = useResource<FlagUsage>(`usage ${flag.id} ${days}`, (signal) =>
    readUsage([flag.id], Number(days), signal),
  );
  const status = useResource<{ status: string; reason: string }>(
    `status ${flag.id} ${flag.version}`,
    (signal) => ask(inProject(`feature_flags/${flag.id}/status/`), { signal }),
  );
  const libraries = useResource<{ rows: Library[] }>(`libraries ${flag.id} ${flag.key}`, (signal) =>
    ask(inProject("query/"), { method: "POST", body: { query: librariesOf(flag.key) }, signal }),
  );
  const found = libraries.data?.rows ?? [];
  const first = found.map((one) => one.first).sort()[0];
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.title}</h2>
        <Segments
          label={w.range}
          value={days}
          choices={ranges.map((range) => [range, w.days(Number(range))] as const)}
          onChange={(range) => set({ days: range })}
        />
      </div>
      <p>
        {first !== undefined && (
          <>
            {w.first}: <When at={utc(first)} /> ·{" "}
          </>
        )}
        {w.last}: <When at={flag.last_called_at} fallback={words.flags.neverAsked} />
        {status.data && <span class="muted"> · {status.data.reason}</span>}
        {typeof flag.usage_dashboard === "number" && (
          <>
            {" "}
            · <a href={to(`dashboards/${flag.usage_dashboard}`)}>{w.dashboard}</a>
          </>
        )}
      </p>
      <Content of={usage}>
        {({ days: dates, results }) => {
          const { total, values } = results[0] ?? { total: 0, values: [] };
          if (total === 0) {
            return (
              <Empty title={w.empty} icon="chart">
                <p class="muted">{w.emptyHelp}</p>
              </Empty>
            );
          }
          return (
            <StackedBars
              label={w.title}
              summary={w.summary(total, Number(days))}
              rowTitle={w.day}
              rows={dates.map((name, place) => ({
                name,
                values: Object.fromEntries(values.map(({ value, counts }) => [value, counts[place] ?? 0])),
              }))}
            />
          );
        }}
      </Content>
      {found.length > 0 && (
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">{w.library}</th>
              <th scope="col">{w.total}</th>
              <th scope="col">{w.last}</th>
            </tr>
          </thead>
          <tbody>
            {found.map(({ lib, version, times, last }) => (
              <tr key={`${lib} ${version}`}>
                <th scope="row">
                  {lib ?? "–"} {version}
                </th>
                <td>{number(times)}</td>
                <td>
                  <When at={utc(last)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
