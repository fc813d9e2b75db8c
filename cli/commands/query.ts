import { extname, resolve } from "node:path";
import { Command, Option } from "commander";
import { columnsDescription, csvCaution } from "../../src/events/export/columns.ts";
import { validateOutput, writeToFile, writeToStdout } from "../../src/events/export/output.ts";
import { QueryResult, rowsDefault, rowsMax } from "../../src/events/query/run-query.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { chartLines } from "../charts.ts";
import { engineSessionSettings } from "../engine-session.ts";
import { withQueries } from "../operations/queries.ts";
import { type CallOptions, withServer } from "../operations/server.ts";
import { projectOption } from "../options.ts";
import { fileName, positiveInteger, print, printJson, printTable, run, withJson } from "../output.ts";
import { withSettings } from "../settings.ts";

interface QueryOptions extends CallOptions {
  format: "table" | "json" | "csv" | "parquet";
  output?: string;
  limit: number;
  chart?: true;
}

export const query = withJson(
  withSettings(new Command("query"), engineSessionSettings),
  QueryResult,
  "alias of --format json",
)
  .description("Run a SELECT over the views events, persons and groups of a project.")
  .argument("<sql>", "one SELECT statement in DuckDB SQL")
  .addOption(projectOption)
  .addOption(
    new Option("--format <format>", "output format")
      .choices(["table", "json", "csv", "parquet"])
      .default("table"),
  )
  .option("-o, --output <file>", "output file (.csv or .parquet); all rows unless --limit is set", fileName)
  .option("--chart", "draw the last numeric column as bars, or as sparklines for timestamps")
  .option("--limit <rows>", `maximum number of rows, at most ${rowsMax}`, positiveInteger, rowsDefault)
  .addHelpText(
    "after",
    `\nViews:\n  events   ${columnsDescription("events")}\n  persons  ${columnsDescription("persons")}\n` +
      `  groups   ${columnsDescription("groups")}\n\n${csvCaution}\n` +
      "\nExamples:\n  flagkeep query 'SELECT event, count(*) AS times FROM events GROUP BY ALL ORDER BY times DESC'\n" +
      "  flagkeep query \"SELECT properties->>'plan' AS plan, count(*) FROM persons GROUP BY ALL\" --project 1 --format json\n" +
      "  flagkeep query --chart \"SELECT date_trunc('day', timestamp) AS day, count(*) FROM events GROUP BY ALL ORDER BY day\"\n" +
      '  flagkeep query "SELECT * FROM events" -o events.parquet\n' +
      '  flagkeep query "SELECT count(*) FROM events" --url https://flags.example.com',
  )
  .action(
    run(async (sql: string, options: QueryOptions, command: Command) => {
      if (options.chart && (options.json || command.getOptionValueSource("format") === "cli")) {
        throw new InvalidFieldError(
          "chart",
          "invalid_input",
          "--chart cannot be combined with --json or --format.",
        );
      }
      const file = getFile(options, (name) => command.getOptionValueSource(name) === "cli");
      if (file !== undefined) return await download(sql, file, options);
      const limit = Math.min(options.limit, rowsMax);
      const result = await withQueries(options, (queries) => queries.select(sql, limit));
      if (result.truncated) process.stderr.write(`flagkeep: only the first ${limit} rows are shown.\n`);
      if (options.chart) return printChart(result);
      const format = options.json ? "json" : options.format;
      if (format === "json") return printJson(result);
      if (format === "csv") return await printCsv(result);
      printTable(result.columns, textRows(result));
    }),
  );

withServer(query);

/** Output file of a query. */
interface OutFile {
  /** Default: standard output. */
  path?: string;
  format: "csv" | "parquet";
  limit?: number;
}

/** @throws {InvalidFieldError} the options contradict each other. */
function getFile(
  { output, format, limit, json, chart }: QueryOptions,
  isGiven: (option: "format" | "limit") => boolean,
): OutFile | undefined {
  const rows = isGiven("limit") ? { limit } : {};
  if (output === undefined) {
    if (format !== "parquet" || json) return undefined;
    if (!process.stdout.isTTY) return { format, ...rows };
    throw new InvalidFieldError("format", "invalid_input", "Parquet requires a file: use --output.");
  }
  const named = extname(output).toLowerCase().slice(1);
  if (named !== "csv" && named !== "parquet")
    throw new InvalidFieldError("output", "invalid_input", "The file extension must be .csv or .parquet.");
  if (json || chart || (isGiven("format") && format !== named)) {
    const message = `The file extension .${named} selects the format: omit --format, --json and --chart.`;
    throw new InvalidFieldError("output", "invalid_input", message);
  }
  return { path: resolve(output), format: named, ...rows };
}

async function download(sql: string, { path, ...form }: OutFile, options: QueryOptions): Promise<void> {
  if (path !== undefined) validateOutput(path);
  await withQueries(
    options,
    async (queries) => {
      const write = async (sink: typeof writeToStdout) => {
        for await (const bytes of await queries.download(sql, form)) await sink(bytes);
      };
      await (path === undefined ? write(writeToStdout) : writeToFile(path, write));
    },
    // Standard output cannot be undone.
    { mayStartAgain: path !== undefined },
  );
  if (path !== undefined) process.stderr.write(`The rows are in ${path}.\n`);
}

function printChart({ columns, rows }: QueryResult): void {
  const terminalColumns = process.stdout.isTTY ? process.stdout.columns : undefined;
  const lines = rows.length === 0 ? ["No rows."] : chartLines(columns, rows, terminalColumns);
  if (lines === undefined) {
    throw new InvalidFieldError(
      "chart",
      "invalid_input",
      "--chart requires a numeric column, for example count(*).",
    );
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

async function printCsv(result: QueryResult): Promise<void> {
  // Loaded lazily to save the memory of the format libraries.
  const { csvLine } = await import("../../src/events/export/writer.ts");
  process.stdout.write([result.columns, ...textRows(result)].map(csvLine).join(""));
}
