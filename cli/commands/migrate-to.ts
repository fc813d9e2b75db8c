import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { acquireLock } from "../../src/lock.ts";
import { paths } from "../../src/paths.ts";
import { hasExternalEvents } from "../../src/persons/external-events.ts";
import { assertTarget, migrateFromCluster, migrateToCluster } from "../../src/serve/cluster-migration";
import { assertEventsUrl } from "../../src/serve/local-data.ts";
import { engineSessionSettings, openEngineSession, waitForIngestion } from "../engine-session.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized, withPeople } from "../stores.ts";
import { moveToClickHouse } from "./migrate-events.ts";
import { EntriesProgress } from "./rebuild.ts";

const MigrationJson = strictObject({
  /** Rows of flags, keys, projects and users. */
  metadata_rows: NonNegativeInt,
  /** Rows of persons, groups and related tables. */
  people_rows: NonNegativeInt,
});

const clusterSettings = [
  ...engineSessionSettings,
  "postgres-url",
  "postgres-password-file",
  "cluster-persons",
  "cluster-loading",
] as const;

export const migrateTo = withJson(
  withSettings(new Command("migrate-to-cluster"), clusterSettings),
  MigrationJson,
)
  .description("Migrate a data directory to a cluster (PostgreSQL and ClickHouse).")
  .addHelpText(
    "after",
    "\nStop the server first. Events are copied to ClickHouse as by `migrate-events`, then all rows to PostgreSQL; both are verified.\n" +
      "An interrupted migration resumes. Afterwards the directory belongs to a cluster node.\n\nExample:\n" +
      "  flagkeep migrate-to-cluster --postgres-url postgres://flagkeep@pg1,pg2/flagkeep --events-url clickhouse://flagkeep@ch:8123/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configFromOptions(options as never);
      const dataDir = assertInitialized(config["data-dir"]);
      assertEventsUrl(config);
      assertTarget(config);
      // Fail before hours of copying.
      acquireLock(paths(dataDir).lock, dataDir).release();
      const progress = new EntriesProgress(options.json === true);
      try {
        if (withPeople(options, hasExternalEvents)) await openEngineSession(options, waitForIngestion);
        else await moveToClickHouse(options, config, progress);
        progress.step("sending rows");
        let most = 0;
        const imported = await migrateToCluster(config, (left) => {
          most = Math.max(most, left);
          progress.show(most - left, most);
        });
        progress.end();
        if (options.json)
          return printJson({ metadata_rows: imported.metadata, people_rows: imported.people });
        print(
          `PostgreSQL contains ${imported.metadata} rows of flags, keys and projects and ${imported.people} of persons, all compared.`,
        );
        print("Start every node, including this one, with --postgres-url and --events-url from now on.");
      } finally {
        progress.end();
      }
    }),
  );

const DirectoryJson = strictObject({
  /** The created directory. */
  data_dir: Type.String(),
});

const settingsBack = [
  "data-dir",
  "events-url",
  "events-password-file",
  "postgres-url",
  "postgres-password-file",
] as const;

export const migrateFrom = withJson(
  withSettings(new Command("migrate-from-cluster"), settingsBack),
  DirectoryJson,
)
  .description("Migrate a cluster back to a data directory of one server.")
  .addHelpText(
    "after",
    "\nStop all nodes first, after everything is loaded. Events stay in ClickHouse; run `migrate-events --to duckdb`\n" +
      "to copy them back.\n\nExample:\n" +
      "  flagkeep migrate-from-cluster --data-dir ./alone --postgres-url postgres://flagkeep@pg1,pg2/flagkeep --events-url clickhouse://flagkeep@ch:8123/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configFromOptions(options as never);
      await migrateFromCluster(config);
      if (options.json) return printJson({ data_dir: config["data-dir"] });
      print(`${config["data-dir"]} is ready: start it with --events-url only.`);
    }),
  );
