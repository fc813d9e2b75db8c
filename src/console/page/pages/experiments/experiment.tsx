/** One experiment: its results and decisions. */

import { useEffect, useRef } from "preact/hooks";
import { useRoute } from "preact-iso";
import { Chart } from "../../components/chart.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, CodeBlock, RelativeTime } from "../../components/primitives.tsx";
import { SdkSnippets } from "../../components/sdk-snippets.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request, serverAddress } from "../../lib/api.ts";
import { counted, number, percent, periodNames } from "../../lib/format.ts";
import { clearResourceCache, reloadResources, useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  changeExperiment,
  daysRunning,
  type Experiment,
  experimentPath,
  getVerdict,
  type Results,
  readResults,
} from "../../model/experiments.ts";
import { webExperimentsSnippet } from "../../model/snippets.ts";
import { Decisions } from "./decisions.tsx";
import { DeltaPlot } from "./delta-plot.tsx";
import { EffectOverTime } from "./effect-chart.tsx";
import { StatusBadge } from "./experiments.tsx";

const w = lazyMessages.experiments;
const web = lazyMessages.webExperiments;

/** Interval of results, and while the first exposure is awaited. */
const refreshMs = 60_000;
const waitingMs = 5_000;

export function ExperimentPage() {
  const { id = "" } = useRoute().params as { id?: string };
  const { go } = useAddress();
  const experiment = useResource<Experiment>(`experiment ${project.value?.id} ${id}`, (signal) =>
    request(experimentPath(id), { signal }),
  );
  // Cached results would hide the first exposure for minutes.
  const isWaiting = useRef(false);
  const results = useResource<Results>(
    `results of ${project.value?.id} ${id}`,
    (signal) => readResults(id, signal, isWaiting.current),
    refreshMs,
  );
  isWaiting.current = experiment.data?.status === "running" && results.data?.exposures?.total === 0;
  const reload = () => {
    experiment.reload();
    results.reload();
  };
  const leave = (deleted: Experiment) => {
    // The cached list still has it.
    clearResourceCache();
    go("experiments");
    toast(
      w.done.delete,
      () =>
        void changeExperiment(deleted.id, { deleted: false }).then(() => {
          toast(w.restored);
          reloadResources();
        }, toastError),
    );
  };
  const found = experiment.data;
  return (
    <Page title={found?.name ?? messages.frame.pages.experiments}>
      <Content resource={experiment}>
        {(data) => (
          <>
            <Facts experiment={data} />
            <Decisions
              experiment={data}
              results={results.data}
              onDone={(action) => (action === "delete" ? leave(data) : reload())}
            />
            {data.description && <p class="hypothesis">{data.description}</p>}
          </>
        )}
      </Content>
      {found && (
        <Content resource={results}>
          {(data) => <ResultParts experiment={found} results={data} onReload={results.reload} />}
        </Content>
      )}
    </Page>
  );
}

function Facts({ experiment }: { experiment: Experiment }) {
  const days = daysRunning(experiment);
  return (
    <p class="row">
      <StatusBadge experiment={experiment} />
      {experiment.type === "web" && <Badge tone="plain">{web.badge}</Badge>}
      <a href={to(`flags/${experiment.feature_flag.id}`)}>{experiment.feature_flag.key}</a>
      {days !== undefined && experiment.start_date && (
        <span class="muted">
          {w.started} <RelativeTime at={experiment.start_date} /> · {w.days(counted(days, "day", "days"))}
        </span>
      )}
      {experiment.conclusion && (
        <span>
          {w.conclusion}: <b>{w.conclusions[experiment.conclusion]}</b>
          {experiment.conclusion_comment && `. ${experiment.conclusion_comment}`}
        </span>
      )}
    </p>
  );
}

