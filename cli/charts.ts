/** Numbers as bars and sparklines in text. */

import Chartscii from "chartscii";
import sparkly from "sparkly";
import { inOneLine } from "../src/lib/terminal-text.ts";

/** Wider charts are no easier to read. */
const barsWidthMax = 60;
const labelLengthMax = 40;
/** Fits into a line of any terminal. */
const sparkLengthMax = 60;

export interface Bar {
  label: string;
  value: number;
}

/** One horizontal bar per line, with label and value; negative values have no bar. */
export function bars(values: readonly Bar[], terminalColumns = 80): string[] {
  const largest = Math.max(...values.map(({ value }) => value));
  const labels = values.map(({ label }) => shortened(label));
  const labelWidth = Math.max(...labels.map((label) => Bun.stringWidth(label)));
  const numbers = values.map(({ value }) => String(value));
  const numberWidth = Math.max(...numbers.map((text) => text.length));
  const width = Math.max(10, Math.min(barsWidthMax, terminalColumns - labelWidth - numberWidth - 3));
  // The library divides by the largest value, so an all-zero chart is drawn here.
  const drawn =
    largest > 0
      ? drawnBars(
          values.map(({ value }) => Math.max(0, value)),
          width,
        )
      : [];
  return labels.map((label, row) => {
    const padding = " ".repeat(labelWidth - Bun.stringWidth(label));
    return `${label}${padding}  ${drawn[row] ?? ""} ${numbers[row]}`.replace(/ {2}(?= \S+$)/, " ");
  });
}

function drawnBars(values: readonly number[], width: number): string[] {
  const chart = new Chartscii(
    values.map((value) => ({ label: "", value })),
    {
      width,
      sort: false,
      reverse: false,
      fill: "",
      colorLabels: false,
      valueLabels: false,
      barSize: 1,
      structure: { x: "", y: "", bottomLeft: "", topLeft: "", axis: "" },
    },
  );
  const lines = Bun.stripANSI(chart.create()).split("\n");
  const first = lines.findIndex((line) => line.trim() !== "");
  return lines.slice(first, first + values.length).map((line) => /█*$/.exec(line.trim())![0]);
}

/** A sparkline of the last values that fit. */
export function spark(values: readonly number[]): string {
  const shown = values.slice(-sparkLengthMax);
  if (shown.length === 0) return "";
  return shown.every((value) => value === 0) ? "▁".repeat(shown.length) : sparkly([...shown], { minimum: 0 });
}

/** Values of a result as a chart: sparklines if the rows are times, else bars. */
export function chartLines(
  columns: readonly string[],
  rows: readonly Record<string, unknown>[],
  terminalColumns?: number,
): string[] | undefined {
  const measure = columns.findLast((column) => rows.some((row) => numberIn(row[column]) !== undefined));
  if (measure === undefined) return undefined;
  const others = columns.filter((column) => column !== measure);
  const timestamp = others.find((column) => rows.every((row) => isMoment(row[column])));
  const getLabel = (row: Record<string, unknown>, names: readonly string[]) =>
    names.map((name) => toDisplayString(row[name])).join(", ");
  if (timestamp === undefined || rows.length < 3) {
    const values = rows.map((row) => ({ label: getLabel(row, others), value: numberIn(row[measure]) ?? 0 }));
    return bars(values, terminalColumns);
  }
  const series = new Map<string, { at: string; value: number }[]>();
  const rest = others.filter((column) => column !== timestamp);
  for (const row of rows) {
    const name = getLabel(row, rest) || measure;
    series.set(name, [
      ...(series.get(name) ?? []),
      { at: toDisplayString(row[timestamp]), value: numberIn(row[measure]) ?? 0 },
    ]);
  }
  const width = Math.max(...[...series.keys()].map((name) => Bun.stringWidth(shortened(name))));
  return [...series].map(([name, points]) => {
    const inOrder = points.toSorted((a, b) => (a.at < b.at ? -1 : 1));
    const values = inOrder.map(({ value }) => value);
    const label = shortened(name);
    const range = `${Math.min(...values)} to ${Math.max(...values)}, ${inOrder[0]!.at} to ${inOrder.at(-1)!.at}`;
    return `${label}${" ".repeat(width - Bun.stringWidth(label))}  ${spark(values)}  ${range}`;
  });
}

function numberIn(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  // Large numbers are strings, to keep all digits.
  return typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : undefined;
}

const isMoment = (value: unknown): boolean => typeof value === "string" && /^\d{4}-\d\d(-\d\d|$)/.test(value);

function toDisplayString(value: unknown): string {
  if (value === null || value === undefined) return "(none)";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function shortened(label: string): string {
  const visible = inOneLine(label);
  return visible.length <= labelLengthMax ? visible : `${visible.slice(0, labelLengthMax - 1)}…`;
}
