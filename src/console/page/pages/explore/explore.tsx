/** Explore: trends, funnels, retention, lifecycle. The query is in the URL. */

import { useEffect, useRef, useState } from "preact/hooks";
import { noValue } from "../../../../events/insights/breakdown-values.ts";
import { InsightView } from "../../components/insight-view.tsx";
import { Page } from "../../components/page.tsx";
import { Button, Tabs } from "../../components/primitives.tsx";
import { SaveInsight } from "../../components/save-insight.tsx";
import { ErrorState, OfflineBar, Rows } from "../../components/states.tsx";
import { type ApiError, isAbort, request, toApiError } from "../../lib/api.ts";
import { decimal } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject, project, projectClock } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import { useEventNames, usePropertyNames } from "../../model/definitions.ts";
import {
  finished,
  firstDraft,
  getQuery,
  type InsightDraft,
  type InsightKind,
  mathWithoutProperty,
  type TrendResult,
} from "../../model/insight.ts";
import { retentionPeopleStatement, toStatement } from "../../model/insight-sql.ts";
import type { Figure } from "../../model/insight-sql-parts.ts";
import { unknownNames, withName } from "../../model/unknown-names.ts";
import { MatchingPersons } from "./matching-persons.tsx";
import { QuestionFields } from "./question.tsx";

const w = words.explore;
const quietMs = 250;

function questionFrom(text: string | undefined): InsightDraft {
  if (text === undefined) return firstDraft;
  try {
    const sent = JSON.parse(text) as Partial<InsightDraft>;
    const series = Array.isArray(sent.series) && sent.series.length > 0 ? sent.series : firstDraft.series;
    const kind = sent.kind !== undefined && sent.kind in w.kinds ? sent.kind : "trends";
    return { ...firstDraft, ...sent, kind, series, properties: sent.properties ?? [] };
  } catch {
    return firstDraft;
  }
}

/** Whether a result is empty: no events were counted, or none has the breakdown's property. */
function isNothingFound(question: InsightDraft, rows: unknown): boolean {
  if (!Array.isArray(rows)) return true;
  const all = rows.flat() as Partial<TrendResult>[];
  const isNone = (value: unknown) => value === noValue || value === null;
  if (question.breakdown && all.every(({ breakdown_value: value }) => isNone(value))) return true;
  return all.every(({ data, count, values }: Partial<TrendResult> & { values?: { count: number }[] }) =>
    values ? values.every((one) => one.count === 0) : data ? data.every((figure) => figure === 0) : !count,
  );
}

