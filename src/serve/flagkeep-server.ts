/**
 * The server process: opens its stores, starts the engine and the listeners, and stops them in order.
 *
 * `app.ts` wires the routes, `cluster-node.ts` handles what the nodes of a cluster share, and `engine/process.ts`
 * wires the modules of the engine.
 */

import { type Metadata, openMetadata } from "../accounts/metadata.ts";
import { knownVersions } from "../backup/schema-versions.ts";
import { cleanUpWorkFolder } from "../backup/work-folder.ts";
import { countPending } from "../cohorts/cohort-calculation.ts";
import { endInterruptedCalculations, type InterruptedCohort } from "../cohorts/cohorts.ts";
import { eventsAddress, metricsToken } from "../config/secrets.ts";
import type { Config } from "../config/settings.ts";
import { EngineClient } from "../engine/client.ts";
import type { Report } from "../engine/messages.ts";
import { type EngineDataRejectedError, EngineSupervisor } from "../engine/supervisor.ts";
import { LiveEvents } from "../events/api/live.ts";
import { OverrideWriter } from "../flags/evaluation-context/override-writer.ts";
import { FlagSets, groupTypesFrom } from "../flags/store/flag-sets.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import { payloadCipher } from "../flags/store/payload-cipher.ts";
import { openPayloadKey } from "../flags/store/payload-key.ts";
import type { App } from "../http/app.ts";
import { importRoutes } from "../import/control-route.ts";
import { ImportUploads } from "../import/uploads.ts";
import { Journal, type JournalPort, type PreparedSink } from "../journal/journal.ts";
import { describeSkipped, skippedEntries } from "../journal/skipped-entries.ts";
import { engineMemory, memoryBudget, serverPersonCacheBytes } from "../lib/memory-budget.ts";
import { type SecretCipher, secretCipher } from "../lib/sealed-text.ts";
import type { Lock } from "../lock.ts";
import type { Log } from "../log.ts";
import { EngineReportHandler } from "../operate/engine-reports.ts";
import { Metrics } from "../operate/metrics.ts";
import { RequestLog } from "../operate/request-log.ts";
import { Retention } from "../operate/retention.ts";
import { SqliteCheck } from "../operate/sqlite-check.ts";
import { SqliteCorruption } from "../operate/sqlite-corruption.ts";
import type { Traces } from "../operate/traces.ts";
import { UnknownKeys } from "../operate/unknown-keys.ts";
import { Webhooks } from "../operate/webhooks/webhooks.ts";
import { paths } from "../paths.ts";
import { SqliteIngestionReader } from "../persons/ingestion-reader.ts";
import type { PersonsDb } from "../persons/open.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { SqlitePersonReader } from "../persons/sqlite-person-reader.ts";
import { controlSocketName } from "../rpc/control.ts";
import { RpcServer } from "../rpc/server.ts";
import { createServerApp } from "./app.ts";
import type { ClusterNode } from "./cluster-node";
import { consoleBase } from "./console-base.ts";
import { EngineAdapters } from "./engine-ports.ts";
import { instanceDeps } from "./instance.ts";
import { Listeners, type WorkerDeps, workerDeps } from "./listeners.ts";
import { assertLocalData } from "./local-data.ts";
import { openJournal } from "./open-journal.ts";
import { openServedPersons } from "./open-people.ts";
import { PeriodicChanges } from "./periodic-changes.ts";
import { PersonDeletionService } from "./person-deletion.ts";
import { ServerStatus } from "./server-status.ts";
import { getTraces } from "./traces.ts";
import { weeklyWebReader } from "./weekly-web.ts";

/** Time limit for storing hash-key overrides during a stop. */
const overridesSettleMs = 2_000;

export class FlagkeepServer {
  readonly metadata: Metadata;
  private readonly people: PersonsDb;
  private readonly persons: PersonReader;
  private readonly metricsToken: string;
  private readonly supervisor: EngineSupervisor;
  private readonly metrics: Metrics;
  private readonly requests: RequestLog;
  private readonly corruption: SqliteCorruption;
  private readonly sqliteCheck: SqliteCheck;
  private readonly reports: EngineReportHandler;
  private readonly retention: Retention;
  private readonly instance: ReturnType<typeof instanceDeps>;
  private readonly overrides: OverrideWriter;
  private readonly uploads: ImportUploads;
  private readonly unknownKeys = new UnknownKeys();
  private readonly status: ServerStatus;
  private readonly changes: PeriodicChanges;
  private traces: Traces | undefined;
  private readonly payloads: PayloadCipher;
  private readonly secrets: SecretCipher;
  private readonly webhooks: Webhooks;
  private journal: JournalPort | undefined;
  private listeners: Listeners | undefined;
  private url: string | undefined;
  private readonly stopping = new AbortController();
  private readonly live = new LiveEvents(this.stopping.signal);
  private readonly control: RpcServer;

