/** SQL over the project's views: run, cancel, show as table or chart, download as CSV or Parquet. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { exportColumns } from "../../../events/export/columns.ts";
import { Chart } from "../components/chart.tsx";
import { downloadRows } from "../components/download.ts";
import { Segments } from "../components/fields.tsx";
import { NameBars } from "../components/name-bars.tsx";
import { Page } from "../components/page.tsx";
import { Button } from "../components/primitives.tsx";
import { SaveInsight } from "../components/save-insight.tsx";
import { SqlEditor } from "../components/sql-editor.tsx";
import { Empty, OfflineBar } from "../components/states.tsx";
import { type Column, DataTable } from "../components/table.tsx";
import { toast, toastError } from "../components/toast.tsx";
import { type ApiError, errorMessage, isAbort, queryString, request, toApiError } from "../lib/api.ts";
import type { FileForm } from "../lib/csv.ts";
import { decimal, formatValue } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { useAddress } from "../lib/router.ts";
import { inProject, project } from "../lib/session.ts";
import { isApple } from "../lib/shortcuts.ts";
import { readPreference, savePreference } from "../lib/storage.ts";
import { words } from "../messages/index.ts";
import { laterWords } from "../messages/later.ts";
import { usePropertyNames } from "../model/definitions.ts";
import { kindOfQuery, type Query } from "../model/insight.ts";

const w = laterWords.sql;
const rowsMax = 10_000;
const historyMax = 50;
const savedMax = 200;
/** Values of date and time columns. */
const timeForm = /^\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}|$)|$)/;

const views = Object.fromEntries(
  Object.entries(exportColumns).map(([view, columns]) => [view, columns.map(({ name }) => name)]),
);

interface Answer {
  columns: string[];
  rows: Record<string, unknown>[];
  truncated: boolean;
  /** Run time. */
  seconds: number;
}

export function Sql() {
  const { query, set } = useAddress();
  const [text, setText] = useState(query.q ?? "");
  const [sent, setGiven] = useState<{ text: string; cursor?: number }>({ text });
  const put = (statement: string) => {
    setText(statement);
    setGiven({ text: statement });
  };
  const [answer, setAnswer] = useState<Answer>();
  const [failure, setFailure] = useState<ApiError>();
  const [seconds, setSeconds] = useState(0);
  const [isRunning, setRunning] = useState(false);
  const [isSaving, setSaving] = useState(false);
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
      const next = [statement, ...past.filter((one) => one !== statement)].slice(0, historyMax);
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
    if (query.q) void run(query.q);
  }, []);
  const insert = (name: string) =>
    setText(text === "" ? `SELECT ${name} FROM events LIMIT 100` : `${text} ${name}`);
  /** All rows, including those beyond the table's limit. */
  const exportAs = (form: FileForm) => downloadRows(past[0] ?? text, form, "answer");
  const place = failure && getLocation(text, failure.detail);
  const repaired = failure && repair(text, failure.detail);
  const isChart = query.form === "chart";
  return (
    <Page title={words.frame.pages.sql} isWide>
      <div class="sql">
        <aside class="schema stack" aria-label={w.views}>
          {Object.entries(views).map(([view, columns]) => (
            <details key={view} open={view === "events"}>
              <summary>{view}</summary>
              <ul>
                {columns.map((column) => (
                  <li key={column}>
                    <button type="button" onClick={() => insert(column)}>
                      {column}
                    </button>
                  </li>
                ))}
              </ul>
            </details>
          ))}
          {properties.length > 0 && (
            <details>
              <summary>{w.properties}</summary>
              <ul>
                {properties.map((name) => (
                  <li key={name}>
                    <button type="button" onClick={() => insert(`prop('${name.replaceAll("'", "''")}')`)}>
                      {name}
                    </button>
                  </li>
                ))}
              </ul>
            </details>
          )}
          <SavedStatements
            round={saved}
            onChoose={(statement) => {
              put(statement);
              void run(statement);
            }}
          />
          <details>
            <summary>{w.history}</summary>
            {past.length === 0 && <p class="muted">{w.noHistory}</p>}
            <ul>
              {past.map((statement) => (
                <li key={statement}>
                  <button type="button" title={statement} onClick={() => put(statement)}>
                    {statement.slice(0, 60)}
                  </button>
                </li>
              ))}
            </ul>
          </details>
        </aside>
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
                <Button onClick={() => setSaving(true)}>{w.save}</Button>
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
                {place && (
                  <Button onClick={() => setGiven({ text, cursor: place.index })}>
                    {w.place(place.line, place.column)}
                  </Button>
                )}
                {repaired && (
                  <Button
                    onClick={() => {
                      put(repaired);
                      void run(repaired);
                    }}
                  >
                    {w.fixIt}
                  </Button>
                )}
              </div>
            ))}
          {answer ? (
            <div class={failure && !failure.isPassing ? "outdated stack tight" : undefined}>
              {failure && !failure.isPassing && <p class="muted">{laterWords.explore.outdated}</p>}
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
      {isSaving && (
        <SaveInsight
          query={{ kind: "DataVisualizationNode", source: { kind: "HogQLQuery", query: text } }}
          title={w.saveTitle}
          isFound
          onClose={() => {
            setSaving(false);
            setSaved((count) => count + 1);
          }}
        />
      )}
    </Page>
  );
}

