import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { Count, exactly } from "../../src/lib/schema.ts";
import { takeLock } from "../../src/lock.ts";
import { paths } from "../../src/paths.ts";
import { areEventsOutside } from "../../src/people/outside-events.ts";
import { requireEventsUrl } from "../../src/serve/own-data.ts";
import { bringBack, requireTarget, takeOverDirectory } from "../../src/serve/take-over.ts";
import { analysisOf, analysisSettings, waitUntilAllIsLoaded } from "../analysis.ts";
import { withJson } from "../json-shape.ts";
import { print, printJson, run } from "../output.ts";
import { configOf, withSettings } from "../settings.ts";
import { requireInitialised, withPeople } from "../stores.ts";
import { moveToClickHouse } from "./migrate-events.ts";
import { EntriesProgress } from "./rebuild.ts";

const Taken = exactly({
  /** Rows of flags, keys, projects and users. */
  metadata_rows: Count,
  /** Rows of persons, groups and what belongs to them. */
  people_rows: Count,
});

const sharedSettings = [...analysisSettings, "postgres-url", "postgres-password-file"] as const;

export const migrateTo = withJson(withSettings(new Command("migrate-to-cluster"), sharedSettings), Taken)
  .description("Migrate a data directory to a cluster (PostgreSQL and ClickHouse).")
  .addHelpText(
    "after",
    "\nStop the server first. Events are copied to ClickHouse as by `migrate-events`, then all rows to PostgreSQL; both are verified.\n" +
      "An interrupted migration resumes. Afterwards the directory belongs to a cluster node.\n\nExample:\n" +
      "  flagkeep migrate-to-cluster --postgres-url postgres://flagkeep@pg1,pg2/flagkeep --events-url clickhouse://flagkeep@ch:8123/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configOf(options as never);
      const dataDir = requireInitialised(config["data-dir"]);
      requireEventsUrl(config);
      requireTarget(config);
      // Fail before hours of copying.
      takeLock(paths(dataDir).lock, dataDir).release();
      const progress = new EntriesProgress(options.json === true);
      try {
        if (withPeople(options, areEventsOutside)) await analysisOf(options, waitUntilAllIsLoaded);
        else await moveToClickHouse(options, config, progress);
        progress.step("sending rows");
        let most = 0;
        const taken = await takeOverDirectory(config, (left) => {
          most = Math.max(most, left);
          progress.show(most - left, most);
        });
        progress.end();
        if (options.json) return printJson({ metadata_rows: taken.metadata, people_rows: taken.people });
        print(
          `${taken.metadata} rows of flags, keys and projects and ${taken.people} of persons are in PostgreSQL, the same each.`,
        );
        print(
          "Start every front with --postgres-url and --events-url from now on, this directory among them.",
        );
      } finally {
        progress.end();
      }
    }),
  );

const Brought = exactly({
  /** The directory that was made. */
  data_dir: Type.String(),
});

const settingsBack = [
  ...(["data-dir", "events-url", "events-password-file", "postgres-url", "postgres-password-file"] as const),
];

export const migrateFrom = withJson(withSettings(new Command("migrate-from-cluster"), settingsBack), Brought)
  .description("Migrate a cluster back to a data directory of one server.")
  .addHelpText(
    "after",
    "\nStop all nodes first, after everything is loaded. Events stay in ClickHouse; `migrate-events --to duckdb` copies them\n" +
      "back, too.\n\nExample:\n" +
      "  flagkeep migrate-from-cluster --data-dir ./alone --postgres-url postgres://flagkeep@pg1,pg2/flagkeep --events-url clickhouse://flagkeep@ch:8123/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configOf(options as never);
      await bringBack(config);
      if (options.json) return printJson({ data_dir: config["data-dir"] });
      print(`${config["data-dir"]} is ready: start it with --events-url alone.`);
    }),
  );
