/** The grid of a dashboard: tiles never overlap, never leave the grid, and none is lost. */

import { describe, expect, test } from "bun:test";
import {
  boardColumns,
  moveTo,
  type Rect,
  readLayout,
  resize,
  step,
  swap,
} from "../../src/console/page/model/board-layout.ts";
import { randomFrom } from "../support/seeded-random.ts";

const tile = (id: number, x: number, y: number, w = 6, h = 5) => ({ id, layouts: { sm: { x, y, w, h } } });
const places = (rects: readonly Rect[]) => rects.map(({ id, x, y, w, h }) => [id, x, y, w, h].join(" "));

describe("an arrangement", () => {
  test("is read as stored; tiles without a valid position follow below", () => {
    const rects = readLayout([
      tile(1, 6, 0),
      tile(2, 0, 0),
      { id: 3, layouts: {} },
      { id: 4, layouts: { sm: { x: "1", y: 0, w: 3, h: 3 } } },
      tile(5, 11, 40, 99, 1),
    ]);
    expect(places(rects)).toEqual(["2 0 0 6 5", "1 6 0 6 5", "5 0 5 12 2", "3 0 7 6 5", "4 6 7 6 5"]);
  });

  test("a moved tile takes the position of another, which moves down", () => {
    const rects = readLayout([tile(1, 0, 0), tile(2, 6, 0), tile(3, 0, 5)]);
    expect(places(moveTo(rects, 1, 0, 1))).toEqual(places(rects));
    expect(places(moveTo(rects, 1, 0, 3))).toEqual(["3 0 0 6 5", "2 6 0 6 5", "1 0 5 6 5"]);
    expect(places(moveTo(rects, 1, 99, 0))).toEqual(["3 0 0 6 5", "1 6 0 6 5", "2 6 5 6 5"]);
    expect(places(step(rects, 1, "down"))).toEqual(["3 0 0 6 5", "2 6 0 6 5", "1 0 5 6 5"]);
    expect(places(step(rects, 3, "up"))).toEqual(["3 0 0 6 5", "2 6 0 6 5", "1 0 5 6 5"]);
    expect(places(step(rects, 1, "right"))).toEqual(["1 1 0 6 5", "3 0 5 6 5", "2 6 5 6 5"]);
    expect(places(step(rects, 1, "up"))).toEqual(places(rects));
    expect(places(step(rects, 2, "down"))).toEqual(places(rects));
    expect(places(swap(rects, 1, 1))).toEqual(["2 0 0 6 5", "1 6 0 6 5", "3 0 5 6 5"]);
    expect(places(swap(rects, 1, -1))).toEqual(places(rects));
  });

  test("a tile that grows pushes its neighbors down, and keeps a size that shows something", () => {
    const rects = readLayout([tile(1, 0, 0), tile(2, 6, 0)]);
    expect(places(resize(rects, 1, 8, 5))).toEqual(["1 0 0 8 5", "2 6 5 6 5"]);
    expect(places(resize(rects, 2, 99, 99))).toEqual(["1 0 0 6 5", "2 6 0 6 30"]);
    expect(places(resize(rects, 1, 0, -3))).toEqual(["1 0 0 2 2", "2 6 0 6 5"]);
  });

  test("after any series of changes no two tiles overlap, and all are on the grid", () => {
    const random = randomFrom(7);
    const below = (limit: number) => Math.floor(random() * limit);
    for (let round = 0; round < 200; round++) {
      const count = 1 + below(8);
      let rects = readLayout(
        Array.from({ length: count }, (_, id) =>
          below(4) === 0 ? { id, layouts: {} } : tile(id, below(14), below(20), 1 + below(13), 1 + below(8)),
        ),
      );
      for (let change = 0; change < 20; change++) {
        const id = below(count);
        const direction = (["left", "right", "up", "down"] as const)[below(4)]!;
        rects = [
          () => moveTo(rects, id, below(14) - 1, below(20)),
          () => step(rects, id, direction),
          () => swap(rects, id, below(2) === 0 ? 1 : -1),
          () => resize(rects, id, below(15), below(12)),
        ][below(4)]!();
        expect(rects.map((rect) => rect.id).toSorted()).toEqual(Array.from({ length: count }, (_, id) => id));
        const cells = new Set<string>();
        for (const { x, y, w, h } of rects) {
          expect(x >= 0 && x + w <= boardColumns && y >= 0).toBe(true);
          for (let column = x; column < x + w; column++) {
            for (let row = y; row < y + h; row++) {
              expect(cells.has(`${column} ${row}`)).toBe(false);
              cells.add(`${column} ${row}`);
            }
          }
        }
      }
    }
  });
});
