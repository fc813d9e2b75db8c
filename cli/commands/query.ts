import { extname, resolve } from "node:path";
import { Command, Option } from "commander";
import { columnsInWords } from "../../src/events/export/columns.ts";
import { checkPlace, intoFile, ontoOutput } from "../../src/events/export/place.ts";
import { QueryResult, rowsDefault, rowsMax } from "../../src/events/query/run-query.ts";
import { InvalidField } from "../../src/lib/errors.ts";
import { analysisOf, analysisSettings, waitUntilAllIsLoaded } from "../analysis.ts";
import { chartLines } from "../charts.ts";
import { withJson } from "../json-shape.ts";
import { fileName, positiveInteger, print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { withProject } from "../stores.ts";

interface QueryOptions {
  project?: number;
  dataDir?: string;
  format: "table" | "json" | "csv" | "parquet";
  output?: string;
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
  .argument("<sql>", "one SELECT statement in DuckDB SQL")
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
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
    `\nViews:\n  events   ${columnsInWords("events")}\n  persons  ${columnsInWords("persons")}\n` +
      `  groups   ${columnsInWords("groups")}\n` +
      "\nExamples:\n  flagkeep query 'SELECT event, count(*) AS times FROM events GROUP BY ALL ORDER BY times DESC'\n" +
      "  flagkeep query \"SELECT properties->>'plan' AS plan, count(*) FROM persons GROUP BY ALL\" --project 1 --format json\n" +
      "  flagkeep query --chart \"SELECT date_trunc('day', timestamp) AS day, count(*) FROM events GROUP BY ALL ORDER BY day\"\n" +
      '  flagkeep query "SELECT * FROM events" -o events.parquet',
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
      const file = fileOf(options, (name) => command.getOptionValueSource(name) === "cli");
      if (file !== undefined) return await download(sql, projectId, file, options);
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
      if (format === "csv") return await printCsv(result);
      printTable(result.columns, textRows(result));
    }),
  );

/** What is written as a file, and where to. */
interface OutFile {
  /** Standard output when left out. */
  path?: string;
  format: "csv" | "parquet";
  limit?: number;
}

/** @throws {InvalidField} the options contradict each other. */
function fileOf(
  { output, format, limit, json, chart }: QueryOptions,
  isGiven: (option: "format" | "limit") => boolean,
): OutFile | undefined {
  const rows = isGiven("limit") ? { limit } : {};
  if (output === undefined) {
    if (format !== "parquet" || json) return undefined;
    if (!process.stdout.isTTY) return { format, ...rows };
    throw new InvalidField("format", "invalid_input", "Parquet is for a file: name it with --output.");
  }
  const named = extname(output).toLowerCase().slice(1);
  if (named !== "csv" && named !== "parquet")
    throw new InvalidField("output", "invalid_input", "A file's name ends in .csv or .parquet.");
  if (json || chart || (isGiven("format") && format !== named)) {
    const message = `A file that ends in .${named} is written as that: leave out --format, --json and --chart.`;
    throw new InvalidField("output", "invalid_input", message);
  }
  return { path: resolve(output), format: named, ...rows };
}

async function download(
  sql: string,
  projectId: number,
  { path, ...how }: OutFile,
  options: QueryOptions,
): Promise<void> {
  if (path !== undefined) checkPlace(path);
  await analysisOf(
    options,
    async (appliance) => {
      if (appliance.isOwn) await waitUntilAllIsLoaded(appliance);
      const write = async (sink: typeof ontoOutput) => {
        for await (const bytes of await appliance.download({ projectId, sql, ...how })) await sink(bytes);
      };
      await (path === undefined ? write(ontoOutput) : intoFile(path, write));
    },
    // What is on standard output cannot be taken back.
    { mayStartAgain: path !== undefined },
  );
  if (path !== undefined) process.stderr.write(`The rows are in ${path}.\n`);
}

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

async function printCsv(result: QueryResult): Promise<void> {
  // Loaded late: the formats' libraries would be in memory for nothing.
  const { csvLine } = await import("../../src/events/export/writer.ts");
  process.stdout.write([result.columns, ...textRows(result)].map(csvLine).join(""));
}