function Result({ answer, isChart }: { answer: Answer; isChart: boolean }) {
  if (answer.rows.length === 0) return <p class="muted">{w.noRows}</p>;
  if (isChart) return <ResultChart answer={answer} />;
  const columns = answer.columns.map(
    (name): Column<Record<string, unknown>> => ({
      id: `c-${name}`,
      title: name,
      width: "minmax(9rem, 1fr)",
      isNumber: true,
      cell: (row) => (row[name] === null ? <span class="muted">null</span> : formatValue(row[name])),
    }),
  );
  return (
    <div class="wide-table">
      <DataTable
        label={words.frame.pages.sql}
        columns={columns}
        count={answer.rows.length}
        rowAt={(index) => answer.rows[index]}
        keyOf={(row) => answer.rows.indexOf(row)}
        rowHeight={36}
        narrowHeight={36}
        isAlwaysTable
      />
    </div>
  );
}

function ResultChart({ answer }: { answer: Answer }) {
  const [first, ...others] = answer.columns;
  const isNumber = (value: unknown) =>
    typeof value === "number" || (typeof value === "string" && value !== "" && !Number.isNaN(Number(value)));
  const numbers = others.filter((name) =>
    answer.rows.every((row) => row[name] === null || isNumber(row[name])),
  );
  if (first === undefined || numbers.length === 0) return <p class="muted">{w.noChart}</p>;
  const chart = {
    label: words.frame.pages.sql,
    summary: w.rowCount(answer.rows.length),
    names: answer.rows.map((row) =>
      formatValue(row[first]).replace(/T00:00:00(\.0+)?(Z|[+-]\d\d:?\d\d)?$/, ""),
    ),
    series: numbers.map((name) => ({ name, values: answer.rows.map((row) => Number(row[name] ?? 0)) })),
  };
  const isName = (value: unknown) => typeof value === "string" && !isNumber(value) && !timeForm.test(value);
  return answer.rows.some((row) => isName(row[first])) ? <NameBars {...chart} /> : <Chart {...chart} />;
}

interface SavedInsight {
  id: number;
  name: string;
  query: Query;
}

/** Saved SQL statements. */
function SavedStatements({ round, onChoose }: { round: number; onChoose: (statement: string) => void }) {
  const found = useResource<{ results: SavedInsight[] }>(`saved ${project.value?.id} ${round}`, (signal) =>
    request(inProject(`insights/${queryString({ limit: savedMax })}`), { signal }),
  );
  const statements = (found.data?.results ?? []).filter(({ query }) => kindOfQuery(query) === "sql");
  const remove = ({ id, name }: SavedInsight, deleted: boolean) => {
    request(inProject(`insights/${id}/`), { method: "PATCH", body: { deleted } }).then(
      () => {
        found.reload();
        if (deleted) toast(w.removed(name), () => remove({ id, name, query: {} }, false));
      },
      (error) => toastError(errorMessage(error)),
    );
  };
  if (statements.length === 0) return null;
  return (
    <details open>
      <summary>{w.savedList}</summary>
      <ul>
        {statements.map((insight) => (
          <li key={insight.id} class="row apart">
            <button
              type="button"
              onClick={() => onChoose(String((insight.query.source as Query | undefined)?.query ?? ""))}
            >
              {insight.name || `#${insight.id}`}
            </button>
            <Button
              kind="quiet"
              icon="close"
              label={w.remove(insight.name)}
              onClick={() => remove(insight, true)}
            />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Location of the name in an error message within the statement. */
export function getLocation(
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
export function repair(statement: string, problem: string): string | undefined {
  if (!/json path/i.test(problem)) return undefined;
  const mended = statement.replace(
    /(?:\w+\.)?properties\s*->>?\s*'(\$[^'"]*)'/g,
    (_, name: string) => `prop('${name}')`,
  );
  return mended === statement ? undefined : mended;
}
