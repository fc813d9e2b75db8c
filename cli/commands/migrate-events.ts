import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { eventsAddress } from "../../src/config/secrets.ts";
import { setNativeFolder } from "../../src/events/duckdb/native-folder.ts";
import { lanes } from "../../src/journal/segment.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { parseClickHouseUrl } from "../../src/lib/store-urls.ts";
import { DirectoryInUseError } from "../../src/lock.ts";
import {
  clickhouseTarget,
  duckdbTarget,
  type MigrationTarget,
  migrateEvents,
} from "../../src/operate/migrate-events.ts";
import { paths } from "../../src/paths.ts";
import { engineSessionSettings, openEngineSession, waitForIngestion } from "../engine-session.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized } from "../stores.ts";
import { EntriesProgress } from "./rebuild.ts";

const Migrated = strictObject({
  /** Events in both stores, compared byte by byte. */
  events: NonNegativeInt,
  /** True: the other store is used from the next start on. False: run the command again while Flagkeep is stopped. */
  finished: Type.Boolean(),
});

export const migrateEventsCommand = withJson(
  withSettings(new Command("migrate-events"), engineSessionSettings),
  Migrated,
)
  .description("Migrate all events to ClickHouse or back to DuckDB; most of them while the server runs.")
  .requiredOption("--to <store>", "target store: clickhouse://user:password@host:8123/database, or duckdb")
  .addHelpText(
    "after",
    "\nRun it once while the server runs to copy most events, then stop the server and run it again to copy\n" +
      "the rest, compares both stores and switches over. An interrupted migration resumes. The password may be set in\n" +
      "FLAGKEEP_EVENTS_PASSWORD or in --events-password-file.\n\n" +
      "Examples:\n  flagkeep migrate-events --to clickhouse://flagkeep@ch.internal:8123/flagkeep\n" +
      "  flagkeep migrate-events --to duckdb --events-url clickhouse://flagkeep@ch.internal:8123/flagkeep",
  )
  .action(
    run(async (options: { to: string; json?: true }) => {
      const config = configFromOptions(options as never);
      const dataDir = assertInitialized(config["data-dir"]);
      setNativeFolder(paths(dataDir).native);
      const progress = new EntriesProgress(options.json === true);
      let target: MigrationTarget | undefined;
      try {
        const open = async () => {
          target ??= await getTarget(options.to, config);
          return target;
        };
        const { moved, isOwn } = await moveTo(open, options, progress);
        if (isOwn) await target!.finish();
        else await target!.close();
        if (options.json) printJson({ events: moved.events, finished: isOwn });
        else show(moved, isOwn, options.to);
      } catch (error) {
        await target?.close().catch(() => undefined);
        throw error;
      }
    }),
  );

/**
 * Migrates all events to the configured ClickHouse, which is used from then on.
 *
 * @throws {DirectoryInUseError} Flagkeep runs.
 */
export async function moveToClickHouse(
  options: object,
  config: ReturnType<typeof configFromOptions>,
  progress: EntriesProgress,
): Promise<void> {
  let target: MigrationTarget | undefined;
  try {
    const open = async () => {
      target ??= await clickhouseTarget(config["data-dir"], eventsAddress(config, process.env)!);
      return target;
    };
    // The source is the local event store.
    const { isOwn } = await moveTo(open, { ...options, eventsUrl: "" }, progress);
    if (isOwn) await target!.finish();
    else throw new DirectoryInUseError(config["data-dir"], "");
  } finally {
    await target?.close().catch(() => undefined);
  }
}

async function moveTo(open: () => Promise<MigrationTarget>, options: object, progress: EntriesProgress) {
  return await openEngineSession(options, async (server) => {
    const target = await open();
    await waitForIngestion(server);
    const source = {
      loadedSeqs: () => server.ask("loadedSeqs", {}),
      page: (request: Parameters<typeof server.ask<"movePage">>[1]) => server.ask("movePage", request),
      sums: (until: Parameters<typeof server.ask<"eventSums">>[1]) => server.ask("eventSums", until),
    };
    progress.step("copying events");
    const moved = await migrateEvents(source, target, (done, total) => progress.show(done, total));
    return { moved, isOwn: server.isOwn };
  }).finally(() => progress.end());
}

async function getTarget(to: string, config: ReturnType<typeof configFromOptions>): Promise<MigrationTarget> {
  if (to === "duckdb") {
    const settings = { memoryLimitBytes: config["duckdb-memory-limit"], threads: config["duckdb-threads"] };
    return await duckdbTarget(config["data-dir"], settings);
  }
  const named = parseClickHouseUrl(to);
  if (named === undefined) {
    const message = "Expected duckdb or a URL, for example clickhouse://user@host:8123/database.";
    throw new InvalidFieldError("to", "invalid_input", message);
  }
  const address = eventsAddress({ ...config, "events-url": named }, process.env);
  return await clickhouseTarget(config["data-dir"], address!);
}

function show(
  { events, seqs }: Awaited<ReturnType<typeof migrateEvents>>,
  isFinished: boolean,
  to: string,
): void {
  const entries = lanes.map((lane) => `${seqs[lane]} ${lane}`).join(", ");
  print(`${events} events are in both stores and identical (entries: ${entries}).`);
  if (!isFinished)
    print("Stop Flagkeep and run the command again: it copies newer events and switches over.");
  else if (to === "duckdb") print("They are in events.duckdb again: start Flagkeep without --events-url.");
  else
    print(
      "Start Flagkeep with --events-url from now on; delete events.duckdb.moved after a successful start.",
    );
}
