import { Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { Postgres } from "../../src/cluster/connection.ts";
import { type PersonsLayout, readLayout } from "../../src/cluster/layout.ts";
import {
  assertCluster,
  type ClusterState,
  pauseLoading,
  pauseSecondsMax,
  readClusterState,
  resumeLoading,
} from "../../src/cluster/loading.ts";
import { describeHeldBack } from "../../src/cluster/safe-number.ts";
import { postgresAddress } from "../../src/config/secrets.ts";
import { AppError } from "../../src/lib/errors.ts";
import { DateTime, NonNegativeInt, nullable, strictObject } from "../../src/lib/schema.ts";
import { redactPostgresUrl } from "../../src/lib/store-urls.ts";
import { HeldBackBy } from "../../src/operate/status-schema.ts";
import { convertPersons } from "../../src/serve/persons-conversion.ts";
import { formatBytes, parseDuration, print, printJson, printTable, run, withJson } from "../output.ts";
import { configFromOptions, withSettings, withUnusedDataDir } from "../settings.ts";

const settings = ["postgres-url", "postgres-password-file"] as const;

class NoPostgresUrlError extends AppError {
  readonly code = "no_postgres_url";
  override readonly hint = "Set --postgres-url or FLAGKEEP_POSTGRES_URL.";
}

/** Runs work on the cluster named by the options. @throws {NoPostgresUrlError} */
async function withCluster<Result>(
  options: object,
  work: (postgres: Postgres) => Promise<Result>,
): Promise<Result> {
  const address = postgresAddress(configFromOptions(options as never), process.env);
  if (address === null) throw new NoPostgresUrlError("The address of PostgreSQL is missing.");
  const postgres = new Postgres(address, { connections: 1, name: "command" });
  try {
    await assertCluster(postgres);
    return await work(postgres);
  } finally {
    await postgres.close();
  }
}

const Layout = Type.Union([Type.Literal("replica"), Type.Literal("rows")]);

const State = strictObject({
  /** The address of the PostgreSQL database, without its password. */
  postgres: Type.String(),
  /** Every node has a replica of all persons, or they are rows in PostgreSQL only. */
  persons: Layout,
  nodes: Type.Array(
    strictObject({
      name: Type.String(),
      version: Type.String(),
      seconds_since_heartbeat: NonNegativeInt,
      loads_events: Type.Boolean(),
    }),
  ),
  /** Null: loading is not paused. */
  loading_paused_until: nullable(DateTime),
  loading_held_back_by: nullable(HeldBackBy),
  /** Empty if one node loads all events. */
  partitions: Type.Array(
    strictObject({
      /** `project_id % 64` of its projects. */
      partition: NonNegativeInt,
      /** The node that loads it; null: none. */
      node: nullable(Type.String()),
      /** How often the node has changed. */
      epoch: NonNegativeInt,
      seconds_since_beat: nullable(NonNegativeInt),
      /** Entries of the journal, of any partition, after its position in each lane. */
      waiting_realtime: NonNegativeInt,
      waiting_historical: NonNegativeInt,
      /** The lane of a batch whose persons are stored, and possibly not all of its events. */
      open_batch: nullable(Type.String()),
    }),
  ),
  lanes: Type.Array(
    strictObject({
      lane: Type.String(),
      /** The last acknowledged entry. */
      last_seq: NonNegativeInt,
      /** Acknowledged entries that are not loaded, and their compressed bytes. */
      waiting_entries: NonNegativeInt,
      waiting_bytes: NonNegativeInt,
    }),
  ),
  stores: Type.Array(
    strictObject({
      name: Type.String(),
      /** The last commit, and up to which commit rows are compacted and copied to ClickHouse (persons only). */
      revision: NonNegativeInt,
      compacted_revision: NonNegativeInt,
      copied_revision: nullable(NonNegativeInt),
    }),
  ),
});

/** One row per node; `--json` shows every partition. */
function showPartitions(partitions: ClusterState["partitions"]): void {
  if (partitions.length === 0) return;
  const highest = (numbers: number[]) => String(Math.max(...numbers));
  const rows = [...Map.groupBy(partitions, ({ node }) => node)].map(([node, held]) => {
    const beat = held[0]!.secondsSinceBeat;
    return [
      String(held.length),
      node ?? "NONE",
      node === null || beat === null ? "" : `${beat} s`,
      highest(held.map(({ waitingRealtime }) => waitingRealtime)),
      highest(held.map(({ waitingHistorical }) => waitingHistorical)),
      String(held.filter(({ openBatch }) => openBatch !== null).length),
    ];
  });
  print();
  printTable(
    ["partitions", "loaded by", "beat", "waiting realtime", "waiting historical", "open batches"],
    rows,
  );
}

function show(state: ClusterState, { address, layout }: { address: string; layout: PersonsLayout }): void {
  const { nodes, pausedUntil, heldBack, partitions, lanes, stores } = state;
  print(`PostgreSQL  ${address}`);
  print(`Persons     ${layout === "rows" ? "in PostgreSQL only" : "replicated to every node"}`);
  for (const { name, version, secondsSinceHeartbeat: seconds, isLoading } of nodes)
    print(`Node        ${name} (${version}, heartbeat ${seconds} s ago${isLoading ? ", loads events" : ""})`);
  if (nodes.length === 0) print("Nodes       none running");
  if (pausedUntil !== null) print(`Loading     paused until ${pausedUntil.toISOString()}`);
  else if (nodes.length > 0 && !nodes.some(({ isLoading }) => isLoading))
    print("Loading     NO NODE loads events");
  if (heldBack !== null) print(`            ${describeHeldBack(heldBack)}`);
  print();
  printTable(
    ["lane", "last number", "waiting", "bytes"],
    lanes.map((lane) => [
      lane.lane,
      String(lane.lastSeq),
      String(lane.waitingEntries),
      formatBytes(lane.waitingBytes),
    ]),
  );
  showPartitions(partitions);
  print();
  printTable(
    ["store", "commits", "compacted", "copied to ClickHouse"],
    stores.map(({ name, revision, compacted, copied }) => [
      name,
      String(revision),
      String(compacted),
      copied === null ? "" : String(copied),
    ]),
  );
}

const command = (name: string) => withUnusedDataDir(withSettings(new Command(name), settings));

const status = withJson(command("status"), State, "print the state as JSON")
  .description("Show the nodes of a cluster, which of them load events, and the lag.")
  .addHelpText(
    "after",
    "\nRuns on any machine that reaches PostgreSQL.\n\nExample:\n  flagkeep cluster status --postgres-url postgres://flagkeep@pg1,pg2/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) =>
      withCluster(options, async (postgres) => {
        const state = await readClusterState(postgres);
        const { persons: layout } = await readLayout(postgres);
        const address = redactPostgresUrl(postgres.address);
        if (!options.json) return show(state, { address, layout });
        printJson({
          postgres: address,
          persons: layout,
          nodes: state.nodes.map(({ name, version, secondsSinceHeartbeat, isLoading }) => ({
            name,
            version,
            seconds_since_heartbeat: secondsSinceHeartbeat,
            loads_events: isLoading,
          })),
          loading_paused_until: state.pausedUntil?.toISOString() ?? null,
          loading_held_back_by: state.heldBack,
          partitions: state.partitions.map((partition) => ({
            partition: partition.id,
            node: partition.node,
            epoch: partition.epoch,
            seconds_since_beat: partition.secondsSinceBeat,
            waiting_realtime: partition.waitingRealtime,
            waiting_historical: partition.waitingHistorical,
            open_batch: partition.openBatch,
          })),
          lanes: state.lanes.map(({ lane, lastSeq, waitingEntries, waitingBytes }) => ({
            lane,
            last_seq: lastSeq,
            waiting_entries: waitingEntries,
            waiting_bytes: waitingBytes,
          })),
          stores: state.stores.map(({ name, revision, compacted, copied }) => ({
            name,
            revision,
            compacted_revision: compacted,
            copied_revision: copied,
          })),
        });
      }),
    ),
  );

