/** Arrangement of tiles on a grid of twelve columns, without gaps above a tile. Stored per tile as PostHog does. */

export const boardColumns = 12;
const sizeDefault = { w: 6, h: 5 };
/** Smaller tiles show nothing useful. */
const least = { w: 2, h: 2 };
const heightMax = 30;
const rowMax = 10_000;

/** Position and size of a tile, in columns and rows. */
export interface Rect {
  id: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

export type Direction = "left" | "right" | "up" | "down";

const isOverlapping = (a: Rect, b: Rect) => a.x < b.x + b.w && b.x < a.x + a.w;

/** By row, then by column: the order in which tiles are read. */
const inReadingOrder = (rects: readonly Rect[]): Rect[] => rects.toSorted((a, b) => a.y - b.y || a.x - b.x);

const clamp = (value: number, from: number, to: number) => Math.min(to, Math.max(from, value));

/** Moves each tile up until it touches an earlier one. */
function compact(ordered: readonly Rect[]): Rect[] {
  const bottoms = new Array<number>(boardColumns).fill(0);
  return ordered.map((rect) => {
    const y = Math.max(...bottoms.slice(rect.x, rect.x + rect.w));
    bottoms.fill(y + rect.h, rect.x, rect.x + rect.w);
    return { ...rect, y };
  });
}

/** The stored arrangement. Tiles without a usable one follow below, two in a row. */
export function readLayout(
  tiles: readonly { id: number; layouts: Record<string, unknown> }[],
): readonly Rect[] {
  const placed: Rect[] = [];
  const others: number[] = [];
  for (const { id, layouts } of tiles) {
    const { x, y, w, h } = (layouts.sm ?? {}) as Record<string, unknown>;
    if (![x, y, w, h].every((value) => Number.isInteger(value) && (value as number) >= 0)) {
      others.push(id);
      continue;
    }
    const width = clamp(w as number, least.w, boardColumns);
    placed.push({
      id,
      x: clamp(x as number, 0, boardColumns - width),
      y: clamp(y as number, 0, rowMax),
      w: width,
      h: clamp(h as number, least.h, heightMax),
    });
  }
  const arranged = compact(inReadingOrder(placed));
  let y = Math.max(0, ...arranged.map((rect) => rect.y + rect.h));
  for (const [position, id] of others.entries()) {
    const isLeft = position % 2 === 0;
    arranged.push({ id, x: isLeft ? 0 : sizeDefault.w, y, ...sizeDefault });
    if (!isLeft) y += sizeDefault.h;
  }
  return inReadingOrder(arranged);
}

/** Puts a tile at a place; tiles that are in its way go below it. */
export function moveTo(rects: readonly Rect[], id: number, x: number, y: number): readonly Rect[] {
  const moved = rects.find((rect) => rect.id === id);
  if (!moved) return rects;
  const target = { ...moved, x: clamp(x, 0, boardColumns - moved.w) };
  const others = compact(inReadingOrder(rects.filter((rect) => rect.id !== id)));
  // Before the first tile of its columns whose middle is below the new place.
  const position = others.findIndex((other) => isOverlapping(other, target) && other.y + other.h / 2 > y);
  const ordered = position < 0 ? [...others, target] : others.toSpliced(position, 0, target);
  return inReadingOrder(compact(ordered));
}

/** One step by keyboard: a column aside, or above or below the next tile. */
export function step(rects: readonly Rect[], id: number, direction: Direction): readonly Rect[] {
  const moved = rects.find((rect) => rect.id === id);
  if (!moved) return rects;
  if (direction === "left") return moveTo(rects, id, moved.x - 1, moved.y);
  if (direction === "right") return moveTo(rects, id, moved.x + 1, moved.y);
  const others = compact(inReadingOrder(rects.filter((rect) => rect.id !== id)));
  const inColumns = others.filter((other) => isOverlapping(other, moved));
  if (direction === "up") {
    const above = inColumns.findLast((other) => other.y < moved.y);
    return above ? moveTo(rects, id, moved.x, above.y) : rects;
  }
  const below = inColumns.find((other) => other.y + other.h / 2 > moved.y);
  return below ? moveTo(rects, id, moved.x, below.y + below.h) : rects;
}

/** Exchanges a tile with its neighbor in reading order. */
export function swap(rects: readonly Rect[], id: number, by: 1 | -1): readonly Rect[] {
  const ordered = inReadingOrder(rects);
  const position = ordered.findIndex((rect) => rect.id === id);
  const one = ordered[position];
  const other = ordered[position + by];
  if (!one || !other) return rects;
  const at = (rect: Rect, { x, y }: Rect) => ({ ...rect, x: Math.min(x, boardColumns - rect.w), y });
  ordered[position] = at(other, one);
  ordered[position + by] = at(one, other);
  return inReadingOrder(compact(ordered));
}

/** Changes the size of a tile; its upper left corner stays. */
export function resize(rects: readonly Rect[], id: number, w: number, h: number): readonly Rect[] {
  const changed = rects.map((rect) =>
    rect.id === id
      ? { ...rect, w: clamp(w, least.w, boardColumns - rect.x), h: clamp(h, least.h, heightMax) }
      : rect,
  );
  return inReadingOrder(compact(inReadingOrder(changed)));
}

/** Whether both arrangements are the same. */
export const isSameLayout = (a: readonly Rect[], b: readonly Rect[]): boolean =>
  JSON.stringify(inReadingOrder(a)) === JSON.stringify(inReadingOrder(b));
