import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import { EngineClient } from "../../src/engine/client.ts";
import { SlowQuery } from "../../src/engine/query-types.ts";
import { AppError } from "../../src/lib/errors.ts";
import { strictObject } from "../../src/lib/schema.ts";
import { isInUse } from "../../src/lock.ts";
import { Status } from "../../src/operate/status-schema.ts";
import { paths } from "../../src/paths.ts";
import { callControl } from "../../src/rpc/control.ts";
import { spark } from "../charts.ts";
import {
  exitDone,
  formatBytes,
  formatDuration,
  positiveInteger,
  printJson,
  run,
  tableLines,
  withJson,
} from "../output.ts";
import { getDataDir, withSettings } from "../settings.ts";
import { assertInitialized, resolveProjects, withMetadata } from "../stores.ts";

class NotRunningError extends AppError {
  readonly code = "not_running";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

const lastEventsMax = 8;
const slowQueriesShown = 5;
const retainedRates = 60;
const intervalDefault = 2;

/** One snapshot of everything. */
const Frame = strictObject({
  status: Status,
  /** Of the last hour, slowest first; empty while the engine is down. */
  slow_queries: Type.Array(SlowQuery),
  /** Of the last ten minutes, newest first. */
  last_events: Type.Array(
    strictObject({
      project_id: Type.Integer(),
      received_at: Type.String(),
      event: Type.String(),
      distinct_id: Type.String(),
    }),
  ),
});
type Frame = Static<typeof Frame>;

interface TopOptions {
  project?: number;
  interval: number;
  count?: number;
  json?: true;
}

export const top = withJson(
  withSettings(new Command("top"), ["data-dir"]),
  Frame,
  "print one sample as JSON and exit",
)
  .description(
    "Watch a running server: rates, lag, engine, disk, slowest queries, last events. Quit with q or Ctrl-C.",
  )
  .option("--project <id>", "only events of this project", positiveInteger)
  .option("--interval <seconds>", "refresh interval in seconds", seconds, intervalDefault)
  .option("--count <looks>", "number of refreshes before exiting", positiveInteger)
  .addHelpText("after", "\nExamples:\n  flagkeep top\n  flagkeep top --count 1 | head -20")
  .action(
    run(async (options: TopOptions) => {
      const dataDir = assertInitialized(getDataDir(options as never));
      const projectIds = withMetadata(options, (metadata) =>
        resolveProjects(metadata, options.project).map(({ id }) => id),
      );
      // Socket names are relative.
      process.chdir(dataDir);
      if (options.json) return printJson(await readFrame(dataDir, projectIds));
      await watch(() => readFrame(dataDir, projectIds), options);
      process.exit(exitDone);
    }),
  );

/** @throws {NotRunningError} */
async function readFrame(dataDir: string, projectIds: readonly number[]): Promise<Frame> {
  const status = await callControl<Status>(dataDir, "status");
  if (status === undefined) {
    throw isInUse(paths(dataDir).lock, dataDir)
      ? new NotRunningError(
          `The process that uses ${dataDir} does not respond.`,
          "See its log; then try again.",
        )
      : new NotRunningError(
          `No server runs on ${dataDir}.`,
          "Start it with `flagkeep serve`; `flagkeep status` shows the data of a stopped server.",
        );
  }
  const engine = new EngineClient();
  const [slow, events] = await Promise.all([
    engine.ask("slowQueries", {}).catch(() => []),
    Promise.all(projectIds.map((projectId) => lastEvents(engine, projectId).catch(() => []))),
  ]);
  return {
    status,
    slow_queries: slow,
    last_events: events
      .flat()
      .sort((a, b) => (a.received_at < b.received_at ? 1 : -1))
      .slice(0, lastEventsMax),
  };
}

async function lastEvents(engine: EngineClient, projectId: number): Promise<Frame["last_events"]> {
  const sql =
    "SELECT received_at, event, distinct_id FROM events WHERE received_at > now() - INTERVAL 10 MINUTE " +
    `ORDER BY received_at DESC LIMIT ${lastEventsMax}`;
  const { rows } = await engine.ask("query", { projectId, sql, limit: lastEventsMax });
  return rows.map((row) => ({
    project_id: projectId,
    received_at: String(row.received_at),
    event: String(row.event),
    distinct_id: String(row.distinct_id),
  }));
}

/** Draws repeatedly: in place on a terminal, appended elsewhere. */
async function watch(see: () => Promise<Frame>, { interval, count }: TopOptions): Promise<void> {
  const isTerminal = process.stdout.isTTY === true;
  const leaving = isTerminal ? prepareTerminal() : new Promise<void>(() => {});
  const rates: number[] = [];
  try {
    for (let looks = 1; ; looks++) {
      const frame = await see();
      rates.push(frame.status.events_per_second);
      if (rates.length > retainedRates) rates.shift();
      const { columns, rows } = process.stdout;
      const lines = frameLines(frame, rates, isTerminal ? columns : Number.POSITIVE_INFINITY);
      const shown = isTerminal ? lines.slice(0, rows - 1).map((line) => line.slice(0, columns)) : lines;
      process.stdout.write(
        `${isTerminal ? "\x1b[H\x1b[J" : ""}${shown.join("\n")}\n${isTerminal ? "" : "\n"}`,
      );
      if (looks === count) return;
      const isOver = await Promise.race([
        leaving.then(() => true),
        Bun.sleep(interval * 1_000).then(() => false),
      ]);
      if (isOver) return;
    }
  } finally {
    if (isTerminal) restoreTerminal();
  }
}

/** The alternate screen without a cursor; resolves when the user quits. */
function prepareTerminal(): Promise<void> {
  process.stdout.write("\x1b[?1049h\x1b[?25l");
  process.once("exit", restoreTerminal);
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.on("data", (keys: Buffer) => {
      // q, Ctrl-C, Escape
      if ([0x71, 0x03, 0x1b].includes(keys[0]!)) resolve();
    });
  });
}