/** @throws {InvalidArgumentError} */
function parsePause(text: string): number {
  const seconds = parseDuration(text);
  if (seconds < 1 || seconds > pauseSecondsMax)
    throw new InvalidArgumentError("Expected a duration from 1s to 24h, for example 10m.");
  return seconds;
}

const Paused = strictObject({ loading_paused_until: DateTime });
const pause = withJson(command("pause-loading"), Paused)
  .description("Pause loading on all nodes, for a backup of PostgreSQL and ClickHouse.")
  .requiredOption("--for <time>", "end of the pause without `resume`, from 1s to 24h", parsePause)
  .addHelpText(
    "after",
    "\nCapture and flags continue; new events wait in PostgreSQL. Returns when no node inserts into ClickHouse any more.\n\n" +
      "Example:\n  flagkeep cluster pause-loading --for 10m --postgres-url postgres://flagkeep@pg1,pg2/flagkeep",
  )
  .action(
    run(async (options: { json?: true; for: number }) =>
      withCluster(options, async (postgres) => {
        const until = (await pauseLoading(postgres, options.for)).toISOString();
        if (options.json) return printJson({ loading_paused_until: until });
        print(`Loading is paused until ${until}; \`flagkeep cluster resume\` ends the pause.`);
      }),
    ),
  );

