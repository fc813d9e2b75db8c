import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { eventsAddress } from "../../src/config/secrets.ts";
import { setNativeFolder } from "../../src/events/duckdb/native-folder.ts";
import { lanes } from "../../src/journal/segment.ts";
import { parseClickHouseUrl } from "../../src/lib/clickhouse-address.ts";
import { InvalidField } from "../../src/lib/errors.ts";
import { Count, exactly } from "../../src/lib/schema.ts";
import { DirectoryInUse } from "../../src/lock.ts";
import {
  clickhouseTarget,
  duckdbTarget,
  type MoveTarget,
  moveEvents,
} from "../../src/operate/move-events.ts";
import { paths } from "../../src/paths.ts";
import { analysisOf, analysisSettings, waitUntilAllIsLoaded } from "../analysis.ts";
import { withJson } from "../json-shape.ts";
import { print, printJson, run } from "../output.ts";
import { configOf, withSettings } from "../settings.ts";
import { requireInitialised } from "../stores.ts";
import { EntriesProgress } from "./rebuild.ts";

const Migrated = exactly({
  /** Events that are in both stores, compared byte by byte. */
  events: Count,
  /** The other store is in use from the next start on; else the command has to be run again without a running Flagkeep. */
  finished: Type.Boolean(),
});

export const migrateEvents = withJson(withSettings(new Command("migrate-events"), analysisSettings), Migrated)
  .description("Migrate all events to ClickHouse or back to DuckDB; most of them while the server runs.")
  .requiredOption("--to <store>", "target store: clickhouse://user:password@host:8123/database, or duckdb")
  .addHelpText(
    "after",
    "\nRun it once while the server runs to copy most events, then stop the server and run it again to copy\n" +
      "the rest, compares both stores and switches over. Broken off it goes on where it was. The password may be given as\n" +
      "FLAGKEEP_EVENTS_PASSWORD or by --events-password-file.\n\n" +
      "Examples:\n  flagkeep migrate-events --to clickhouse://flagkeep@ch.internal:8123/flagkeep\n" +
      "  flagkeep migrate-events --to duckdb --events-url clickhouse://flagkeep@ch.internal:8123/flagkeep",
  )
  .action(
    run(async (options: { to: string; json?: true }) => {
      const config = configOf(options as never);
      const dataDir = requireInitialised(config["data-dir"]);
      setNativeFolder(paths(dataDir).native);
      const progress = new EntriesProgress(options.json === true);
      let target: MoveTarget | undefined;
      try {
        const open = async () => {
          target ??= await targetOf(options.to, config);
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
 * Moves all events to the ClickHouse of the settings, and uses it from then on.
 *
 * @throws {DirectoryInUse} Flagkeep runs.
 */
export async function moveToClickHouse(
  options: object,
  config: ReturnType<typeof configOf>,
  progress: EntriesProgress,
): Promise<void> {
  let target: MoveTarget | undefined;
  try {
    const open = async () => {
      target ??= await clickhouseTarget(config["data-dir"], eventsAddress(config, process.env)!);
      return target;
    };
    // The events are read where they are.
    const { isOwn } = await moveTo(open, { ...options, eventsUrl: "" }, progress);
    if (isOwn) await target!.finish();
    else throw new DirectoryInUse(config["data-dir"], "");
  } finally {
    await target?.close().catch(() => undefined);
  }
}

async function moveTo(open: () => Promise<MoveTarget>, options: object, progress: EntriesProgress) {
  return await analysisOf(options, async (appliance) => {
    const target = await open();
    await waitUntilAllIsLoaded(appliance);
    const source = {
      loadedSeqs: () => appliance.ask("loadedSeqs", {}),
      page: (request: Parameters<typeof appliance.ask<"movePage">>[1]) => appliance.ask("movePage", request),
      sums: (until: Parameters<typeof appliance.ask<"eventSums">>[1]) => appliance.ask("eventSums", until),
    };
    progress.step("copying events");
    const moved = await moveEvents(source, target, (done, total) => progress.show(done, total));
    return { moved, isOwn: appliance.isOwn };
  }).finally(() => progress.end());
}

async function targetOf(to: string, config: ReturnType<typeof configOf>): Promise<MoveTarget> {
  if (to === "duckdb") {
    const settings = { memoryLimitBytes: config["duckdb-memory-limit"], threads: config["duckdb-threads"] };
    return await duckdbTarget(config["data-dir"], settings);
  }
  const named = parseClickHouseUrl(to);
  if (named === undefined) {
    const message = "It must be duckdb, or an address such as clickhouse://user@host:8123/database.";
    throw new InvalidField("to", "invalid_input", message);
  }
  const address = eventsAddress({ ...config, "events-url": named }, process.env);
  return await clickhouseTarget(config["data-dir"], address!);
}

function show(
  { events, seqs }: Awaited<ReturnType<typeof moveEvents>>,
  isFinished: boolean,
  to: string,
): void {
  const entries = lanes.map((lane) => `${seqs[lane]} ${lane}`).join(", ");
  print(`${events} events are in both stores, the same byte by byte (entries: ${entries}).`);
  if (!isFinished)
    print("Stop Flagkeep and run the command again: it copies what has come since and switches over.");
  else if (to === "duckdb") print("They are in events.duckdb again: start Flagkeep without --events-url.");
  else print("Start Flagkeep with --events-url from now on; events.duckdb.moved may go when all is well.");
}