export function Explore() {
  const { query, set, go } = useAddress();
  const question = questionFrom(query.question);
  const [results, setResults] = useState<{
    kind: InsightKind;
    asked: string;
    rows: unknown;
    readAt: number;
  }>();
  const [failure, setFailure] = useState<ApiError>();
  const [seconds, setSeconds] = useState<number>();
  const [round, setRound] = useState(0);
  const cancel = useRef<AbortController | undefined>(undefined);
  const [isSaving, setSaving] = useState(false);
  const change = (changes: Partial<InsightDraft>) =>
    set({ question: JSON.stringify({ ...question, ...changes }) });
  const asking = finished(question);
  const requested = JSON.stringify(getQuery(asking));
  const missing = mathWithoutProperty(question);
  const isRequested = missing === undefined;
  const people = useResource<{ rows: { people: number }[] }>(
    question.kind === "retention" ? `people of ${project.value?.id} ${requested}` : null,
    (signal) =>
      request(inProject("query/"), {
        method: "POST",
        body: { query: retentionPeopleStatement(asking, projectClock.value) },
        signal,
      }),
  );
  const names = { events: useEventNames(), properties: usePropertyNames("event") };
  const [picked, setPicked] = useState<{ figure: Figure; name: string }>();

  useEffect(() => {
    if (!isRequested) return;
    const controller = new AbortController();
    cancel.current = controller;
    let ticking: ReturnType<typeof setInterval> | undefined;
    const timer = setTimeout(() => {
      const started = performance.now();
      setSeconds(0);
      ticking = setInterval(() => setSeconds((performance.now() - started) / 1000), 200);
      request<{ results: unknown }>(inProject("query/"), {
        method: "POST",
        body: { query: JSON.parse(requested) },
        signal: controller.signal,
      })
        .then(
          ({ results: rows }) => {
            setResults({ kind: question.kind, asked: requested, rows, readAt: Date.now() });
            setFailure(undefined);
          },
          (error) => {
            if (!isAbort(error)) {
              setFailure(toApiError(error));
            }
          },
        )
        .finally(() => {
          clearInterval(ticking);
          if (cancel.current === controller) setSeconds(undefined);
        });
    }, quietMs);
    return () => {
      clearTimeout(timer);
      clearInterval(ticking);
      controller.abort();
    };
  }, [requested, round, isRequested]);
  const isUnavailable = failure?.isPassing === true;
  useEffect(() => {
    if (!isUnavailable) return;
    const timer = setTimeout(() => setRound((count) => count + 1), (failure?.retryAfterSeconds ?? 3) * 1000);
    return () => clearTimeout(timer);
  }, [failure]);

  const isOutdated = failure !== undefined && !isUnavailable;
  const unknown =
    results?.asked === requested && !isOutdated && isNothingFound(question, results.rows)
      ? unknownNames(question, names)
      : [];

  return (
    <Page
      title={words.frame.pages.explore}
      isWide
      action={
        <>
          <Button icon="sql" onClick={() => go("sql", { q: toStatement(asking, projectClock.value) })}>
            {w.asSql}
          </Button>
          <Button onClick={() => setSaving(true)}>{w.saveTo}</Button>
        </>
      }
    >
      <Tabs
        label={w.kind}
        tabs={Object.entries(w.kinds) as [InsightKind, string][]}
        current={question.kind}
        onChoose={(kind) => change({ kind })}
      />
      <div class="explore">
        <QuestionFields question={question} onChange={change} />
        <section class="card stack answer" aria-busy={seconds !== undefined}>
          {isUnavailable && <OfflineBar failure={failure} readAt={results?.readAt ?? 0} />}
          {failure && !isUnavailable && (
            <ErrorState failure={failure} onRetry={() => setRound((count) => count + 1)} />
          )}
          {seconds !== undefined && seconds > 0.5 && (
            <p class="row" role="status">
              <span class="muted number">{w.computing(decimal(Math.round(seconds * 10) / 10))}</span>
              <Button icon="close" onClick={() => cancel.current?.abort()}>
                {words.frame.cancel}
              </Button>
            </p>
          )}
          {missing !== undefined ? (
            <p class="muted" role="status">
              {w.propertyMissing(w.maths[missing] ?? missing)}
            </p>
          ) : results && results.kind === question.kind ? (
            unknown.length > 0 ? (
              <div role="status">
                <ul class="stack tight">
                  {unknown.map((one) => (
                    <li key={one.name} class="row">
                      <span>
                        {one.kind === "event" ? w.noEvent(one.name) : w.noProperty(one.name)}{" "}
                        {one.meant && w.didYouMean(one.meant)}
                      </span>
                      {one.meant && (
                        <Button onClick={() => change(withName(question, one, one.meant!))}>
                          {w.use(one.meant)}
                        </Button>
                      )}
                    </li>
                  ))}
                </ul>
              </div>
            ) : (
              <div class={isOutdated ? "outdated stack tight" : undefined}>
                {isOutdated && <p class="muted">{w.outdated}</p>}
                <InsightView
                  kind={question.kind}
                  view={question.view}
                  results={results.rows}
                  label={w.kinds[question.kind]}
                  people={people.data?.rows[0]?.people}
                  hasNotes
                  onPick={isOutdated ? undefined : (figure, name) => setPicked({ figure, name })}
                />
              </div>
            )
          ) : (
            !failure && <Rows />
          )}
        </section>
      </div>
      {picked && <MatchingPersons {...picked} question={asking} onClose={() => setPicked(undefined)} />}
      {isSaving && (
        <SaveInsight
          query={{ kind: "InsightVizNode", source: getQuery(asking) }}
          title={w.saveTo}
          onClose={() => setSaving(false)}
        />
      )}
    </Page>
  );
}
