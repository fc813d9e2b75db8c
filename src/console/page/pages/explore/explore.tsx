/** Explore: trends, funnels, retention, lifecycle. The query is in the URL. */

import { useEffect, useRef, useState } from "preact/hooks";
import { isNone } from "../../components/breakdown-name.ts";
import { InsightView } from "../../components/insight-view.tsx";
import { Page } from "../../components/page.tsx";
import { Button, Tabs } from "../../components/primitives.tsx";
import { SaveInsight } from "../../components/save-insight.tsx";
import { ErrorState, OfflineBar, Rows } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { type ApiError, isAbort, request, toApiError } from "../../lib/api.ts";
import { decimal } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { readPreference, savePreference } from "../../lib/storage.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { useEventNames, usePropertyNames } from "../../model/definitions.ts";
import { questionFromAddress, toShortForm } from "../../model/explore-address.ts";
import {
  finished,
  getBreakdowns,
  getQuery,
  type InsightDraft,
  type InsightKind,
  isFormulaWrong,
  mathWithoutProperty,
  type TrendResult,
} from "../../model/insight.ts";
import { type Figure, printQuery, readPersonCount } from "../../model/insight-sql.ts";
import { unknownNames, withName } from "../../model/unknown-names.ts";
import { MatchingPersons } from "./matching-persons.tsx";
import { QuestionFields } from "./question.tsx";

const w = lazyMessages.explore;
const quietMs = 250;

/** Removes all parameters of the address but `q`. */
const noFormerKeys = (query: Record<string, string>) =>
  Object.fromEntries(Object.keys(query).map((key) => [key, undefined]));

/** Whether a result is empty: no events were counted, or none has the breakdown's property. */
function isNothingFound(question: InsightDraft, rows: unknown): boolean {
  if (!Array.isArray(rows)) return true;
  const all = rows.flat() as Partial<TrendResult>[];
  const isAbsent = getBreakdowns(question).some((_, index, { length }) =>
    all.every(({ breakdown_value: value }) => isNone(length > 1 ? (value as unknown[])?.[index] : value)),
  );
  if (isAbsent) return true;
  return all.every(({ data, count, values }: Partial<TrendResult> & { values?: { count: number }[] }) =>
    values
      ? values.every((value) => value.count === 0)
      : data
        ? data.every((figure) => figure === 0)
        : !count,
  );
}

export function Explore() {
  const { query, set, go } = useAddress();
  const question = questionFromAddress(query);
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
    set({ ...noFormerKeys(query), q: toShortForm({ ...question, ...changes }) || undefined });
  const [isQueryShown, setQueryShown] = useState(
    !matchMedia("(max-width: 1099px)").matches && readPreference("explore query") !== "hidden",
  );
  const toggleQuery = () => {
    if (!matchMedia("(max-width: 1099px)").matches) {
      savePreference("explore query", isQueryShown ? "hidden" : null);
    }
    setQueryShown(!isQueryShown);
  };
  const asking = finished(question);
  const requested = JSON.stringify(getQuery(asking));
  const openSql = () => void printQuery(getQuery(asking)).then((q) => go("sql", { q }), toastError);
  const missing = mathWithoutProperty(question);
  const isRequested = missing === undefined && !isFormulaWrong(question);
  const people = useResource(
    question.kind === "retention" ? `people of ${project.value?.id} ${requested}` : null,
    (signal) => readPersonCount(getQuery(asking), signal),
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
      title={messages.frame.pages.explore}
      isWide
      action={
        <>
          <Button icon="filter" isPressed={isQueryShown} onClick={toggleQuery}>
            {w.query}
          </Button>
          <Button icon="sql" onClick={openSql}>
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
      <div class={isQueryShown ? "explore" : "explore alone"}>
        {isQueryShown && (
          <div class="explore-query">
            <div class="sheet-close">
              <Button onClick={toggleQuery}>{w.done}</Button>
            </div>
            <QuestionFields question={question} onChange={change} />
          </div>
        )}
        <section class="card stack answer" aria-busy={seconds !== undefined}>
          {isUnavailable && <OfflineBar failure={failure} readAt={results?.readAt ?? 0} />}
          {failure && !isUnavailable && (
            <ErrorState failure={failure} onRetry={() => setRound((count) => count + 1)} />
          )}
          {seconds !== undefined && seconds > 0.5 && (
            <p class="row" role="status">
              <span class="muted number">{w.computing(decimal(Math.round(seconds * 10) / 10))}</span>
              <Button icon="close" onClick={() => cancel.current?.abort()}>
                {messages.frame.cancel}
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
                  {unknown.map((unknownName) => (
                    <li key={unknownName.name} class="row">
                      <span>
                        {unknownName.kind === "event"
                          ? w.noEvent(unknownName.name)
                          : w.noProperty(unknownName.name)}{" "}
                        {unknownName.meant && w.didYouMean(unknownName.meant)}
                      </span>
                      {unknownName.meant && (
                        <Button onClick={() => change(withName(question, unknownName, unknownName.meant!))}>
                          {w.use(unknownName.meant)}
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
                  people={people.data}
                  hasNotes
                  actions={[[w.sql, openSql]]}
                  onRange={(from, to) => change({ range: `${from}:${to}` })}
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
