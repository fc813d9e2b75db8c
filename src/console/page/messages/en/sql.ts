import { counted, number } from "../../lib/format.ts";

export const sql = {
  editor: "Statement",
  run: "Run",
  cancel: "Cancel",
  running: (seconds: string) => `running, ${seconds} s`,
  rows: (count: number, seconds: string) =>
    count === 1 ? `1 row · ${seconds} s` : `${number(count)} rows · ${seconds} s`,
  rowCount: (count: number) => counted(count, "row", "rows"),
  truncated: (count: number) => `first ${number(count)} of more`,
  views: "Views",
  properties: "Properties",
  history: "History",
  noHistory: "None yet.",
  csv: "CSV",
  parquet: "Parquet",
  place: (line: number, column: number) => `Line ${line}, column ${column}`,
  table: "Table",
  chart: "Chart",
  form: "Form",
  save: "Save",
  saveTitle: "Save as an insight",
  savedList: "Saved statements",
  remove: (name: string) => `Remove ${name}`,
  removed: (name: string) => `${name} is removed.`,
  empty: "Write a SELECT over events, persons and groups.",
  emptyHelp: "Queries are read-only and stop when you leave.",
  noRows: "No rows.",
  failed: "Query failed",
  fixIt: "Fix it",
  noChart: "A chart needs a first column of names or times and columns of numbers.",
  exampleList: [
    ["Events by name", "SELECT event, count(*) AS times\nFROM events\nGROUP BY ALL\nORDER BY times DESC"],
    [
      "Per day",
      "SELECT date_trunc('day', timestamp) AS day, count(*) AS events\nFROM events\nGROUP BY ALL\nORDER BY day",
    ],
    [
      "By a property",
      "SELECT prop('$browser') AS browser, count(DISTINCT distinct_id) AS people\nFROM events\nGROUP BY ALL ORDER BY people DESC",
    ],
  ] as const,
};
