/** One dashboard: its insights side by side, each asked for by itself and with its age; one that fails does not fail the others. */

import { useRef, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { to, useAddress } from "../lib/address.ts";
import { ask, wordsOf } from "../lib/api.ts";
import { ago, valueText } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { kindOfQuery, type Query, questionOf, viewOfQuery } from "../model/insight.ts";
import { Button } from "../parts/basics.tsx";
import { Question } from "../parts/confirm.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field, Select } from "../parts/fields.tsx";
import { FigureFrame } from "../parts/figures.tsx";
import { InsightView } from "../parts/insight-view.tsx";
import { Menu, type MenuItem } from "../parts/menu.tsx";
import { Page } from "../parts/page.tsx";
import { Content, Empty } from "../parts/states.tsx";
import { complain, tell } from "../parts/toast.tsx";
import { words } from "../words/index.ts";

const w = words.dashboards;

interface Insight {
  id: number;
  name: string;
  query: Query;
  dashboards: number[];
  last_refresh: string | null;
  result: unknown[] | null;
  query_status: { error: boolean; error_message: string } | null;
}

/** Dates over which insights are computed instead of over their own. */
interface Dates {
  date_from?: string | null;
  date_to?: string | null;
}

interface DashboardWithTiles {
  id: number;
  name: string;
  description: string;
  pinned: boolean;
  filters: Dates;
  tiles: { id: number; insight: Insight | null; text: { body: string } | null }[];
}

export function Dashboard() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set, go } = useAddress();
  const [asked, setAsked] = useState<"rename" | "delete">();
  const [name, setName] = useState("");
  const [error, setError] = useState<string>();
  const grid = useRef<HTMLDivElement>(null);
  const path = inProject(`dashboards/${encodeURIComponent(id)}/`);
  const board = useResource<DashboardWithTiles>(`dashboard ${project.value?.id} ${id}`, (signal) =>
    // What is kept already; each tile asks for what is missing.
    ask(`${path}?refresh=force_cache`, { signal }),
  );
  const [refreshed, setRefreshed] = useState(0);
  const [dragged, setDragged] = useState<number>();
  const change = async (body: Record<string, unknown>) => {
    try {
      await ask(path, { method: "PATCH", body });
      board.reload();
    } catch (error) {
      complain(wordsOf(error));
    }
  };
  const found = board.data;
  const hasDates = Boolean(found?.filters.date_from ?? found?.filters.date_to);
  const dates = query.range ? { date_from: query.range } : hasDates ? found?.filters : undefined;
  const move = (from: number, to: number) => {
    if (!found || from < 0 || from === to) return;
    const tiles = [...found.tiles];
    tiles.splice(to, 0, ...tiles.splice(from, 1));
    board.replace({ ...found, tiles });
    void change({ tiles: tiles.map((tile) => ({ id: tile.id })) });
  };
  return (
    <Page
      title={found?.name || words.frame.pages.dashboards}
      isWide
      action={
        found && (
          <>
            <Select
              label={w.range}
              isLabelHidden
              value={query.range ?? ""}
              choices={[
                ["", `${w.range}: ${hasDates ? w.boardRange : w.ownRange}`],
                ...Object.entries(words.explore.ranges),
              ]}
              onChange={(range) => set({ range: range || undefined })}
            />
            <Button icon="refresh" onClick={() => setRefreshed(refreshed + 1)}>
              {w.refresh}
            </Button>
            <Button icon="expand" onClick={() => void grid.current?.requestFullscreen()}>
              {w.fullScreen}
            </Button>
            <Button onClick={() => void change({ pinned: !found.pinned })}>
              {found.pinned ? w.unpin : w.pin}
            </Button>
            <Button
              onClick={() => {
                setName(found.name);
                setError(undefined);
                setAsked("rename");
              }}
            >
              {w.rename}
            </Button>
            <Button kind="quiet" icon="trash" label={words.frame.delete} onClick={() => setAsked("delete")} />
          </>
        )
      }
    >
      <Content of={board}>
        {({ tiles }) =>
          tiles.length === 0 ? (
            <Empty title={w.emptyTiles} icon="dashboards">
              <p class="muted">{w.emptyTilesText}</p>
              <Button href={to("explore")}>{w.goExplore}</Button>
            </Empty>
          ) : (
            <div class="board" ref={grid}>
              {tiles.map(({ id: tile, insight, text }, place) => {
                return (
                  <section
                    key={tile}
                    class={dragged === tile ? "card stack tile-card dragged" : "card stack tile-card"}
                    aria-label={insight?.name ?? text?.body ?? ""}
                    draggable
                    onDragStart={() => setDragged(tile)}
                    onDragEnd={() => setDragged(undefined)}
                    onDragOver={(event) => event.preventDefault()}
                    onDrop={(event) => {
                      event.preventDefault();
                      move(
                        tiles.findIndex(({ id: one }) => one === dragged),
                        place,
                      );
                    }}
                  >
                    {insight ? (
                      <Tile
                        key={query.range}
                        insight={insight}
                        dates={dates}
                        isAsked={Boolean(query.range)}
                        refreshed={refreshed}
                        moves={[
                          [w.earlier, () => move(place, place - 1), place === 0 && w.isFirst],
                          [w.later, () => move(place, place + 1), place === tiles.length - 1 && w.isLast],
                        ]}
                        onChanged={board.reload}
                        onRemove={async () => {
                          const place = inProject(`insights/${insight.id}/`);
                          try {
                            // It may be on others since this one was opened.
                            const { dashboards: all } = await ask<Insight>(place);
                            const dashboards = all.filter((other) => String(other) !== id);
                            await ask(place, { method: "PATCH", body: { dashboards } });
                            board.reload();
                          } catch (error) {
                            complain(wordsOf(error));
                          }
                        }}
                      />
                    ) : (
                      <p>{text?.body}</p>
                    )}
                  </section>
                );
              })}
            </div>
          )
        }
      </Content>
      {asked === "rename" && (
        <Dialog
          title={w.rename}
          onClose={() => setAsked(undefined)}
          onSubmit={() => {
            ask(path, { method: "PATCH", body: { name } }).then(
              () => {
                setAsked(undefined);
                board.reload();
              },
              (failure) => setError(wordsOf(failure)),
            );
          }}
          actions={
            <Button kind="main" type="submit">
              {words.frame.save}
            </Button>
          }
        >
          <Field label={w.name} value={name} onInput={setName} error={error} isRequired autofocus />
        </Dialog>
      )}
      {asked === "delete" && found && (
        <Question
          title={w.deleteTitle(found.name)}
          text={w.deleteText}
          action={words.frame.delete}
          onClose={() => setAsked(undefined)}
          onYes={() => {
            ask(path, { method: "PATCH", body: { deleted: true } }).then(
              () => {
                tell(w.deleted(found.name));
                go("dashboards");
              },
              (error) => complain(wordsOf(error)),
            );
          }}
        />
      )}
    </Page>
  );
}

