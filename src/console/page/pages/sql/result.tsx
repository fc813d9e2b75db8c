/** Result of a SQL query, as a table that is sorted by its headers, or as a chart. */

import { useMemo, useState } from "preact/hooks";
import { Chart } from "../../components/chart.tsx";
import { NameBars } from "../../components/name-bars.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { formatValue } from "../../lib/format.ts";
import { sortRows } from "../../lib/sort-rows.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.sql;
/** Values of date and time columns. */
const timeForm = /^\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}|$)|$)/;
/** All digits: a result is not rounded. */
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 20 });

export interface Answer {
  columns: string[];
  rows: Record<string, unknown>[];
  truncated: boolean;
  /** Run time. */
  seconds: number;
}

export function Result({ answer, isChart }: { answer: Answer; isChart: boolean }) {
  /** Position of the column, `-` before it for descending: names may be anything. */
  const [order, setOrder] = useState<string>();
  const rows = useMemo(() => {
    const column = answer.columns[Math.abs(Number(order))];
    return order === undefined || column === undefined
      ? answer.rows
      : sortRows(answer.rows, column, order.startsWith("-"));
  }, [answer, order]);
  if (answer.rows.length === 0) return <p class="muted">{w.noRows}</p>;
  if (isChart) return <ResultChart answer={answer} />;
  const columns = answer.columns.map((name, position): Column<Record<string, unknown>> => {
    const isNumber = answer.rows.every((row) => row[name] === null || typeof row[name] === "number");
    return {
      id: `c-${name}`,
      title: name,
      width: "minmax(9rem, 1fr)",
      isNumber,
      sort: `${isNumber ? "-" : ""}${position}`,
      cell: (row) => {
        const value = row[name];
        if (value === null) return <span class="muted">null</span>;
        return typeof value === "number" ? exact.format(value) : formatValue(value);
      },
    };
  });
  return (
    <div class="wide-table sql-result">
      <DataTable
        label={messages.frame.pages.sql}
        columns={columns}
        count={rows.length}
        rowAt={(index) => rows[index]}
        keyOf={(row) => answer.rows.indexOf(row)}
        {...(order === undefined ? {} : { order })}
        onOrder={setOrder}
        rowHeight={36}
        narrowHeight={36}
        isAlwaysTable
      />
    </div>
  );
}

function ResultChart({ answer }: { answer: Answer }) {
  const [first, ...others] = answer.columns;
  const isNumber = (value: unknown) =>
    typeof value === "number" || (typeof value === "string" && value !== "" && !Number.isNaN(Number(value)));
  const numbers = others.filter((name) =>
    answer.rows.every((row) => row[name] === null || isNumber(row[name])),
  );
  if (first === undefined || numbers.length === 0) return <p class="muted">{w.noChart}</p>;
  const chart = {
    label: messages.frame.pages.sql,
    summary: w.rowCount(answer.rows.length),
    names: answer.rows.map((row) =>
      formatValue(row[first]).replace(/T00:00:00(\.0+)?(Z|[+-]\d\d:?\d\d)?$/, ""),
    ),
    series: numbers.map((name) => ({ name, values: answer.rows.map((row) => Number(row[name] ?? 0)) })),
  };
  const isName = (value: unknown) => typeof value === "string" && !isNumber(value) && !timeForm.test(value);
  return answer.rows.some((row) => isName(row[first])) ? <NameBars {...chart} /> : <Chart {...chart} />;
}
