/** A dashboard: tiles on a grid, arranged by hand. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Menu } from "../../components/menu.tsx";
import { Page } from "../../components/page.tsx";
import { Button } from "../../components/primitives.tsx";
import { ShareDialog } from "../../components/share-dialog.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { Rect } from "../../model/board-layout.ts";
import {
  type BoardInsight,
  type BoardTile,
  changeTile,
  flagChangesText,
  type ShownDashboard,
} from "../../model/dashboard.ts";
import { AddTile } from "./add-tile.tsx";
import { Board } from "./board.tsx";
import { FlagChangesTile, TextTile } from "./text-tile.tsx";
import { InsightTile } from "./tile.tsx";

const w = lazyMessages.dashboards;
/** Steps by keyboard follow each other: only the last arrangement is stored. */
const saveAfterMs = 400;

export function Dashboard() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set, go } = useAddress();
  const [asked, setRequested] = useState<"rename" | "delete" | "share" | "add">();
  const grid = useRef<HTMLDivElement>(null);
  const path = inProject(`dashboards/${encodeURIComponent(id)}/`);
  const board = useResource<ShownDashboard>(`dashboard ${project.value?.id} ${id}`, (signal) =>
    // Only cached results; each tile requests what is missing.
    request(`${path}?refresh=force_cache`, { signal }),
  );
  const [refreshed, setRefreshed] = useState(0);
  const change = async (body: Record<string, unknown>, then: () => void = board.reload) => {
    try {
      await request(path, { method: "PATCH", body });
      then();
    } catch (failure) {
      toastError(failure);
      board.reload();
    }
  };
  const unsaved = useRef<{ timer: ReturnType<typeof setTimeout>; save: () => void } | undefined>(undefined);
  useEffect(
    () => () => {
      clearTimeout(unsaved.current?.timer);
      unsaved.current?.save();
    },
    [],
  );
  const found = board.data;
  const arrange = (rects: readonly Rect[]) => {
    if (!found) return;
    const tiles = rects.map(({ id: tileId, x, y, w: width, h }) => {
      const tile = found.tiles.find((tile) => tile.id === tileId)!;
      const { sm } = tile.layouts as { sm?: object };
      return { ...tile, layouts: { ...tile.layouts, sm: { ...sm, x, y, w: width, h } } };
    });
    board.replace({ ...found, tiles });
    clearTimeout(unsaved.current?.timer);
    const save = () => {
      unsaved.current = undefined;
      // Changes in another tab may have reloaded the former arrangement meanwhile.
      board.replace({ ...found, tiles });
      void change({ tiles: tiles.map(({ id: tileId, layouts }) => ({ id: tileId, layouts })) }, () => {});
    };
    unsaved.current = { timer: setTimeout(save, saveAfterMs), save };
  };
  const hasDates = Boolean(found?.filters.date_from ?? found?.filters.date_to);
  const dates = query.range ? { date_from: query.range } : hasDates ? found?.filters : undefined;
  const removeInsight = async (insight: BoardInsight) => {
    const position = inProject(`insights/${insight.id}/`);
    try {
      // It may have been added to other dashboards since this one was opened.
      const { dashboards: all } = await request<BoardInsight>(position);
      const dashboards = all.filter((other) => String(other) !== id);
      await request(position, { method: "PATCH", body: { dashboards } });
      board.reload();
    } catch (failure) {
      toastError(failure);
    }
  };
  const duplicate = async (shown: ShownDashboard) => {
    const body = { name: w.copyOf(shown.name), use_dashboard: shown.id };
    try {
      const copy = await request<{ id: number }>(inProject("dashboards/"), { method: "POST", body });
      toast(w.duplicated(body.name));
      go(`dashboards/${copy.id}`);
    } catch (failure) {
      toastError(failure);
    }
  };
  const getName = ({ id: tileId, insight, text }: BoardTile) =>
    insight
      ? insight.name || `#${insight.id}`
      : text?.body === flagChangesText
        ? w.changes
        : (text?.body.split("\n")[0] ?? `#${tileId}`);
  return (
    <Page
      title={found?.name || messages.frame.pages.dashboards}
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
                ...Object.entries(lazyMessages.explore.ranges),
              ]}
              onChange={(range) => set({ range: range || undefined })}
            />
            <Button icon="refresh" label={w.refresh} onClick={() => setRefreshed(refreshed + 1)} />
            <Button onClick={() => setRequested("share")}>{messages.share.share}</Button>
            <Button kind="main" icon="plus" onClick={() => setRequested("add")}>
              {w.addTile}
            </Button>
            <Menu
              label={w.more}
              face={<span aria-hidden="true">⋯</span>}
              items={[
                [w.fullScreen, () => void grid.current?.requestFullscreen()],
                [w.duplicate, () => void duplicate(found)],
                [found.pinned ? w.unpin : w.pin, () => void change({ pinned: !found.pinned })],
                [w.rename, () => setRequested("rename")],
                [messages.frame.delete, () => setRequested("delete")],
              ]}
            />
          </>
        )
      }
    >
      <Content resource={board}>
        {(shown) =>
          shown.tiles.length === 0 ? (
            <Empty title={w.emptyTiles} icon="dashboards">
              <p class="muted">{w.emptyTilesText}</p>
              <Button onClick={() => setRequested("add")}>{w.addTile}</Button>
            </Empty>
          ) : (
            <Board tiles={shown.tiles} boardRef={grid} nameOf={getName} onArrange={arrange}>
              {(tile, controls) => {
                const { insight, text } = tile;
                if (insight) {
                  return (
                    <InsightTile
                      key={query.range}
                      insight={insight}
                      dates={dates}
                      isAsked={Boolean(query.range)}
                      refreshed={refreshed}
                      controls={controls}
                      onChanged={board.reload}
                      onRemove={() => void removeInsight(insight)}
                    />
                  );
                }
                const props = {
                  controls,
                  name: getName(tile),
                  onRemove: () =>
                    void changeTile(shown, tile.id, { deleted: true }).then(board.reload, toastError),
                };
                return text?.body === flagChangesText ? (
                  <FlagChangesTile {...props} from={dates?.date_from} />
                ) : (
                  <TextTile
                    {...props}
                    text={text?.body ?? ""}
                    onChange={(body) => changeTile(shown, tile.id, { text: { body } }).then(board.reload)}
                  />
                );
              }}
            </Board>
          )
        }
      </Content>
      {asked === "add" && found && (
        <AddTile
          dashboard={found}
          onClose={() => setRequested(undefined)}
          onAdded={() => {
            setRequested(undefined);
            board.reload();
          }}
        />
      )}
      {asked === "rename" && found && (
        <RenameDialog
          name={found.name}
          onClose={() => setRequested(undefined)}
          onRename={async (name) => {
            await request(path, { method: "PATCH", body: { name } });
            board.reload();
          }}
        />
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
          action={messages.frame.delete}
          onClose={() => setRequested(undefined)}
          onYes={() => {
            request(path, { method: "PATCH", body: { deleted: true } }).then(() => {
              toast(w.deleted(found.name));
              go("dashboards");
            }, toastError);
          }}
        />
      )}
    </Page>
  );
}

function RenameDialog({
  name,
  onRename,
  onClose,
}: {
  name: string;
  onRename: (name: string) => Promise<unknown>;
  onClose: () => void;
}) {
  const form = useForm({ name }, async (values) => {
    await onRename(values.name);
    onClose();
  });
  return (
    <FormDialog title={w.rename} form={form} action={messages.frame.save} onClose={onClose}>
      <Field label={w.name} {...form.input("name")} isRequired autofocus />
    </FormDialog>
  );
}