function ResultParts({
  experiment,
  results,
  onReload,
}: {
  experiment: Experiment;
  results: Results;
  onReload: () => void;
}) {
  const { exposures, metrics } = results;
  const isWaiting = experiment.status === "running" && exposures?.total === 0;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setInterval(onReload, waitingMs);
    return () => clearInterval(timer);
  }, [isWaiting]);
  const { feature_flag: flag } = experiment;
  return (
    <>
      {flag.performed_rollback && (
        <p class="bar warn">
          <span>{w.rolledBack}</span>{" "}
          <a href={to(`flags/${flag.id}`, { tab: "history" })}>{w.rolledBackWhy}</a>
        </p>
      )}
      {exposures !== null && <Sentence experiment={experiment} results={results} />}
      {results.warnings
        .filter(({ code }) => code !== "sample_ratio_mismatch")
        .map(({ code, message }) => (
          <p key={code} class="bar warn">
            {w.warnings[code as keyof typeof w.warnings] ?? message}
          </p>
        ))}
      {exposures === null && (
        <Empty title={w.notLaunched} icon="target">
          <p>{w.notLaunchedHelp}</p>
          <Button href={to(`experiments/${experiment.id}/setup`, { step: "metrics" })}>{w.setUp}</Button>
        </Empty>
      )}
      {isWaiting && (
        <section class="card stack">
          <h2>
            <span role="status">{w.waiting}</span>
          </h2>
          <p class="help">{w.waitingHelp}</p>
          {experiment.type === "web" ? (
            <>
              <p class="help">{web.codeHelp}</p>
              <CodeBlock
                label={web.code}
                code={webExperimentsSnippet(serverAddress(), project.value?.api_token ?? "phc_…")}
              />
            </>
          ) : (
            <SdkSnippets flagKey={experiment.feature_flag.key} hasVariants />
          )}
        </section>
      )}
      {exposures !== null && (
        <section class="card stack">
          <h2>{w.metrics}</h2>
          {metrics.length === 0 ? (
            <p class="muted">
              {w.noMetrics}{" "}
              <a href={to(`experiments/${experiment.id}/setup`, { step: "metrics" })}>{w.addMetric}</a>
            </p>
          ) : (
            <DeltaPlot metrics={metrics} minimum={experiment.minimum_exposures} />
          )}
          {metrics.length > 0 && <p class="help">{w.plotHelp}</p>}
        </section>
      )}
      {exposures !== null && exposures.total > 0 && (
        <>
          <Exposures experiment={experiment} results={results} exposures={exposures} />
          <EffectOverTime id={experiment.id} metrics={metrics} />
        </>
      )}
    </>
  );
}

const dayMs = 86_400_000;

/** The server's sentence; without a verdict also the days until the planned number of people. */
function Sentence({ experiment, results }: { experiment: Experiment; results: Results }) {
  const { start_date: start, running_time_calculation: plan, status } = experiment;
  const exposed = results.exposures?.total ?? 0;
  const missing = (plan.recommended_sample_size ?? 0) - exposed;
  const days = start === null ? 0 : Math.max(1, (Date.now() - Date.parse(start)) / dayMs);
  const first = results.metrics[0];
  const isDecided = first?.variant_results.some((row) =>
    ["better", "worse"].includes(getVerdict(row, first.goal)),
  );
  const isOpen = status === "running" && exposed > 0 && missing > 0 && !isDecided;
  if (results.sample_ratio?.mismatch) return <p class="verdict-sentence mismatch">{w.noVerdictMismatch}</p>;
  return (
    <p class="verdict-sentence">
      {results.sentence.replaceAll(/(\d) %/g, "$1%")}{" "}
      {isOpen && w.remaining(counted(Math.ceil(missing / (exposed / days)), "day", "days"))}
    </p>
  );
}

function Exposures({
  experiment,
  results: { sample_ratio: ratio },
  exposures,
}: {
  experiment: Experiment;
  results: Results;
  exposures: NonNullable<Results["exposures"]>;
}) {
  const planned = experiment.running_time_calculation.recommended_sample_size;
  const [first] = exposures.timeseries;
  return (
    <section class="card stack">
      <h2>{w.exposures}</h2>
      <ul class="exposure-list">
        {exposures.variants.map(({ key, persons, percentage }) => (
          <li key={key}>
            <b>{key}</b> {w.exposed(number(persons), percent(percentage / 100))}
          </li>
        ))}
        {exposures.holdout > 0 && (
          <li>
            <b>{w.holdout}</b> {number(exposures.holdout)}
          </li>
        )}
        {exposures.$multiple > 0 && <li>{w.severalVariants(number(exposures.$multiple))}</li>}
      </ul>
      <p class="muted">
        {ratio && (ratio.mismatch ? w.mismatch(ratio.p_value) : w.ratioAsExpected(ratio.p_value))}{" "}
        {planned !== undefined && w.planned(number(exposures.total), number(planned))}
      </p>
      {first !== undefined && first.days.length > 1 && (
        <Chart
          label={w.exposures}
          summary={w.cumulative}
          names={periodNames(first.days)}
          series={exposures.timeseries.map(({ variant, exposure_counts: values }) => ({
            name: variant,
            values,
          }))}
        />
      )}
    </section>
  );
}
