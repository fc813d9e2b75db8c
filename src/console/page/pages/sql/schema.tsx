/** Sidebar of the editor: views with column types and examples, properties, saved statements, history. */

import { exportColumns } from "../../../../events/export/columns.ts";
import { Button } from "../../components/primitives.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { queryString, request } from "../../lib/api.ts";
import { formatValue } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { kindOfQuery, type Query } from "../../model/insight.ts";

const w = lazyMessages.sql;
const savedMax = 200;
const exampleMax = 40;

/** Columns of each view, for completion. */
export const views = Object.fromEntries(
  Object.entries(exportColumns).map(([view, columns]) => [view, columns.map(({ name }) => name)]),
);

/** A row of a view as an example of its values. */
function useExample(view: string): Record<string, unknown> | undefined {
  const { data } = useBackgroundResource<{ rows: Record<string, unknown>[] }>(
    `example of ${project.value?.id} ${view}`,
    (signal) =>
      request(inProject("query/"), {
        method: "POST",
        body: { query: `SELECT * FROM ${view} LIMIT 1` },
        signal,
      }),
  );
  return data?.rows[0];
}

function View({ view, onInsert }: { view: keyof typeof exportColumns; onInsert: (name: string) => void }) {
  const example = useExample(view);
  return (
    <details open={view === "events"}>
      <summary>{view}</summary>
      <ul>
        {exportColumns[view].map(({ name, kind }) => {
          const value = example?.[name];
          const shown = value === undefined || value === null ? undefined : formatValue(value);
          return (
            <li key={name}>
              <button type="button" title={shown && w.example(shown)} onClick={() => onInsert(name)}>
                <span class="row apart">
                  <span>{name}</span> <span class="hint">{w.kinds[kind]}</span>
                </span>
                {shown && <span class="example">{shown.slice(0, exampleMax)}</span>}
              </button>
            </li>
          );
        })}
      </ul>
    </details>
  );
}

export function Schema({
  properties,
  saved,
  past,
  onInsert,
  onChoose,
  onRecall,
}: {
  properties: readonly string[];
  /** Incremented by each save, which reloads the list. */
  saved: number;
  /** Statements that were run, the latest first. */
  past: readonly string[];
  onInsert: (name: string) => void;
  /** Called with a saved statement. */
  onChoose: (statement: string) => void;
  /** Called with a former statement. */
  onRecall: (statement: string) => void;
}) {
  return (
    <aside class="schema stack" aria-label={w.views}>
      {(Object.keys(exportColumns) as (keyof typeof exportColumns)[]).map((view) => (
        <View key={view} view={view} onInsert={onInsert} />
      ))}
      {properties.length > 0 && (
        <details>
          <summary>{w.properties}</summary>
          <ul>
            {properties.map((name) => (
              <li key={name}>
                <button type="button" onClick={() => onInsert(`prop('${name.replaceAll("'", "''")}')`)}>
                  {name}
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
      <SavedStatements round={saved} onChoose={onChoose} />
      <details>
        <summary>{w.history}</summary>
        {past.length === 0 && <p class="muted">{w.noHistory}</p>}
        <ul>
          {past.map((statement) => (
            <li key={statement}>
              <button type="button" title={statement} onClick={() => onRecall(statement)}>
                {statement.slice(0, 60)}
              </button>
            </li>
          ))}
        </ul>
      </details>
    </aside>
  );
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
    request(inProject(`insights/${id}/`), { method: "PATCH", body: { deleted } }).then(() => {
      found.reload();
      if (deleted) toast(w.removed(name), () => remove({ id, name, query: {} }, false));
    }, toastError);
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