/** How many tiles ask at once: the engine has few places. */
const asking = { running: 0, waiting: [] as (() => void)[] };
const askingMax = 4;

async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  if (asking.running >= askingMax) await new Promise<void>((resolve) => asking.waiting.push(resolve));
  asking.running++;
  try {
    return await work();
  } finally {
    asking.running--;
    asking.waiting.shift()?.();
  }
}

interface TileAnswer {
  results: unknown[] | null;
  computedAt: string | null;
  problem: string | undefined;
  table?: { columns: string[]; rows: Record<string, unknown>[] };
}

/** Asks for what a tile shows; as it is kept, or computed anew. */
async function readTile(
  { id, query }: Insight,
  dates: Dates | undefined,
  isAnew: boolean,
  signal: AbortSignal,
): Promise<TileAnswer> {
  const refresh = isAnew ? "force_blocking" : "blocking";
  const source = (query.source as Query | undefined) ?? query;
  const post = <Answer,>(body: object) => ask<Answer>(inProject("query/"), { method: "POST", body, signal });
  if (kindOfQuery(query) === "sql") {
    const table = await post<NonNullable<TileAnswer["table"]>>({ query: source.query, limit: tableRowsMax });
    return { results: null, computedAt: new Date().toISOString(), problem: undefined, table };
  }
  if (dates !== undefined) {
    const { date_from, date_to } = dates;
    const answer = await post<{ results: unknown[]; last_refresh: string | null }>({
      query: { ...source, dateRange: { date_from, date_to } },
      refresh,
    });
    return { results: answer.results, computedAt: answer.last_refresh, problem: undefined };
  }
  const found = await ask<Insight>(inProject(`insights/${id}/?refresh=${refresh}`), { signal });
  return {
    results: found.result,
    computedAt: found.last_refresh,
    problem: found.query_status?.error_message,
  };
}

