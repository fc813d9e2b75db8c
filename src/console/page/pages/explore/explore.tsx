/** Questions by clicks: trends, funnels, retention, lifecycle. The question stands in the address. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useAddress } from "../../lib/address.ts";
import { asFailure, ask, type Failure, isAbort } from "../../lib/api.ts";
import { decimal } from "../../lib/format.ts";
import { inProject, projectClock } from "../../lib/session.ts";
import { finished, firstQuestion, type InsightKind, type Question, queryOf } from "../../model/insight.ts";
import { type Figure, statementOf } from "../../model/insight-sql.ts";
import { Button, Tabs } from "../../parts/basics.tsx";
import { InsightView } from "../../parts/insight-view.tsx";
import { Page } from "../../parts/page.tsx";
import { SaveInsight } from "../../parts/save-insight.tsx";
import { AwayBar, Rows, Trouble } from "../../parts/states.tsx";
import { words } from "../../words/index.ts";
import { PersonsBehind } from "./persons-behind.tsx";
import { QuestionFields } from "./question.tsx";

const w = words.explore;
const quietMs = 250;

function questionFrom(text: string | undefined): Question {
  if (text === undefined) return firstQuestion;
  try {
    const given = JSON.parse(text) as Partial<Question>;
    const series =
      Array.isArray(given.series) && given.series.length > 0 ? given.series : firstQuestion.series;
    const kind = given.kind !== undefined && given.kind in w.kinds ? given.kind : "trends";
    return { ...firstQuestion, ...given, kind, series, properties: given.properties ?? [] };
  } catch {
    return firstQuestion;
  }
}

export function Explore() {
  const { query, set, go } = useAddress();
  const question = questionFrom(query.question);
  const [results, setResults] = useState<{ kind: InsightKind; rows: unknown; readAt: number }>();
  const [failure, setFailure] = useState<Failure>();
  const [seconds, setSeconds] = useState<number>();
  const [round, setRound] = useState(0);
  const cancel = useRef<AbortController | undefined>(undefined);
  const [isSaving, setSaving] = useState(false);
  const change = (changes: Partial<Question>) =>
    set({ question: JSON.stringify({ ...question, ...changes }) });
  const asking = finished(question);
  const asked = JSON.stringify(queryOf(asking));
  const [picked, setPicked] = useState<{ figure: Figure; name: string }>();

  useEffect(() => {
    const controller = new AbortController();
    cancel.current = controller;
    let ticking: ReturnType<typeof setInterval> | undefined;
    const timer = setTimeout(() => {
      const begun = performance.now();
      setSeconds(0);
      ticking = setInterval(() => setSeconds((performance.now() - begun) / 1000), 200);
      ask<{ results: unknown }>(inProject("query/"), {
        method: "POST",
        body: { query: JSON.parse(asked) },
        signal: controller.signal,
      })
        .then(
          ({ results: rows }) => {
            setResults({ kind: question.kind, rows, readAt: Date.now() });
            setFailure(undefined);
          },
          (error) => {
            if (!isAbort(error)) {
              setFailure(asFailure(error));
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
  }, [asked, round]);
  const isAway = failure?.isPassing === true;
  useEffect(() => {
    if (!isAway) return;
    const timer = setTimeout(() => setRound((count) => count + 1), (failure?.retryAfterSeconds ?? 3) * 1000);
    return () => clearTimeout(timer);
  }, [failure]);

  return (
    <Page
      title={words.frame.pages.explore}
      action={
        <>
          <Button icon="sql" onClick={() => go("sql", { q: statementOf(asking, projectClock.value) })}>
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
      <QuestionFields question={question} onChange={change} />
      <section class="card stack" aria-busy={seconds !== undefined}>
        {isAway && <AwayBar failure={failure} readAt={results?.readAt ?? 0} />}
        {failure && !isAway && <Trouble failure={failure} onRetry={() => setRound((count) => count + 1)} />}
        {seconds !== undefined && seconds > 0.5 && (
          <p class="row" role="status">
            <span class="muted number">{w.computing(decimal(Math.round(seconds * 10) / 10))}</span>
            <Button icon="close" onClick={() => cancel.current?.abort()}>
              {words.frame.cancel}
            </Button>
          </p>
        )}
        {results && results.kind === question.kind && !(failure && !isAway) ? (
          <InsightView
            kind={question.kind}
            view={question.view}
            results={results.rows}
            label={w.kinds[question.kind]}
            onPick={(figure, name) => setPicked({ figure, name })}
          />
        ) : (
          !failure && <Rows />
        )}
      </section>
      {picked && <PersonsBehind {...picked} question={asking} onClose={() => setPicked(undefined)} />}
      {isSaving && (
        <SaveInsight
          query={{ kind: "InsightVizNode", source: queryOf(asking) }}
          title={w.saveTo}
          onClose={() => setSaving(false)}
        />
      )}
    </Page>
  );
}
