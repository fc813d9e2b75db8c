/**
 * A dashboard: each insight is requested separately and has its own age, so that one failure does not affect others.
 */

import { useRef, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { FigureFrame } from "../components/chart-frame.tsx";
import { ConfirmDialog } from "../components/confirm.tsx";
import { Dialog } from "../components/dialog.tsx";
import { Field, Select } from "../components/fields.tsx";
import { InsightView } from "../components/insight-view.tsx";
import { Menu, type MenuItem } from "../components/menu.tsx";
import { Page } from "../components/page.tsx";
import { Button } from "../components/primitives.tsx";
import { ShareDialog } from "../components/share-dialog.tsx";
import { Content, Empty } from "../components/states.tsx";
import { toast, toastError } from "../components/toast.tsx";
import { errorMessage, request } from "../lib/api.ts";
import { ago, formatValue } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { to, useAddress } from "../lib/router.ts";
import { inProject, project } from "../lib/session.ts";
import { words } from "../messages/index.ts";
import { draftFromQuery, kindOfQuery, type Query, viewOfQuery } from "../model/insight.ts";

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

/** Date range that overrides that of the insights. */
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
  const [asked, setRequested] = useState<"rename" | "delete" | "share">();
  const [name, setName] = useState("");
  const [error, setError] = useState<string>();
  const grid = useRef<HTMLDivElement>(null);
  const path = inProject(`dashboards/${encodeURIComponent(id)}/`);
  const board = useResource<DashboardWithTiles>(`dashboard ${project.value?.id} ${id}`, (signal) =>
    // Only cached results; each tile requests what is missing.
    request(`${path}?refresh=force_cache`, { signal }),
  );
  const [refreshed, setRefreshed] = useState(0);
  const [dragged, setDragged] = useState<number>();
  const change = async (body: Record<string, unknown>) => {
    try {
      await request(path, { method: "PATCH", body });
      board.reload();
    } catch (error) {
      toastError(errorMessage(error));
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
            <Button onClick={() => setRequested("share")}>{words.share.share}</Button>
            <Button onClick={() => void change({ pinned: !found.pinned })}>
              {found.pinned ? w.unpin : w.pin}
            </Button>
            <Button
              onClick={() => {
                setName(found.name);
                setError(undefined);
                setRequested("rename");
              }}
            >
              {w.rename}
            </Button>
            <Button
              kind="quiet"
              icon="trash"
              label={words.frame.delete}
              onClick={() => setRequested("delete")}
            />
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
              {tiles.map(({ id: tile, insight, text }, position) => {
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
                        position,
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
                          [w.earlier, () => move(position, position - 1), position === 0 && w.isFirst],
                          [
                            w.later,
                            () => move(position, position + 1),
                            position === tiles.length - 1 && w.isLast,
                          ],
                        ]}
                        onChanged={board.reload}
                        onRemove={async () => {
                          const place = inProject(`insights/${insight.id}/`);
                          try {
                            // It may have been added to other dashboards since this one was opened.
                            const { dashboards: all } = await request<Insight>(place);
                            const dashboards = all.filter((other) => String(other) !== id);
                            await request(place, { method: "PATCH", body: { dashboards } });
                            board.reload();
                          } catch (error) {
                            toastError(errorMessage(error));
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
          onClose={() => setRequested(undefined)}
          onSubmit={() => {
            request(path, { method: "PATCH", body: { name } }).then(
              () => {
                setRequested(undefined);
                board.reload();
              },
              (failure) => setError(errorMessage(failure)),
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
      {asked === "share" && found && (
        <ShareDialog
          item={{ dashboard_id: found.id }}
          name={found.name}
          onClose={() => setRequested(undefined)}
        />
      )}
      {asked === "delete" && found && (
        <ConfirmDialog
          title={w.deleteTitle(found.name)}
          text={w.deleteText}
          action={words.frame.delete}
          onClose={() => setRequested(undefined)}
          onYes={() => {
            request(path, { method: "PATCH", body: { deleted: true } }).then(
              () => {
                toast(w.deleted(found.name));
                go("dashboards");
              },
              (error) => toastError(errorMessage(error)),
            );
          }}
        />
      )}
    </Page>
  );
}

/** Limits parallel tile requests: the engine runs few queries in parallel. */
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

/** Reads a tile's result, cached or recomputed. */
async function readTile(
  { id, query }: Insight,
  dates: Dates | undefined,
  isAnew: boolean,
  signal: AbortSignal,
): Promise<TileAnswer> {
  const refresh = isAnew ? "force_blocking" : "blocking";
  const source = (query.source as Query | undefined) ?? query;
  const post = <Answer,>(body: object) =>
    request<Answer>(inProject("query/"), { method: "POST", body, signal });
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
  const found = await request<Insight>(inProject(`insights/${id}/?refresh=${refresh}`), { signal });
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
  isAsked: isRequested,
  refreshed,
  moves,
  onChanged,
  onRemove,
}: {
  insight: Insight;
  dates: Dates | undefined;
  /** Whether the dates differ from the dashboard's. */
  isAsked: boolean;
  /** Number of times that all tiles were recomputed. */
  refreshed: number;
  moves: readonly MenuItem[];
  onChanged: () => void;
  onRemove: () => void;
}) {
  const { go } = useAddress();
  const [own, setOwn] = useState(0);
  const [isSharing, setSharing] = useState(false);
  const round = refreshed + own;
  const kind = kindOfQuery(insight.query);
  const source = (insight.query.source as Query | undefined) ?? insight.query;
  const answer = useResource<TileAnswer>(`tile ${insight.id} ${JSON.stringify(dates)} ${round}`, (signal) =>
    inTurn(() => readTile(insight, dates, round > 0, signal)),
  );
  // The dashboard's own results are shown until the tile's response arrives.
  const shown: TileAnswer | undefined =
    answer.data ??
    (!isRequested && insight.result
      ? { results: insight.result, computedAt: insight.last_refresh, problem: undefined }
      : undefined);
  const question = draftFromQuery(insight.query);
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
                  request(inProject("insights/"), { method: "POST", body }).then(onChanged, (error) =>
                    toastError(errorMessage(error)),
                  );
                },
              ],
              [words.share.share, () => setSharing(true)],
              [w.removeTile, onRemove],
            ]}
          />
        </span>
      </div>
      {isSharing && (
        <ShareDialog
          item={{ insight_id: insight.id }}
          name={insight.name}
          onClose={() => setSharing(false)}
        />
      )}
      {shown?.table ? (
        <ResultTable label={insight.name} {...shown.table} />
      ) : shown?.results && kind !== undefined && kind !== "sql" ? (
        <InsightView
          kind={kind}
          view={viewOfQuery(insight.query)}
          results={shown.results}
          label={insight.name}
          hasNotes
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

/** The first rows of a SQL result. */
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
              {formatValue(row[name])}
            </td>
          ))}
        </tr>
      ))}
    </FigureFrame>
  );
}