function restoreTerminal(): void {
  process.off("exit", restoreTerminal);
  process.stdout.write("\x1b[?25h\x1b[?1049l");
}

function frameLines(
  { status, slow_queries, last_events }: Frame,
  rates: number[],
  columns: number,
): string[] {
  const { up, restarts, rebuilding } = status.engine;
  const { disk } = status;
  const inAll = Object.values(disk).reduce((sum, bytes) => sum + bytes, 0);
  const rebuildingText = rebuilding === null ? "" : `, rebuilding: ${rebuilding.done} of ${rebuilding.total}`;
  return [
    `flagkeep ${status.version}  ${status.state}, for ${formatDuration(status.uptime_seconds ?? 0)}  ${status.url ?? ""}`,
    `Events   ${status.events_per_second} per second  ${spark(rates)}`,
    ...status.journal.map(
      ({ lane, last_seq, lag_entries, queued_bytes }) =>
        `Lane     ${lane}: ${last_seq} accepted, ${lag_entries} waiting to load, ${formatBytes(queued_bytes)} queued for fsync`,
    ),
    `Engine   ${up ? "up" : "down"}, restarted ${restarts} times${rebuildingText}`,
    `Disk     ${formatBytes(inAll)}: events ${formatBytes(disk.events_bytes)}, persons ${formatBytes(disk.people_bytes)}, ` +
      `journal ${formatBytes(disk.journal_bytes)}, archive ${formatBytes(disk.archive_bytes)}`,
    ...(status.spikes.length === 0 ? [] : [`Spikes   ${status.spikes.length} ongoing`]),
    "",
    "Slowest queries of the last hour",
    ...tableLines(
      ["ms", "query", "project", "at", "statement"],
      slow_queries
        .slice(0, slowQueriesShown)
        .map(({ ms, query, project_id, at, sql }) => [
          String(ms),
          query,
          project_id === null ? "" : String(project_id),
          at.slice(11, 19),
          sql ?? "",
        ]),
      Math.max(columns, 200),
    ),
    "",
    "Last events",
    ...tableLines(
      ["received", "project", "event", "distinct id"],
      last_events.map(({ received_at, project_id, event, distinct_id }) => [
        received_at.slice(11, 19),
        String(project_id),
        event.slice(0, 40),
        distinct_id.slice(0, 60),
      ]),
      Math.max(columns, 200),
    ),
  ];
}

function seconds(text: string): number {
  const value = Number(text);
  if (!(value >= 0.2 && value <= 3_600)) {
    throw new InvalidArgumentError("Expected a number of seconds from 0.2 to 3600.");
  }
  return value;
}
