/** One dashboard: its insights side by side, each with its age; one that fails does not fail the others. */

import { useRef, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { to, useAddress } from "../lib/address.ts";
import { ask, wordsOf } from "../lib/api.ts";
import { ago } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { kindOfQuery, type Query, viewOfQuery } from "../model/insight.ts";
import { Button } from "../parts/basics.tsx";
import { Question } from "../parts/confirm.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field, Select } from "../parts/fields.tsx";
import { InsightView } from "../parts/insight-view.tsx";
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

interface DashboardWithTiles {
  id: number;
  name: string;
  description: string;
  pinned: boolean;
  tiles: { id: number; insight: Insight | null; text: string | null }[];
}

export function Dashboard() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set, go } = useAddress();
  const [asked, setAsked] = useState<"rename" | "delete">();
  const [name, setName] = useState("");
  const grid = useRef<HTMLDivElement>(null);
  const path = inProject(`dashboards/${encodeURIComponent(id)}/`);
  const board = useResource<DashboardWithTiles>(`dashboard ${project.value?.id} ${id}`, (signal) =>
    ask(path, { signal }),
  );
  const change = async (body: Record<string, unknown>) => {
    try {
      await ask(path, { method: "PATCH", body });
      board.reload();
    } catch (error) {
      complain(wordsOf(error));
    }
  };
  const found = board.data;
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
              choices={[["", `${w.range}: ${w.ownRange}`], ...Object.entries(words.explore.ranges)]}
              onChange={(range) => set({ range: range || undefined })}
            />
            <Button icon="refresh" onClick={board.reload}>
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
              {tiles.map(({ id: tile, insight, text }) =>
                insight ? (
                  <Tile
                    key={`${tile} ${query.range}`}
                    insight={insight}
                    range={query.range}
                    onRemove={() => {
                      const dashboards = insight.dashboards.filter((other) => String(other) !== id);
                      ask(inProject(`insights/${insight.id}/`), {
                        method: "PATCH",
                        body: { dashboards },
                      }).then(board.reload, (error) => complain(wordsOf(error)));
                    }}
                  />
                ) : (
                  <section key={tile} class="card">
                    <p>{text}</p>
                  </section>
                ),
              )}
            </div>
          )
        }
      </Content>
      {asked === "rename" && (
        <Dialog
          title={w.rename}
          onClose={() => setAsked(undefined)}
          onSubmit={() => {
            setAsked(undefined);
            void change({ name });
          }}
          actions={
            <Button kind="main" type="submit">
              {words.frame.save}
            </Button>
          }
        >
          <Field label={w.name} value={name} onInput={setName} isRequired autofocus />
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

function Tile({
  insight,
  range,
  onRemove,
}: {
  insight: Insight;
  range: string | undefined;
  onRemove: () => void;
}) {
  const kind = kindOfQuery(insight.query);
  const source = (insight.query.source as Query | undefined) ?? insight.query;
  const [isFresh, setFresh] = useState(false);
  const isAsked = (range !== undefined || isFresh) && kind !== undefined && kind !== "sql";
  const computed = useResource<{ results: unknown[] }>(
    isAsked ? `tile ${insight.id} ${range}` : null,
    (signal) =>
      inTurn(() =>
        ask(inProject("query/"), {
          method: "POST",
          body: { query: range === undefined ? source : { ...source, dateRange: { date_from: range } } },
          signal,
        }),
      ),
  );
  const results = isAsked ? computed.data?.results : insight.result;
  const age = isAsked ? computed.readAt : insight.last_refresh;
  return (
    <section class="card stack tile-card" aria-label={insight.name}>
      <div class="row apart">
        <h2>{insight.name || `#${insight.id}`}</h2>
        <span class="row">
          {age ? <span class="muted">{w.age(ago(age))}</span> : null}
          <Button
            kind="quiet"
            icon="refresh"
            label={`${w.refresh} ${insight.name}`}
            onClick={() => (isFresh ? computed.reload() : setFresh(true))}
          />
          <Button kind="quiet" icon="trash" label={`${w.removeTile} ${insight.name}`} onClick={onRemove} />
        </span>
      </div>
      {kind === "sql" ? (
        <p>
          {words.explore.statement}{" "}
          <a href={to("sql", { q: String(source.query) })}>{words.explore.openSql}</a>
        </p>
      ) : isAsked && computed.data === undefined ? (
        <Content of={computed} rows={3}>
          {() => null}
        </Content>
      ) : kind === undefined || results == null ? (
        <p class="error">{insight.query_status?.error_message || words.explore.noResult}</p>
      ) : (
        <InsightView kind={kind} view={viewOfQuery(insight.query)} results={results} label={insight.name} />
      )}
    </section>
  );
}