const tableRowsMax = 50;

function Tile({
  insight,
  dates,
  isAsked,
  refreshed,
  moves,
  onChanged,
  onRemove,
}: {
  insight: Insight;
  dates: Dates | undefined;
  /** Whether the dates are others than the dashboard's. */
  isAsked: boolean;
  /** Counts how often all tiles were to be computed anew. */
  refreshed: number;
  moves: readonly MenuItem[];
  onChanged: () => void;
  onRemove: () => void;
}) {
  const { go } = useAddress();
  const [own, setOwn] = useState(0);
  const round = refreshed + own;
  const kind = kindOfQuery(insight.query);
  const source = (insight.query.source as Query | undefined) ?? insight.query;
  const answer = useResource<TileAnswer>(`tile ${insight.id} ${JSON.stringify(dates)} ${round}`, (signal) =>
    inTurn(() => readTile(insight, dates, round > 0, signal)),
  );
  // What the dashboard came with is shown until the tile's own answer is there.
  const shown: TileAnswer | undefined =
    answer.data ??
    (!isAsked && insight.result
      ? { results: insight.result, computedAt: insight.last_refresh, problem: undefined }
      : undefined);
  const question = questionOf(insight.query);
  return (
    <>
      <div class="tile-head">
        <h2>{insight.name || `#${insight.id}`}</h2>
        <span class="row">
          {shown?.computedAt && <span class="muted">{w.age(ago(shown.computedAt))}</span>}
          <Button
            kind="quiet"
            icon="refresh"
            label={`${w.refresh} ${insight.name}`}
            onClick={() => setOwn(own + 1)}
          />
          <Menu
            label={`${words.flag.more}: ${insight.name}`}
            face={<span aria-hidden="true">⋯</span>}
            items={[
              ...moves,
              ...(kind === "sql"
                ? [[words.explore.openSql, () => go("sql", { q: String(source.query) })] as const]
                : []),
              ...(question
                ? [[w.openExplore, () => go("explore", { question: JSON.stringify(question) })] as const]
                : []),
              [
                w.duplicate,
                () => {
                  const { name, query, dashboards } = insight;
                  const body = { name: w.copyOf(name), query, dashboards, saved: true };
                  ask(inProject("insights/"), { method: "POST", body }).then(onChanged, (error) =>
                    complain(wordsOf(error)),
                  );
                },
              ],
              [w.removeTile, onRemove],
            ]}
          />
        </span>
      </div>
      {shown?.table ? (
        <ResultTable label={insight.name} {...shown.table} />
      ) : shown?.results && kind !== undefined && kind !== "sql" ? (
        <InsightView
          kind={kind}
          view={viewOfQuery(insight.query)}
          results={shown.results}
          label={insight.name}
        />
      ) : shown === undefined || answer.failure ? (
        <Content of={answer} rows={3}>
          {() => null}
        </Content>
      ) : (
        <p class="error">{shown.problem || words.explore.noResult}</p>
      )}
    </>
  );
}

/** The first rows of a statement's answer. */
function ResultTable({
  label,
  columns,
  rows,
}: {
  label: string;
  columns: readonly string[];
  rows: readonly Record<string, unknown>[];
}) {
  return (
    <FigureFrame label={label} shape="wide" heads={columns}>
      {rows.map((row, place) => (
        <tr key={place}>
          {columns.map((name) => (
            <td key={name} class={typeof row[name] === "number" ? "" : "text"}>
              {valueText(row[name])}
            </td>
          ))}
        </tr>
      ))}
    </FigureFrame>
  );
}
