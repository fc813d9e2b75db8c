/** Tiles of a dashboard: each requests its own result, so that one failure does not affect others. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { FigureFrame } from "../../components/chart-frame.tsx";
import { InsightView } from "../../components/insight-view.tsx";
import { Menu, type MenuItem } from "../../components/menu.tsx";
import { Button } from "../../components/primitives.tsx";
import { ShareDialog } from "../../components/share-dialog.tsx";
import { Content } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { ago, formatValue } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { BoardInsight, Dates } from "../../model/dashboard.ts";
import { draftFromQuery, kindOfQuery, type Query, viewOfQuery } from "../../model/insight.ts";
import type { TileControls } from "./board.tsx";

const w = lazyMessages.dashboards;

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
  { id, query }: BoardInsight,
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
  const found = await request<BoardInsight>(inProject(`insights/${id}/?refresh=${refresh}`), { signal });
  return {
    results: found.result,
    computedAt: found.last_refresh,
    problem: found.query_status?.error_message,
  };
}

const tableRowsMax = 50;

/** Title and actions of a tile. */
export function TileHead({
  name,
  grip,
  items,
  children,
}: {
  name: string;
  grip: ComponentChildren;
  items: readonly MenuItem[];
  children?: ComponentChildren;
}) {
  return (
    <div class="tile-head">
      {grip}
      <h2 title={name}>{name}</h2>
      <span class="row">
        {children}
        <Menu
          label={`${messages.flag.more}: ${name}`}
          face={<span aria-hidden="true">⋯</span>}
          items={items}
        />
      </span>
    </div>
  );
}

export function InsightTile({
  insight,
  dates,
  isAsked: isRequested,
  refreshed,
  controls: { grip, moves },
  onChanged,
  onRemove,
}: {
  insight: BoardInsight;
  dates: Dates | undefined;
  /** Whether the dates differ from the dashboard's. */
  isAsked: boolean;
  /** Number of times that all tiles were recomputed. */
  refreshed: number;
  controls: TileControls;
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
      <TileHead
        name={insight.name || `#${insight.id}`}
        grip={grip}
        items={[
          ...moves,
          ...(kind === "sql"
            ? [[lazyMessages.explore.openSql, () => go("sql", { q: String(source.query) })] as const]
            : []),
          ...(question
            ? [[w.openExplore, () => go("explore", { question: JSON.stringify(question) })] as const]
            : []),
          [
            w.duplicate,
            () => {
              const { name, query, dashboards } = insight;
              const body = { name: w.copyOf(name), query, dashboards, saved: true };
              request(inProject("insights/"), { method: "POST", body }).then(onChanged, toastError);
            },
          ],
          [messages.share.share, () => setSharing(true)],
          [w.removeTile, onRemove],
        ]}
      >
        {shown?.computedAt && <span class="muted wide-only">{w.age(ago(shown.computedAt))}</span>}
        <Button
          kind="quiet"
          icon="refresh"
          label={`${w.refresh} ${insight.name}`}
          onClick={() => setOwn(own + 1)}
        />
      </TileHead>
      {isSharing && (
        <ShareDialog
          item={{ insight_id: insight.id }}
          name={insight.name}
          onClose={() => setSharing(false)}
        />
      )}
      <div class="tile-body">
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
          <Content resource={answer} rows={3}>
            {() => null}
          </Content>
        ) : (
          <p class="error">{shown.problem || lazyMessages.explore.noResult}</p>
        )}
      </div>
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
      {rows.map((row, position) => (
        <tr key={position}>
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
