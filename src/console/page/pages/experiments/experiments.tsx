/** Experiments of the project, their holdouts and saved metrics. */

import { SearchField, Select } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, RelativeTime, Tabs } from "../../components/primitives.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { queryString, request } from "../../lib/api.ts";
import { counted, number } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { to, useAddress, useSearch } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  daysRunning,
  type Experiment,
  formatDelta,
  type Results,
  readResults,
  type Status,
} from "../../model/experiments.ts";
import { userName } from "../../model/flags.ts";
import { getExtent, IntervalBar } from "./delta-plot.tsx";
import { Holdouts } from "./holdouts.tsx";
import { SavedMetrics } from "./saved-metrics.tsx";

const w = lazyMessages.experiments;
const listMax = 500;
const dayMs = 86_400_000;

const tones = { draft: "plain", running: "good", paused: "warn", stopped: "plain" } as const;

export function StatusBadge({ experiment }: { experiment: Experiment }) {
  return (
    <Badge tone={tones[experiment.status]}>
      {experiment.archived ? w.archived : w.statuses[experiment.status]}
    </Badge>
  );
}

/** What needs attention: a mismatch, a violated guardrail, no exposure for a day. */
function getProblem(status: Status, results: Results): string | undefined {
  if (results.sample_ratio?.mismatch) return w.problems.mismatch;
  if (results.metrics.some(({ variant_results: rows }) => rows.some(({ guardrail }) => guardrail?.violated)))
    return w.problems.guardrail;
  const last = results.exposures?.last_exposure_at;
  if (status === "running" && last && Date.now() - Date.parse(last) > dayMs)
    return w.problems.noRecentExposures;
  return undefined;
}

function useRowResults({ id, start_date: start }: Experiment): Results | undefined {
  const results = useBackgroundResource<Results>(
    start === null ? null : `results of ${project.value?.id} ${id}`,
    (signal) => readResults(id, signal),
  );
  return start === null ? undefined : results.data;
}

function Exposures({ experiment }: { experiment: Experiment }) {
  const exposures = useRowResults(experiment)?.exposures;
  if (!exposures) return <>–</>;
  const days = exposures.timeseries[0]?.days.length ?? 0;
  const perDay = Array.from({ length: days }, (_, position) =>
    exposures.timeseries.reduce(
      (sum, { exposure_counts: counts }) =>
        sum + (counts[position] ?? 0) - (position === 0 ? 0 : (counts[position - 1] ?? 0)),
      0,
    ),
  );
  return (
    <span class="row">
      {number(exposures.total)}
      {days > 1 && <Sparkline values={perDay.slice(-14)} label={w.perDay} />}
    </span>
  );
}

function PrimaryResult({ experiment }: { experiment: Experiment }) {
  const results = useRowResults(experiment);
  if (results === undefined) return <>–</>;
  const problem = getProblem(experiment.status, results);
  const metric = results.metrics.find(({ role }) => role === "primary") ?? results.metrics[0];
  const rows = (metric?.variant_results ?? []).filter(({ delta }) => typeof delta === "number");
  const row = rows.toSorted((a, b) => Math.abs(b.delta!) - Math.abs(a.delta!))[0];
  return (
    <span class="row">
      {problem && (
        <span class="trouble-dot" role="img" aria-label={problem} title={problem}>
          !
        </span>
      )}
      {metric && row ? (
        <>
          <span class="number">
            {row.key} {formatDelta(row.delta, row)}
          </span>
          <span class="row-interval">
            <IntervalBar row={row} goal={metric.goal} extent={getExtent([row])} width={120} height={20} />
          </span>
        </>
      ) : (
        "–"
      )}
    </span>
  );
}

const columns: Column<Experiment>[] = [
  {
    id: "name",
    title: w.columns.name,
    width: "minmax(0, 3fr)",
    cell: ({ id, name, type, feature_flag: flag }) => (
      <>
        <a href={to(`experiments/${id}`)}>{name}</a>
        <span class="sub">
          {type === "web" && `${lazyMessages.webExperiments.badge} · `}
          {flag.key}
        </span>
      </>
    ),
  },
  {
    id: "status",
    title: w.columns.status,
    width: "6.5rem",
    cell: (experiment) => <StatusBadge experiment={experiment} />,
  },
  {
    id: "days",
    title: w.columns.days,
    width: "6rem",
    isWideOnly: true,
    cell: (experiment) => {
      const days = daysRunning(experiment);
      return days === undefined ? "–" : counted(days, "day", "days");
    },
  },
  {
    id: "exposures",
    title: w.exposures,
    width: "10rem",
    isWideOnly: true,
    cell: (experiment) => <Exposures experiment={experiment} />,
  },
  {
    id: "result",
    title: w.columns.result,
    width: "20rem",
    isWideOnly: true,
    cell: (experiment) => <PrimaryResult experiment={experiment} />,
  },
  {
    id: "owner",
    title: w.columns.owner,
    width: "7rem",
    isWideOnly: true,
    cell: ({ created_by: by }) => userName(by),
  },
  {
    id: "start",
    title: w.columns.start,
    width: "8rem",
    isWideOnly: true,
    cell: ({ start_date: at }) => <RelativeTime at={at} />,
  },
];

type Tab = keyof typeof w.tabs;

export function Experiments() {
  const { query, set } = useAddress();
  const tab: Tab = query.tab !== undefined && query.tab in w.tabs ? (query.tab as Tab) : "experiments";
  return (
    <Page
      title={messages.frame.pages.experiments}
      action={
        <Button kind="main" icon="plus" label={w.newExperiment} href={to("experiments/new")}>
          {w.newShort}
        </Button>
      }
    >
      <Tabs
        label={messages.frame.pages.experiments}
        tabs={Object.entries(w.tabs) as [Tab, string][]}
        current={tab}
        onChoose={(name) => set({ tab: name === "experiments" ? undefined : name }, true)}
      />
      {tab === "holdouts" ? <Holdouts /> : tab === "metrics" ? <SavedMetrics /> : <List />}
    </Page>
  );
}

function List() {
  const address = useAddress();
  const { query, set, go } = address;
  const [text, setText] = useSearch(address);
  const chosen = (query.status ?? "all") as keyof typeof w.statusChoices;
  const isArchived = chosen === "archived";
  const filter = {
    ...(isArchived ? { archived: true } : { archived: false, status: chosen }),
    search: query.search,
  };
  const list = useResource<{ results: Experiment[] }>(
    `experiments ${project.value?.id} ${JSON.stringify(filter)}`,
    (signal) => request(inProject(`experiments/${queryString({ ...filter, limit: listMax })}`), { signal }),
  );
  const isFiltered = chosen !== "all" || !!query.search;
  return (
    <>
      <div class="filters">
        <SearchField label={w.search} value={text} onInput={setText} />
        <Select
          label={w.status}
          isLabelHidden
          value={chosen}
          choices={Object.entries(w.statusChoices) as [typeof chosen, string][]}
          onChange={(status) => set({ status: status === "all" ? undefined : status })}
        />
      </div>
      <Content resource={list}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty
              title={isFiltered ? w.nothingFound : w.empty}
              icon="target"
              {...(isFiltered ? {} : { command: "flagkeep experiments create NAME" })}
            />
          ) : (
            <DataTable
              label={messages.frame.pages.experiments}
              columns={columns}
              count={results.length}
              rowAt={(index) => results[index]}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(`experiments/${id}`)}
              rowHeight={52}
              narrowHeight={60}
            />
          )
        }
      </Content>
    </>
  );
}
