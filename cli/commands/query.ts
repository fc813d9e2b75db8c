import { Command, Option } from "commander";
import { columnsInWords } from "../../src/events/export/columns.ts";
import { QueryResult, rowsDefault, rowsMax } from "../../src/events/query/run-query.ts";
import { InvalidField } from "../../src/lib/errors.ts";
import { analysisOf, analysisSettings, waitUntilAllIsLoaded } from "../analysis.ts";
import { chartLines } from "../charts.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { withProject } from "../stores.ts";

interface QueryOptions {
  project?: number;
  dataDir?: string;
  format: "table" | "json" | "csv";
  limit: number;
  json?: true;
  chart?: true;
}

export const query = withJson(
  withSettings(new Command("query"), analysisSettings),
  QueryResult,
  "the same as --format json",
)
  .description("Run a SELECT over the views events, persons and groups of a project.")
  .argument("<sql>", "one SELECT statement (DuckDB's SQL)")
  .option("--project <id>", "the project; may be left out when there is one", positiveInteger)
  .addOption(
    new Option("--format <format>", "how to print the rows")
      .choices(["table", "json", "csv"])
      .default("table"),
  )
  .option("--chart", "the last column of numbers as bars, or as sparklines when the rows are moments")
  .option("--limit <rows>", `rows at most, up to ${rowsMax}`, positiveInteger, rowsDefault)
  .addHelpText(
    "after",
    `\nViews:\n  events   ${columnsInWords("events")}\n  persons  ${columnsInWords("persons")}\n` +
      `  groups   ${columnsInWords("groups")}\n` +
      "\nExamples:\n  flagkeep query 'SELECT event, count(*) AS times FROM events GROUP BY ALL ORDER BY times DESC'\n" +
      "  flagkeep query \"SELECT properties->>'plan' AS plan, count(*) FROM persons GROUP BY ALL\" --project 1 --format json\n" +
      "  flagkeep query --chart \"SELECT date_trunc('day', timestamp) AS day, count(*) FROM events GROUP BY ALL ORDER BY day\"",
  )
  .action(
    run(async (sql: string, options: QueryOptions, command: Command) => {
      if (options.chart && (options.json || command.getOptionValueSource("format") === "cli")) {
        throw new InvalidField(
          "chart",
          "invalid_input",
          "--chart is for reading; leave out --json and --format.",
        );
      }
      const projectId = withProject(options, ({ project }) => project.id);
      const limit = Math.min(options.limit, rowsMax);
      const result = await analysisOf(options, async (appliance) => {
        // What a crash has left in the journal; a running appliance has it within a second.
        if (appliance.isOwn) await waitUntilAllIsLoaded(appliance);
        return await appliance.ask("query", { projectId, sql, limit });
      });
      if (result.truncated) process.stderr.write(`flagkeep: only the first ${limit} rows are shown.\n`);
      if (options.chart) return printChart(result);
      const format = options.json ? "json" : options.format;
      if (format === "json") return printJson(result);
      if (format === "csv") return printCsv(result);
      printTable(result.columns, textRows(result));
    }),
  );

function printChart({ columns, rows }: QueryResult): void {
  const terminalColumns = process.stdout.isTTY ? process.stdout.columns : undefined;
  const lines = rows.length === 0 ? ["No rows."] : chartLines(columns, rows, terminalColumns);
  if (lines === undefined) {
    throw new InvalidField("chart", "invalid_input", "--chart needs a column of numbers, such as count(*).");
  }
  for (const line of lines) print(line);
}

function textRows({ columns, rows }: QueryResult): string[][] {
  return rows.map((row) =>
    columns.map((column) => {
      const value = row[column] ?? "";
      return typeof value === "string" ? value : JSON.stringify(value);
    }),
  );
}

function printCsv(result: QueryResult): void {
  const cell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  for (const row of [result.columns, ...textRows(result)]) print(row.map(cell).join(","));
}
