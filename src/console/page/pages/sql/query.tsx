/** A SQL query: run, cancel, show as table or chart, download as CSV or Parquet, save. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { downloadRows } from "../../components/download.ts";
import { Segments } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { SaveInsight } from "../../components/save-insight.tsx";
import { SqlEditor } from "../../components/sql-editor.tsx";
import { Empty, OfflineBar } from "../../components/states.tsx";
import { type ApiError, isAbort, request, toApiError } from "../../lib/api.ts";
import type { FileForm } from "../../lib/csv.ts";
import { decimal } from "../../lib/format.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { isApple } from "../../lib/shortcuts.ts";
import { readPreference, savePreference } from "../../lib/storage.ts";
import { lazyMessages } from "../../messages/later.ts";
import { usePropertyNames } from "../../model/definitions.ts";
import { type Answer, Result } from "./result.tsx";
import { Schema, views } from "./schema.tsx";

const w = lazyMessages.sql;
const rowsMax = 10_000;
const historyMax = 50;

/** @param onText called with the statement as it is typed */
export function SqlQuery({ first, onText }: { first: string; onText: (text: string) => void }) {
  const { query, set } = useAddress();
  const [text, setTyped] = useState(first);
  const setText = (next: string) => {
    setTyped(next);
    onText(next);
  };
  const [sent, setGiven] = useState<{ text: string; cursor?: number }>({ text });
  const put = (statement: string) => {
    setText(statement);
    setGiven({ text: statement });
  };
  const [answer, setAnswer] = useState<Answer>();
  const [failure, setFailure] = useState<ApiError>();
  const [seconds, setSeconds] = useState(0);
  const [isRunning, setRunning] = useState(false);
  const [saving, setSaving] = useState<"insight" | "tile">();
  const [saved, setSaved] = useState(0);
  const [past, setPast] = useState<string[]>(
    () => JSON.parse(readPreference("statements") ?? "[]") as string[],
  );
  const controller = useRef<AbortController | undefined>(undefined);
  const properties = usePropertyNames("event");
  const schema = useMemo(
    () => ({ ...views, ...Object.fromEntries(properties.map((name) => [`prop('${name}')`, []])) }),
    [properties],
  );
  // Leaving the page also cancels the query on the server.
  useEffect(() => () => controller.current?.abort(), []);

  const run = async (statement = text) => {
    if (statement.trim() === "") return;
    controller.current?.abort();
    const own = new AbortController();
    controller.current = own;
    setFailure(undefined);
    setRunning(true);
    setSeconds(0);
    set({ q: statement });
    const started = performance.now();
    const timer = setInterval(() => setSeconds((performance.now() - started) / 1000), 100);
    try {
      const found = await request<Omit<Answer, "seconds">>(inProject("query/"), {
        method: "POST",
        body: { query: statement, limit: rowsMax },
        signal: own.signal,
      });
      setAnswer({ ...found, seconds: (performance.now() - started) / 1000 });
      const next = [statement, ...past.filter((value) => value !== statement)].slice(0, historyMax);
      setPast(next);
      savePreference("statements", JSON.stringify(next));
    } catch (error) {
      if (!isAbort(error)) {
        setFailure(toApiError(error));
      }
    } finally {
      clearInterval(timer);
      if (controller.current === own) setRunning(false);
    }
  };
  useEffect(() => {
    if (first !== "" && query.q === first) void run(first);
  }, []);
  const insert = (name: string) =>
    setText(text === "" ? `SELECT ${name} FROM events LIMIT 100` : `${text} ${name}`);
  /** All rows, including those beyond the table's limit. */
  const exportAs = (form: FileForm) => downloadRows(past[0] ?? text, form, "answer");
  const position = failure && getLocation(text, failure.detail);
  const repaired = failure && repair(text, failure.detail);
  const isChart = query.form === "chart";
  return (
    <>
      <div class="sql">
        <Schema
          properties={properties}
          saved={saved}
          past={past}
          onInsert={insert}
          onChoose={(statement) => {
            put(statement);
            void run(statement);
          }}
          onRecall={put}
        />
        <div class="stack sql-main">
          <SqlEditor
            label={w.editor}
            content={sent}
            onInput={setText}
            onRun={(statement) => void run(statement)}
            hint={w.empty}
            schema={schema}
          />
          <div class="row">
            <Button kind="main" icon="play" isDisabled={isRunning} onClick={() => void run()}>
              {w.run}
            </Button>
            <kbd>{isApple ? "⌘⏎" : "Ctrl ⏎"}</kbd>
            {isRunning && (
              <Button icon="close" onClick={() => controller.current?.abort()}>
                {w.cancel}
              </Button>
            )}
            <span class="muted number" role="status">
              {isRunning
                ? w.running(decimal(Math.round(seconds * 10) / 10))
                : answer
                  ? w.rows(answer.rows.length, decimal(Math.round(answer.seconds * 100) / 100))
                  : ""}
              {!isRunning && answer?.truncated && ` · ${w.truncated(answer.rows.length)}`}
            </span>
            {answer && (
              <span class="row tools">
                <Segments
                  label={w.form}
                  value={isChart ? "chart" : "table"}
                  choices={[
                    ["table", w.table],
                    ["chart", w.chart],
                  ]}
                  onChange={(form) => set({ form: form === "chart" ? form : undefined })}
                />
                <Button icon="download" onClick={() => void exportAs("csv")}>
                  {w.csv}
                </Button>
                <Button onClick={() => void exportAs("parquet")}>{w.parquet}</Button>
                <Button onClick={() => setSaving("tile")}>{w.addToDashboard}</Button>
                <Button onClick={() => setSaving("insight")}>{w.save}</Button>
              </span>
            )}
          </div>
          {failure &&
            (failure.isPassing ? (
              <OfflineBar failure={failure} readAt={0} />
            ) : (
              <div class="bar bad" role="alert">
                <span>
                  <b>{w.failed}</b>
                  <pre class="wrap">{failure.detail}</pre>
                </span>
                {position && (
                  <Button onClick={() => setGiven({ text, cursor: position.index })}>
                    {w.position(position.line, position.column)}
                  </Button>
                )}
                {repaired && (
                  <Button
                    onClick={() => {
                      put(repaired);
                      void run(repaired);
                    }}
                  >
                    {w.applyFix}
                  </Button>
                )}
              </div>
            ))}
          {answer ? (
            <div class={failure && !failure.isPassing ? "outdated stack tight" : undefined}>
              {failure && !failure.isPassing && <p class="muted">{lazyMessages.explore.outdated}</p>}
              <Result answer={answer} isChart={isChart} />
            </div>
          ) : (
            !failure && (
              <Empty title={w.empty} icon="sql" command={'flagkeep query "SELECT …"'}>
                <p class="muted">{w.emptyHelp}</p>
                <div class="row">
                  {w.exampleList.map(([name, statement]) => (
                    <Button
                      key={name}
                      onClick={() => {
                        put(statement);
                        void run(statement);
                      }}
                    >
                      {name}
                    </Button>
                  ))}
                </div>
              </Empty>
            )
          )}
        </div>
      </div>
      {saving && (
        <SaveInsight
          query={{ kind: "DataVisualizationNode", source: { kind: "HogQLQuery", query: text } }}
          title={saving === "tile" ? w.addToDashboard : w.saveTitle}
          isFound={saving === "insight"}
          onClose={() => {
            setSaving(undefined);
            setSaved((count) => count + 1);
          }}
        />
      )}
    </>
  );
}

/** Location of the name in an error message within the statement. */
function getLocation(
  statement: string,
  problem: string,
): { index: number; line: number; column: number } | undefined {
  const name = /"([^"]+)"/.exec(problem)?.[1];
  if (name === undefined) return undefined;
  const word = new RegExp(`(?<![\\w$])${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w$])`, "i");
  const index = statement.search(word);
  if (index < 0) return undefined;
  const before = statement.slice(0, index).split("\n");
  return { index, line: before.length, column: before.at(-1)!.length + 1 };
}

/** `properties->>'$browser'` is a JSON path to DuckDB; returns the intended form. */
function repair(statement: string, problem: string): string | undefined {
  if (!/json path/i.test(problem)) return undefined;
  const repaired = statement.replace(
    /(?:\w+\.)?properties\s*->>?\s*'(\$[^'"]*)'/g,
    (_, name: string) => `prop('${name}')`,
  );
  return repaired === statement ? undefined : repaired;
}