  /**
   * Opens the stores; nothing listens yet.
   *
   * @param directory the lock of the data directory, released when the server has stopped.
   * @param commands  how to start this executable, also in the engine role.
   * @param onRejected called when the engine cannot work on this data; the server is unusable then.
   * @param shared    connection to the cluster, of which the data directory holds replicas; absent: single node.
   * @throws {NewerDataVersionError} @throws {ReplicaOnlyError}
   */
  constructor(
    private readonly config: Config,
    private readonly log: Log,
    private readonly directory: Lock,
    private readonly commands: Record<"own" | "engine" | "sqliteCheck" | "worker", readonly string[]>,
    onRejected: (reason: EngineDataRejectedError) => void,
    private readonly shared?: ClusterNode,
  ) {
    const dataDir = config["data-dir"];
    const dataPaths = paths(dataDir);
    this.metricsToken = metricsToken(config);
    if (shared === undefined) assertLocalData(dataDir);
    this.corruption = new SqliteCorruption(dataDir);
    // Relative socket names: a socket path is limited to 108 bytes.
    process.chdir(dataDir);
    this.control = new RpcServer(controlSocketName, (error, name) =>
      log.error({ name, error: String(error) }, "failed to answer a command"),
    );
    this.metadata = openMetadata(dataPaths.metadata);
    const payloadKey = openPayloadKey(dataPaths.payloadKey, this.metadata);
    this.payloads = payloadCipher(payloadKey);
    this.secrets = secretCipher(payloadKey);
    const budget = memoryBudget(config.memory);
    const cacheBytes = budget === null ? undefined : serverPersonCacheBytes(budget);
    this.people = openServedPersons(dataDir, { cacheBytes, corruption: this.corruption, log });
    this.persons = shared?.persons ?? new SqlitePersonReader(this.people);
    this.supervisor = new EngineSupervisor(
      commands.engine,
      {
        dataDir,
        server: crypto.randomUUID(),
        eventsAt: eventsAddress(config, process.env),
        cluster: shared === undefined ? null : { postgres: shared.address, node: shared.id },
        memoryLimitBytes: config["duckdb-memory-limit"],
        spillLimitBytes: config["duckdb-spill-limit"],
        memory: budget === null ? null : engineMemory(budget),
        threads: config["duckdb-threads"],
        queryTimeoutMs: config["query-timeout"],
        propertyColumnsMax: config["property-columns"],
        spikes: { factor: config["spike-factor"], minimumPerMinute: config["spike-minimum"] },
        archive: { bytesMax: config["archive-max-size"], reserveBytes: config["journal-reserve"] },
        resultBytesMax: config["query-result-limit"],
      },
      log,
      {
        onReport: (report) => {
          this.handleReport(report);
          if (report.type === "applied") this.traces?.loaded(report.applied);
        },
        onRejected,
      },
    );
    if (this.corruption.reason !== null)
      this.supervisor.block({
        message: this.corruption.reason,
        hint: "Events that arrive wait in the journal.",
      });
    this.sqliteCheck = new SqliteCheck({
      dataDir,
      command: commands.sqliteCheck,
      log,
      onChecked: (corrupt) => {
        this.corruption.recordChecked(corrupt);
        if (corrupt.length > 0) log.error({}, this.corruption.reason!);
      },
    });
    this.corruption.onUnknownFile = () => void this.sqliteCheck.run();
    this.metrics = new Metrics({
      dataDir,
      corruption: this.corruption,
      journal: () => this.journal,
      supervisor: this.supervisor,
      roles: () => this.status.roles(),
      shared: shared && { lag: () => this.status.lag(), node: shared },
      workers: () => this.listeners?.workers ?? [],
    });
    this.requests = new RequestLog(this.metrics.registry, log);
    this.instance = instanceDeps(config, commands.own);
    this.uploads = new ImportUploads({
      dataDir,
      executable: commands.own,
      reserveBytes: config["journal-reserve"],
    });
    const engine = new EngineClient(this.supervisor);
    this.overrides = new OverrideWriter({
      store: async (overrides) => {
        await engine.ask("addHashKeyOverrides", overrides);
        shared?.persons?.forget(overrides.projectId, overrides.distinctIds);
      },
      onDiscarded: (error) => log.error({ error: String(error) }, "failed to store hash key overrides"),
    });
    this.retention = new Retention({
      dataDir,
      rules: config["events-retention"],
      projects: () =>
        this.metadata.projects
          .list({ includeArchived: true })
          .map(({ id, eventsRetentionDays }) => ({ id, eventsRetentionDays })),
      // Events are shared: only the loader deletes them.
      remove: async (cutoffs) =>
        this.shared?.isLoader === false ? 0 : await engine.ask("deleteExpiredEvents", { cutoffs }),
      isCaughtUp: async () => {
        // In a cluster, entries of other nodes are loaded by the node that holds the loader lease.
        if (this.shared !== undefined) return true;
        const loaded = await engine.ask("loadedSeqs", {});
        return (this.journal?.state() ?? []).every(({ lane, lastSeq }) => loaded[lane] >= lastSeq);
      },
      log,
    });
    this.webhooks = new Webhooks({
      dataDir,
      log,
      metadata: this.metadata,
      ingestion: new SqliteIngestionReader(this.people),
      readWeb: weeklyWebReader({ engine, log }),
      corruption: this.corruption,
      secrets: this.secrets,
      rules: { allowed: config["webhook-allowed-networks"] },
      base: () => consoleBase(config, this.url),
      together: (work) => this.together(work),
      isActive: () => this.shared?.isLoader !== false,
    });
    this.status = new ServerStatus({
      log: this.log,
      config,
      metadata: this.metadata,
      people: this.people,
      corruption: this.corruption,
      supervisor: this.supervisor,
      retention: this.retention,
      shared,
      journal: () => this.journal,
      listeners: () => this.listeners,
    });
    this.changes = new PeriodicChanges({
      metadata: this.metadata,
      payloads: this.payloads,
      corruption: this.corruption,
      log,
      together: (work) => this.together(work),
    });
    this.reports = new EngineReportHandler(
      this.metadata,
      this.metrics,
      log,
      config["spike-webhook"],
      (spike) => this.webhooks.takeSpike(spike),
    );
  }