const Resumed = strictObject({ resumed: Type.Literal(true) });
const resume = withJson(command("resume"), Resumed)
  .description("End a pause of loading.")
  .addHelpText(
    "after",
    "\nExample:\n  flagkeep cluster resume --postgres-url postgres://flagkeep@pg1,pg2/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) =>
      withCluster(options, async (postgres) => {
        await resumeLoading(postgres);
        if (options.json) return printJson({ resumed: true });
        print("Loading resumes within a few seconds.");
      }),
    ),
  );

/** Interval of printing the number of copied rows. */
const printEveryMs = 5_000;

const Converted = strictObject({
  /** How persons are stored now. */
  persons: Layout,
  /** False: they were already. */
  is_changed: Type.Boolean(),
});
const conversionSettings = ["data-dir", ...settings] as const;
const convert = withJson(withSettings(new Command("convert-persons"), conversionSettings), Converted)
  .description("Convert the persons of a stopped cluster to rows in PostgreSQL, or back to replicas.")
  .addOption(
    new Option("--to <layout>", "target: rows in PostgreSQL only, or a replica on every node")
      .choices(["rows", "replica"])
      .makeOptionMandatory(),
  )
  .addHelpText(
    "after",
    "\nStop all nodes first. --data-dir is that of a stopped node, or an empty folder, and needs space for all persons.\n" +
      "Both copies are compared by project. Run an interrupted conversion again: it continues.\n\nExample:\n" +
      "  flagkeep cluster convert-persons --to rows --data-dir /var/lib/flagkeep --postgres-url postgres://flagkeep@pg1,pg2/flagkeep",
  )
  .action(
    run(async (options: { json?: true; to: PersonsLayout }) => {
      const config = configFromOptions(options as never);
      const address = postgresAddress(config, process.env);
      if (address === null) throw new NoPostgresUrlError("The address of PostgreSQL is missing.");
      const say = (text: string) => void (options.json || process.stderr.write(`${text}\n`));
      let count = 0;
      let printedAt = performance.now();
      const isChanged = await convertPersons(address, {
        dataDir: config["data-dir"],
        to: options.to,
        onStep: say,
        onRows: (rows) => {
          count += rows;
          if (performance.now() - printedAt < printEveryMs) return;
          printedAt = performance.now();
          say(`${count} rows copied`);
        },
      });
      if (options.json) return printJson({ persons: options.to, is_changed: isChanged });
      const where = options.to === "rows" ? "PostgreSQL only" : "replicas on every node";
      print(isChanged ? `Persons are stored in ${where} now. Start the nodes.` : "Nothing to convert.");
    }),
  );

export const cluster = new Command("cluster")
  .description("Show the state of a cluster, pause loading for backups, and convert persons.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep cluster status\n  flagkeep cluster pause-loading --for 10m\n  flagkeep cluster resume",
  )
  .addCommand(status)
  .addCommand(pause)
  .addCommand(resume)
  .addCommand(convert);
