/** Grid of tiles, moved and resized by pointer or keyboard. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { followPointer } from "../../components/follow-pointer.ts";
import { Icon } from "../../components/icons.tsx";
import type { MenuItem } from "../../components/menu.tsx";
import { lazyMessages } from "../../messages/later.ts";
import {
  boardColumns,
  type Direction,
  isSameLayout,
  moveTo,
  type Rect,
  readLayout,
  resize,
  step,
  swap,
} from "../../model/board-layout.ts";

const w = lazyMessages.dashboards;
const rowHeight = 80;
const gap = 16;
/** Head, marks, notes, legend and padding of a tile with a chart. */
const besidesPlot = 230;
const plotLeast = 120;

const arrows: Record<string, Direction> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};
const growth: Record<Direction, readonly [w: number, h: number]> = {
  left: [-1, 0],
  right: [1, 0],
  up: [0, -1],
  down: [0, 1],
};

/** What a tile shows of the board. */
export interface TileControls {
  /** Handle to move it. */
  grip: ComponentChildren;
  moves: readonly MenuItem[];
}

export function Board<Tile extends { id: number; layouts: Record<string, unknown> }>({
  tiles,
  boardRef,
  nameOf: getName,
  onArrange,
  children,
}: {
  tiles: readonly Tile[];
  boardRef: { current: HTMLDivElement | null };
  nameOf: (tile: Tile) => string;
  onArrange: (rects: readonly Rect[]) => void;
  children: (tile: Tile, controls: TileControls) => ComponentChildren;
}) {
  const stored = readLayout(tiles);
  const [draft, setDraft] = useState<{ id: number; rects: readonly Rect[] }>();
  const [reported, setReported] = useState("");
  // Elements that change their place in the document lose the focus.
  const focused = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    if (focused.current?.isConnected && document.activeElement === document.body) focused.current.focus();
  });

  const arrange = (id: number, rects: readonly Rect[]) => {
    const { x, y, w: width, h } = rects.find((rect) => rect.id === id)!;
    setReported(w.positionLabel(x + 1, y + 1, width, h));
    if (!isSameLayout(rects, stored)) onArrange(rects);
  };
  const drag = (event: PointerEvent, rect: Rect, isResize: boolean) => {
    const cell = ((boardRef.current?.clientWidth ?? 0) + gap) / boardColumns;
    if (event.button !== 0 || cell <= 0) return;
    const from = { x: event.pageX, y: event.pageY };
    let rects: readonly Rect[] = stored;
    followPointer(event, {
      onMove({ pageX, pageY }) {
        const columns = Math.round((pageX - from.x) / cell);
        const rows = Math.round((pageY - from.y) / (rowHeight + gap));
        rects = isResize
          ? resize(stored, rect.id, rect.w + columns, rect.h + rows)
          : moveTo(stored, rect.id, rect.x + columns, rect.y + rows);
        setDraft({ id: rect.id, rects });
      },
      onEnd(isDone) {
        setDraft(undefined);
        if (isDone) arrange(rect.id, rects);
      },
    });
  };
  const byKey = (event: KeyboardEvent, rect: Rect, isResize: boolean) => {
    const direction = arrows[event.key];
    if (direction === undefined) return;
    event.preventDefault();
    focused.current = event.currentTarget as HTMLElement;
    const [wider, higher] = growth[direction];
    arrange(
      rect.id,
      isResize ? resize(stored, rect.id, rect.w + wider, rect.h + higher) : step(stored, rect.id, direction),
    );
  };

  return (
    <div class="board" ref={boardRef}>
      {stored.map((rect, position) => {
        const tile = tiles.find(({ id }) => id === rect.id)!;
        const { x, y, w: width, h } = draft?.rects.find(({ id }) => id === rect.id) ?? rect;
        const name = getName(tile);
        return (
          <section
            key={rect.id}
            class={draft?.id === rect.id ? "card tile-card dragged" : "card tile-card"}
            aria-label={name}
            style={{
              "--tile-columns": `${x + 1} / span ${width}`,
              "--tile-rows": `${y + 1} / span ${h}`,
              "--plot-height": `${Math.max(plotLeast, h * (rowHeight + gap) - gap - besidesPlot)}px`,
            }}
          >
            {children(tile, {
              grip: (
                <button
                  type="button"
                  class="button quiet only-icon tile-grip"
                  aria-label={w.move(name)}
                  title={w.moveHelp}
                  onPointerDown={(event) => drag(event, rect, false)}
                  onKeyDown={(event) => byKey(event, rect, false)}
                >
                  <Icon name="grip" />
                </button>
              ),
              moves: [
                [w.earlier, () => arrange(rect.id, swap(stored, rect.id, -1)), position === 0 && w.isFirst],
                [
                  w.later,
                  () => arrange(rect.id, swap(stored, rect.id, 1)),
                  position === stored.length - 1 && w.isLast,
                ],
              ],
            })}
            <button
              type="button"
              class="tile-corner"
              aria-label={w.resize(name)}
              title={w.moveHelp}
              onPointerDown={(event) => drag(event, rect, true)}
              onKeyDown={(event) => byKey(event, rect, true)}
            />
          </section>
        );
      })}
      <p class="unseen" role="status">
        {reported}
      </p>
    </div>
  );
}