  /**
   * Recovers the journal, starts the engine and listens.
   *
   * @param options.sendsWebhooks false for the server of a single command, which knows no settings of `serve`.
   * @returns the URL of the server.
   * @throws {ListenError}
   */
  async start({ sendsWebhooks = true } = {}): Promise<string> {
    this.control.listen({
      status: () => this.status.read(),
      schema: () => knownVersions(),
      console: () => ({ base: consoleBase(this.config, this.url) }),
      unknown_keys: async () => {
        await this.listeners?.collectFigures();
        return this.unknownKeys.list();
      },
      ...importRoutes(this.metadata.projects, () => this.journal, {
        eventBytesMax: this.config["body-limit"],
      }),
      ...this.eraser.rpc(),
      ...this.uploads.rpc(),
    });
    // Calculations that another node runs may continue.
    const isAlone = (this.shared?.count ?? 1) === 1;
    const interrupted = isAlone ? await this.together(() => endInterruptedCalculations(this.metadata)) : [];
    void cleanUpWorkFolder(this.config["data-dir"]).catch((error) =>
      this.log.warn({ error: String(error) }, "failed to delete files of an interrupted backup"),
    );
    this.supervisor.run();
    const journal = await this.openJournal();
    this.journal = journal;
    this.status.start();
    this.changes.start();
    this.traces = await getTraces(this.config, this.log);
    this.listeners = await Listeners.open(
      this.config,
      this.log,
      this.app(journal),
      // A cluster's journal, in PostgreSQL, has no workers.
      journal instanceof Journal ? this.workers(journal) : undefined,
    );
    this.url = this.listeners.url;
    this.shared?.named(this.url);
    this.retention.start();
    if (sendsWebhooks) this.webhooks.start();
    void this.countCohorts(interrupted);
    if (this.shared !== undefined) this.shared.onNodeStopped = () => void this.migrateCohorts();
    this.status.state = "ready";
    void this.sqliteCheck.run();
    return this.url;
  }

