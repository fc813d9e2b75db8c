/** Evaluation counts of a flag, by value. */

import { Chart } from "../../components/chart.tsx";
import { ChartMarks, useFlagMarks } from "../../components/chart-marks.tsx";
import { Segments } from "../../components/fields.tsx";
import { RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { request } from "../../lib/api.ts";
import { number, periodNames, toUtc } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { localTime } from "../../lib/sql.ts";
import { messages } from "../../messages/index.ts";
import type { Flag } from "../../model/flags.ts";
import { type FlagUsage, readUsage } from "../../model/usage.ts";
import { Exposures } from "./exposures.tsx";

const w = messages.flag.usage;
const librariesMax = 20;
const ranges = ["7", "14", "30", "90"] as const;

interface Library {
  lib: string | null;
  version: string | null;
  times: number;
  first: string;
  last: string;
}

/** SDKs that evaluate a flag: count since a date, first and last evaluation ever. */
function getLibraries(key: string, since: string): string {
  return `SELECT prop('$lib') AS lib, prop('$lib_version') AS version,
  (count(*) FILTER (WHERE ${localTime()} >= TIMESTAMP '${since}'))::INTEGER AS times,
  min(timestamp) AS first, max(timestamp) AS last
FROM events e WHERE event = '$feature_flag_called' AND prop('$feature_flag') = '${key.replaceAll("'", "''")}'
GROUP BY ALL ORDER BY times DESC, last DESC`;
}

export function Usage({ flag }: { flag: Flag }) {
  const { query, set } = useAddress();
  const days = ranges.find((range) => range === query.days) ?? "14";
  const marks = useFlagMarks();
  const usage = useResource<FlagUsage>(`usage ${flag.id} ${days}`, (signal) =>
    readUsage([flag.id], Number(days), signal),
  );
  const status = useResource<{ status: string; reason: string }>(
    `status ${flag.id} ${flag.version}`,
    (signal) => request(inProject(`feature_flags/${flag.id}/status/`), { signal }),
  );
  const since = usage.data?.days[0];
  const libraries = useResource<{ rows: Library[] }>(
    since === undefined ? null : `libraries ${flag.id} ${flag.key} ${since}`,
    (signal) =>
      request(inProject("query/"), {
        method: "POST",
        body: { query: getLibraries(flag.key, since!) },
        signal,
      }),
  );
  const all = libraries.data?.rows ?? [];
  const found = all.filter(({ times }) => times > 0).slice(0, librariesMax);
  const first = all.map((library) => library.first).sort()[0];
  // Events may arrive late, and the flag may have been read earlier: use the latest time.
  const last = [
    flag.last_called_at,
    usage.data?.results[0]?.last_called_at,
    ...all.map((library) => toUtc(library.last)),
  ]
    .flatMap((at) => (at ? new Date(at).getTime() : []))
    .reduce<number | undefined>((latest, at) => Math.max(latest ?? at, at), undefined);
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
            {w.first}: <RelativeTime at={toUtc(first)} /> ·{" "}
          </>
        )}
        {w.last}: <RelativeTime at={last} fallback={messages.flags.neverEvaluated} />
        {status.data && <span class="muted"> · {status.data.reason}</span>}
        {typeof flag.usage_dashboard === "number" && (
          <>
            {" "}
            · <a href={to(`dashboards/${flag.usage_dashboard}`)}>{w.dashboard}</a>
          </>
        )}
      </p>
      <Content resource={usage}>
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
            <Chart
              shape="bars"
              label={w.title}
              summary={w.summary(total, Number(days))}
              rowTitle={w.day}
              names={periodNames(dates)}
              series={values.map(({ value, counts }) => ({ name: value, values: counts }))}
              isLastUnfinished
              hasTotals
              below={
                <ChartMarks
                  buckets={dates}
                  names={periodNames(dates)}
                  hasFlagChanges={marks.isShown}
                  flagId={flag.id}
                />
              }
              actions={[marks.item]}
            />
          );
        }}
      </Content>
      {since !== undefined && (usage.data?.results[0]?.total ?? 0) > 0 && (
        <Exposures flag={flag} since={since} values={usage.data?.results[0]?.values ?? []} />
      )}
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
                  <RelativeTime at={toUtc(last)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
