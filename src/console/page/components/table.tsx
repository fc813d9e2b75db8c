/** Virtualized tables: only rows in view are elements. On a narrow screen a row is a card with the main columns. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../lib/shortcuts.ts";

export interface Column<Row> {
  id: string;
  title: ComponentChildren;
  /** A grid track size such as "2fr" or "8rem". */
  width: string;
  cell: (row: Row, index: number, isNarrow: boolean) => ComponentChildren;
  /** Omitted on a narrow screen. */
  isWideOnly?: boolean;
  isNumber?: boolean;
  /** Its order in the API, `-` before it if the first click sorts descending; omitted: not sortable. */
  sort?: string;
}

interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  /** Total number of rows, including those not fetched yet. */
  count: number;
  /** Undefined while loading. */
  rowAt: (index: number) => Row | undefined;
  keyOf: (row: Row) => string | number;
  /** Called with the range of rows in view. */
  onView?: (first: number, last: number) => void;
  onOpen?: (row: Row) => void;
  onChoose?: (row: Row) => void;
  /** A class of a row. */
  rowClass?: (row: Row) => string | undefined;
  /** The present order, as in `Column.sort`. */
  order?: string;
  onOrder?: (order: string) => void;
  rowHeight?: number;
  narrowHeight?: number;
  /** All columns on a narrow screen too; the table then scrolls sideways. */
  isAlwaysTable?: boolean;
}

const narrowScreen = matchMedia("(max-width: 720px)");
const spareRows = 8;

function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(narrowScreen.matches);
  useEffect(() => {
    const onChange = () => setNarrow(narrowScreen.matches);
    narrowScreen.addEventListener("change", onChange);
    return () => narrowScreen.removeEventListener("change", onChange);
  }, []);
  return isNarrow;
}

export function DataTable<Row>(props: TableProps<Row>) {
  const { label, columns, count, rowAt, keyOf: getKey, onView, onOpen, onChoose } = props;
  const isNarrow = useNarrow();
  const height = isNarrow ? (props.narrowHeight ?? 76) : (props.rowHeight ?? 46);
  const body = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, last: 40 });
  const [current, setCurrent] = useState(-1);

  useLayoutEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const top = -(body.current?.getBoundingClientRect().top ?? 0);
      const first = Math.max(0, Math.floor(top / height) - spareRows);
      const last = Math.min(count - 1, Math.ceil((top + innerHeight) / height) + spareRows);
      setView((now) => (now.first === first && now.last === last ? now : { first, last }));
    };
    const onScroll = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    addEventListener("scroll", onScroll, { passive: true });
    addEventListener("resize", onScroll);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", onScroll);
    };
  }, [count, height]);
  useEffect(() => {
    if (count > 0) onView?.(view.first, view.last);
  }, [view.first, view.last, count]);

  const move = (by: number) => {
    if (count === 0) return;
    const next = Math.min(count - 1, Math.max(0, current + by));
    setCurrent(next);
    const top = (body.current?.getBoundingClientRect().top ?? 0) + next * height;
    if (top < 120) scrollBy(0, top - 120);
    else if (top + height > innerHeight - 80) scrollBy(0, top + height - innerHeight + 80);
    requestAnimationFrame(() =>
      body.current
        ?.querySelector<HTMLElement>(`[aria-rowindex="${next + 2}"]`)
        ?.focus({ preventScroll: true }),
    );
  };
  const act = (how: ((row: Row) => void) | undefined) => {
    const row = current < 0 ? undefined : rowAt(current);
    if (row !== undefined) how?.(row);
  };
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    ...(onChoose ? { x: () => act(onChoose) } : {}),
  });

  const shown = isNarrow && !props.isAlwaysTable ? columns.filter((column) => !column.isWideOnly) : columns;
  const rows: ComponentChildren[] = [];
  for (let index = view.first; index <= Math.min(view.last, count - 1); index++) {
    const row = rowAt(index);
    rows.push(
      <div
        key={row === undefined ? `- ${index}` : getKey(row)}
        role="row"
        class={["tr", index === current && "current", row !== undefined && props.rowClass?.(row)]
          .filter(Boolean)
          .join(" ")}
        aria-rowindex={index + 2}
        tabIndex={-1}
        style={{ top: `${index * height}px`, height: `${height}px` }}
        onFocus={() => setCurrent(index)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && event.target === event.currentTarget && row !== undefined)
            onOpen?.(row);
        }}
        onClick={(event) => {
          if (row === undefined || (event.target as HTMLElement).closest("a, button, input, label")) return;
          if (getSelection()?.isCollapsed !== false) onOpen?.(row);
        }}
      >
        {shown.map((column) => (
          <div key={column.id} role="cell" class={`td ${column.id}${column.isNumber ? " number" : ""}`}>
            {row === undefined ? <span class="ghost" /> : column.cell(row, index, isNarrow)}
          </div>
        ))}
      </div>,
    );
  }
  return (
    <div
      class={`table${onOpen ? " opens" : ""}${props.isAlwaysTable ? " always" : ""}`}
      role="table"
      aria-label={label}
      aria-rowcount={count + 1}
      style={{ "--columns": shown.map(({ width }) => width).join(" ") }}
    >
      <div role="rowgroup" class="thead">
        <div role="row" class="tr" aria-rowindex={1}>
          {shown.map((column) => (
            <Header key={column.id} column={column} order={props.order} onOrder={props.onOrder} />
          ))}
        </div>
      </div>
      <div role="rowgroup" class="tbody" ref={body} style={{ height: `${count * height}px` }}>
        {rows}
      </div>
    </div>
  );
}

function Header<Row>({
  column: { id, title, sort, isNumber },
  order,
  onOrder,
}: {
  column: Column<Row>;
  order: string | undefined;
  onOrder: ((order: string) => void) | undefined;
}) {
  if (sort === undefined || onOrder === undefined) {
    return (
      <div role="columnheader" class={isNumber ? `td ${id} number` : `td ${id}`}>
        {title}
      </div>
    );
  }
  const isSorted = order?.replace("-", "") === sort.replace("-", "");
  const isDescending = order?.startsWith("-") === true;
  const reversed = isDescending ? order!.slice(1) : `-${order}`;
  return (
    <div
      role="columnheader"
      class={isNumber ? `td ${id} number` : `td ${id}`}
      aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : undefined}
    >
      <button type="button" class="sort" onClick={() => onOrder(isSorted ? reversed : sort)}>
        {title}
        {isSorted && <span aria-hidden="true">{isDescending ? " ↓" : " ↑"}</span>}
      </button>
    </div>
  );
}