  /** Finishes cohort calculations of a node that has died. */
  private async migrateCohorts(): Promise<void> {
    try {
      await this.countCohorts(await this.together(() => endInterruptedCalculations(this.metadata)));
    } catch (error) {
      this.log.warn({ error: String(error) }, "failed to check cohorts of a dead node");
    }
  }

  private async countCohorts(interrupted: readonly InterruptedCohort[]): Promise<void> {
    if (interrupted.length === 0) return;
    const { metadata, people, log } = this;
    const engine = new EngineClient(this.supervisor);
    const flagSets = new FlagSets(
      metadata,
      groupTypesFrom(people, (error) => this.corruption.record(error)),
    );
    const cohortFiller = new EngineAdapters({
      engine,
      metadata,
      flagSets,
      persons: this.persons,
    });
    const afterwards = async (work: () => void) => await (this.shared?.changeLater(work) ?? work());
    await countPending({ metadata, cohortFiller, log, afterwards }, interrupted);
  }

  private async openJournal(): Promise<JournalPort> {
    const { config, log, people, corruption, supervisor: loader } = this;
    const onRejected = (reason: string) => this.metrics.countRejected("capture", reason);
    return await openJournal({ config, log, people, corruption, loader, onRejected }, this.shared);
  }

  private app(journal: JournalPort): App {
    const { config, log, metadata, people, supervisor, metrics, traces } = this;
    const { unknownKeys, payloads, secrets, overrides, uploads, eraser, instance, shared } = this;
    const { requests, live } = this;
    return createServerApp({
      corruption: this.corruption,
      requests,
      live,
      config,
      log,
      metadata,
      people,
      persons: this.persons,
      supervisor,
      metrics,
      traces,
      journal,
      unknownKeys,
      payloads,
      secrets,
      overrides,
      uploads,
      eraser,
      instance,
      shared,
      collectFigures: async () => await this.listeners?.collectFigures(),
      status: () => this.status.read(),
      history: () => this.status.history.list(),
      roles: () => this.status.roles(),
      warnings: () => skippedEntries(paths(this.config["data-dir"]).quarantine).map(describeSkipped),
      stopping: this.stopping.signal,
      metricsToken: this.metricsToken,
    });
  }

  /** Undefined if this process handles all requests. */
  private workers(journal: PreparedSink): WorkerDeps | undefined {
    const { config, commands, metadata, requests, unknownKeys, corruption } = this;
    return workerDeps(config, {
      metadata,
      requests,
      unknownKeys,
      corruption,
      command: commands.worker,
      journal: this.live.watching(journal),
    });
  }

  private handleReport(report: Report): void {
    if (report.type === "corrupt") this.corruption.recordUnknownFile();
    const isUsage = report.type === "flag_usage" && report.usage.length > 0;
    if (this.shared === undefined || !isUsage) this.reports.take(report);
    else
      this.shared
        .change(() => this.reports.take(report))
        .catch((error) => this.log.warn({ error: String(error) }, "failed to record flag usage"));
  }

  /** Changes the metadata, in a cluster for all nodes. @throws {PostgresUnreachableError} */
  async together<Result>(work: (now?: Date) => Result): Promise<Result> {
    return this.shared === undefined ? work() : await this.shared.change(work);
  }

  /** Stops accepting requests, finishes those in flight, loads the journal and closes the stores. */
  async stop(): Promise<void> {
    this.status.state = "stopping";
    this.stopping.abort();
    this.retention.stop();
    const webhooks = this.webhooks.stop();
    const end = performance.now() + this.config["shutdown-timeout"];
    await this.listeners?.stop();
    await Promise.all([this.instance.jobs.stop(), this.uploads.stop(), this.sqliteCheck.stop()]);
    await this.journal?.close();
    await this.overrides.settle(Math.min(overridesSettleMs, Math.max(0, end - performance.now())));
    await this.supervisor.stop(Math.max(0, end - performance.now()));
    this.status.stop();
    await this.traces?.stop();
    this.changes.stop();
    await webhooks;
    await this.control.stop();
    await this.shared?.close();
    this.people.$client.close();
    this.metadata.close();
    this.directory.release();
  }

  private get eraser(): PersonDeletionService {
    const { metadata, people } = this;
    return new PersonDeletionService({
      dataDir: this.config["data-dir"],
      metadata,
      people,
      persons: this.persons,
      journal: () => this.journal,
      together: (work) => this.together(work),
    });
  }

  /** Kills the engine immediately; acknowledged entries are loaded at the next start. */
  kill(): void {
    this.supervisor.kill();
  }
}
