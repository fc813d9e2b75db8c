/**
 * The front: opens its stores, starts the engine and the server, stops them in order.
 *
 * What routes are handed is written in `front-app.ts`, what several fronts share in `shared-front.ts`, and how the rooms of
 * the engine hang together in `engine/process.ts`.
 */

import { type Metadata, openMetadata } from "../accounts/metadata.ts";
import { knownVersions } from "../backup/schema-versions.ts";
import { dropLeftWork } from "../backup/work-folder.ts";
import { countMarked } from "../cohorts/cohort-filling.ts";
import { endInterruptedCalculations, type InterruptedCohort } from "../cohorts/cohorts.ts";
import { eventsAddress, metricsToken } from "../config/secrets.ts";
import type { Config } from "../config/settings.ts";
import { EngineClient } from "../engine/client.ts";
import type { Report } from "../engine/messages.ts";
import { type EngineRefused, EngineSupervisor } from "../engine/supervisor.ts";
import { hasDueChanges, runScheduledChanges } from "../flags/api/later-changes.ts";
import { FlagSets, groupTypesFrom } from "../flags/store/flag-sets.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import { payloadCipher } from "../flags/store/payload-cipher.ts";
import { openPayloadKey } from "../flags/store/payload-key.ts";
import { OverrideWriter } from "../flags/subject/override-writer.ts";
import type { App } from "../http/app.ts";
import type { RoleReadiness } from "../http/probes.ts";
import { importRoutes } from "../import/control-route.ts";
import { ImportUploads } from "../import/uploads.ts";
import type { JournalPort } from "../journal/journal.ts";
import type { Lane } from "../journal/segment.ts";
import { shownAddress } from "../lib/clickhouse-address.ts";
import { engineMemory, frontPeopleCacheBytes, memoryBudget } from "../lib/memory-budget.ts";
import type { Lock } from "../lock.ts";
import type { Log } from "../log.ts";
import { KeptFolderUse } from "../operate/disk-use.ts";
import { EventRate } from "../operate/event-rate.ts";
import { Metrics } from "../operate/metrics.ts";
import { PeopleDamage } from "../operate/people-damage.ts";
import { Reports } from "../operate/reports.ts";
import { Retention } from "../operate/retention.ts";
import { roleStates } from "../operate/roles.ts";
import { laneStatus, nextBackup, replacedKeys, storedStatus } from "../operate/status.ts";
import type { Status } from "../operate/status-shape.ts";
import type { Traces } from "../operate/traces.ts";
import { UnknownKeys } from "../operate/unknown-keys.ts";
import { paths } from "../paths.ts";
import { openPeople, type PeopleDb } from "../people/open.ts";
import { laneCursors } from "../people/reader.ts";
import { controlSocketName } from "../rpc/control.ts";
import { RpcServer } from "../rpc/server.ts";
import { version } from "../version.ts";
import { consoleBase } from "./console-base.ts";
import { EnginePorts } from "./engine-ports.ts";
import { frontApp } from "./front-app.ts";
import { instanceDeps } from "./instance.ts";
import { Listeners } from "./listeners.ts";
import { openJournal } from "./open-journal.ts";
import { arePeopleMissing, requireOwnData } from "./own-data.ts";
import { Eraser } from "./person-eraser.ts";
import type { SharedFront } from "./shared-front.ts";

/** How late a scheduled change may be. */
const scheduledEveryMs = 2_000;

/** How much of the counted use of a replaced key a crash may lose. */
const keyUsesEveryMs = 10_000;

/** How long a stop waits for hash-key overrides to be stored. */
const overridesSettleMs = 2_000;

export class Appliance {
  readonly metadata: Metadata;
  private readonly people: PeopleDb;
  private readonly metricsToken: string;
  private readonly supervisor: EngineSupervisor;
  private readonly metrics: Metrics;
  private readonly damage: PeopleDamage;
  private readonly reports: Reports;
  private readonly retention: Retention;
  private readonly instance: ReturnType<typeof instanceDeps>;
  private readonly overrides: OverrideWriter;
  private readonly uploads: ImportUploads;
  private readonly unknownKeys = new UnknownKeys();
  private readonly folderUse: KeptFolderUse;
  private traces: Traces | undefined;
  private readonly payloads: PayloadCipher;
  private scheduleTimer: ReturnType<typeof setInterval> | undefined;
  private keyUseTimer: ReturnType<typeof setInterval> | undefined;
  private journal: JournalPort | undefined;
  private listeners: Listeners | undefined;
  private state: "starting" | "ready" | "stopping" = "starting";
  private url: string | undefined;
  private readonly stopping = new AbortController();
  private readonly startedAt = new Date();
  private readonly control: RpcServer;
  private readonly eventRate = new EventRate(() =>
    (this.journal?.state() ?? []).reduce((sum, { durable }) => sum + durable, 0),
  );

  /**
   * Opens the stores; nothing listens yet.
   *
   * @param directory the lock of the data directory, which is released when the appliance has stopped.
   * @param commands  how to start this executable, and how in the engine's role.
   * @param onRefused called when the engine cannot work on these data; the appliance is of no use then.
   * @param shared    what it shares with other fronts, whose copies are in the data directory; absent: nothing.
   * @throws {DataFromNewerVersion} @throws {OnlyCopies}
   */
  constructor(
    private readonly config: Config,
    private readonly log: Log,
    private readonly directory: Lock,
    commands: { readonly own: readonly string[]; readonly engine: readonly string[] },
    onRefused: (reason: EngineRefused) => void,
    private readonly shared?: SharedFront,
  ) {
    const dataDir = config["data-dir"];
    const place = paths(dataDir);
    this.metricsToken = metricsToken(config);
    if (shared === undefined) requireOwnData(dataDir);
    this.damage = new PeopleDamage(dataDir);
    if (shared === undefined && arePeopleMissing(dataDir)) log.error({}, this.damage.noteMissing());
    this.folderUse = new KeptFolderUse(dataDir);
    // The names of sockets are relative: their paths may not be longer than 108 bytes.
    process.chdir(dataDir);
    this.control = new RpcServer(controlSocketName, (error, name) =>
      log.error({ name, error: String(error) }, "a command's question could not be answered"),
    );
    this.metadata = openMetadata(place.metadata);
    this.payloads = payloadCipher(openPayloadKey(place.payloadKey, this.metadata));
    // Opened for writing once, so that the schema is up to date before anybody reads.
    openPeople(place.people).$client.close();
    const budget = memoryBudget(config.memory);
    this.people = openPeople(place.people, {
      readonly: true,
      cacheBytes: budget === null ? undefined : frontPeopleCacheBytes(budget),
    });
    this.supervisor = new EngineSupervisor(
      commands.engine,
      {
        dataDir,
        front: crypto.randomUUID(),
        eventsAt: eventsAddress(config, process.env),
        shared: shared === undefined ? null : { postgres: shared.address, front: shared.id },
        memoryLimitBytes: config["duckdb-memory-limit"],
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
          this.takeReport(report);
          if (report.type === "applied") this.traces?.loaded(report.applied);
        },
        onRefused,
      },
    );
    this.metrics = new Metrics({
      dataDir,
      journal: () => this.journal,
      supervisor: this.supervisor,
      roles: () => this.roles(),
      sharedLag: shared && (() => this.lag()),
    });
    this.instance = instanceDeps(config, commands.own);
    this.uploads = new ImportUploads({
      ...{ dataDir, executable: commands.own, reserveBytes: config["journal-reserve"] },
    });
    const engine = new EngineClient(this.supervisor);
    this.overrides = new OverrideWriter({
      store: (overrides) => engine.ask("addHashKeyOverrides", overrides),
      onDiscarded: (error) => log.error({ error: String(error) }, "hash-key overrides could not be stored"),
    });
    this.retention = new Retention({
      dataDir,
      rules: config["events-retention"],
      projects: () =>
        this.metadata.projects
          .list({ includeArchived: true })
          .map(({ id, eventsRetentionDays }) => ({ id, eventsRetentionDays })),
      // Once for all fronts.
      remove: async (cutoffs) =>
        this.shared?.isLoader === false ? 0 : await engine.ask("removeOldEvents", { cutoffs }),
      isCaughtUp: async () => {
        // What waits for other fronts is loaded by one of them.
        if (this.shared !== undefined) return true;
        const loaded = await engine.ask("loadedSeqs", {});
        return (this.journal?.state() ?? []).every(({ lane, lastSeq }) => loaded[lane] >= lastSeq);
      },
      log,
    });
    this.reports = new Reports(this.metadata, this.metrics, log, config["spike-webhook"]);
  }

  /**
   * Recovers the journal, starts the engine and listens.
   *
   * @returns the address to reach the server at.
   * @throws {CanNotListen}
   */
  async start(): Promise<string> {
    this.control.listen({
      status: () => this.status(),
      schema: () => knownVersions(),
      console: () => ({ base: consoleBase(this.config, this.url) }),
      unknown_keys: () => this.unknownKeys.list(),
      ...importRoutes(this.metadata.projects, () => this.journal),
      ...this.eraser.rpc(),
      ...this.uploads.rpc(),
    });
    // What another front looks for may go on.
    const isAlone = (this.shared?.count ?? 1) === 1;
    const interrupted = isAlone ? await this.together(() => endInterruptedCalculations(this.metadata)) : [];
    void dropLeftWork(this.config["data-dir"]).catch((error) =>
      this.log.warn({ error: String(error) }, "what an ended backup has left could not be removed"),
    );
    this.supervisor.run();
    const journal = await this.openJournal();
    this.journal = journal;
    this.eventRate.start();
    this.scheduleTimer = setInterval(() => void this.makeScheduledChanges(), scheduledEveryMs);
    this.keyUseTimer = setInterval(() => void this.storeKeyUses(), keyUsesEveryMs);
    this.traces = await tracesOf(this.config, this.log);
    this.listeners = new Listeners(this.config, this.log, this.app(journal));
    this.url = this.listeners.url;
    this.shared?.named(this.url);
    this.retention.start();
    void this.countCohorts(interrupted);
    if (this.shared !== undefined) this.shared.onFrontGone = () => void this.takeOverCohorts();
    this.state = "ready";
    return this.url;
  }

  /** Cohorts whose members another front was looking for, which has gone. */
  private async takeOverCohorts(): Promise<void> {
    try {
      await this.countCohorts(await this.together(() => endInterruptedCalculations(this.metadata)));
    } catch (error) {
      this.log.warn({ error: String(error) }, "cohorts of a front that has gone could not be looked at");
    }
  }

  private async countCohorts(interrupted: readonly InterruptedCohort[]): Promise<void> {
    if (interrupted.length === 0) return;
    const { metadata, people, log } = this;
    const engine = new EngineClient(this.supervisor);
    const flagSets = new FlagSets(metadata, groupTypesFrom(people));
    const cohortFiller = new EnginePorts({ engine, metadata, flagSets, people });
    const afterwards = async (work: () => void) => await (this.shared?.changeLater(work) ?? work());
    await countMarked({ metadata, cohortFiller, log, afterwards }, interrupted);
  }

  private async openJournal(): Promise<JournalPort> {
    const { config, log, people, supervisor: loader } = this;
    const onRefused = (reason: string) => this.metrics.countRefused("capture", reason);
    return await openJournal({ config, log, people, loader, onRefused }, this.shared);
  }

  private app(journal: JournalPort): App {
    const { config, log, metadata, people, supervisor, metrics, traces } = this;
    const { unknownKeys, payloads, overrides, uploads, eraser, instance, shared } = this;
    return frontApp({
      damage: this.damage,
      ...{ config, log, metadata, people, supervisor, metrics, traces, journal },
      ...{ unknownKeys, payloads, overrides, uploads, eraser, instance, shared },
      status: () => this.status(),
      roles: () => this.roles(),
      stopping: this.stopping.signal,
      metricsToken: this.metricsToken,
    });
  }

  private takeReport(report: Report): void {
    const isKept = report.type === "flag_usage" && report.usage.length > 0;
    if (this.shared === undefined || !isKept) this.reports.take(report);
    else
      this.shared
        .change(() => this.reports.take(report))
        .catch((error) => this.log.warn({ error: String(error) }, "the use of flags could not be recorded"));
  }

  /** Changes the metadata, for all fronts where there are several. @throws {PostgresUnreachable} */
  async together<Result>(work: () => Result): Promise<Result> {
    return this.shared === undefined ? work() : await this.shared.change(work);
  }

  /** Stops accepting, finishes what is in flight, loads the journal, closes the stores. */
  async stop(): Promise<void> {
    this.state = "stopping";
    this.stopping.abort();
    this.retention.stop();
    const end = performance.now() + this.config["shutdown-timeout"];
    await this.listeners?.stop();
    await Promise.all([this.instance.jobs.stop(), this.uploads.stop()]);
    await this.journal?.close();
    await this.overrides.settle(Math.min(overridesSettleMs, Math.max(0, end - performance.now())));
    await this.supervisor.stop(Math.max(0, end - performance.now()));
    this.eventRate.stop();
    await this.traces?.stop();
    clearInterval(this.scheduleTimer);
    clearInterval(this.keyUseTimer);
    this.metadata.projects.storeUses();
    await this.control.stop();
    await this.shared?.close();
    this.people.$client.close();
    this.metadata.close();
    this.directory.release();
  }

  private get eraser(): Eraser {
    const { metadata, people } = this;
    return new Eraser({
      ...{ dataDir: this.config["data-dir"], metadata, people },
      journal: () => this.journal,
      together: (work) => this.together(work),
    });
  }

  /** Ends the engine at once; what is acknowledged is loaded at the next start. */
  kill(): void {
    this.supervisor.kill();
  }

  /** What `flagkeep status` shows. */
  private async status(): Promise<Status> {
    const dataDir = this.config["data-dir"];
    // Read before anything is waited for: a stop may close the stores meanwhile.
    const neededBytes = this.journal?.admission().neededBytes;
    const stored =
      this.damage.reading(() => storedStatus(dataDir, this.people, neededBytes), undefined) ??
      storedStatus(dataDir, undefined, neededBytes);
    const applied = this.damage.reading(() => laneCursors(this.people), { realtime: 0, historical: 0 });
    const state: Omit<Status, "disk"> = {
      running: true,
      state: this.state,
      version,
      url: this.url ?? null,
      started_at: this.startedAt.toISOString(),
      uptime_seconds: Math.floor((Date.now() - this.startedAt.getTime()) / 1_000),
      events_per_second: this.eventRate.perSecond(),
      journal: laneStatus(this.journal?.state() ?? [], applied),
      roles: this.roles(),
      engine: this.supervisor.state,
      events_at: this.config["events-url"] && shownAddress(this.config["events-url"]),
      shared: this.shared?.status() ?? null,
      retention: this.retention.state(),
      replaced_keys: replacedKeys(this.metadata.projects),
      next_backup: nextBackup(this.config["backup-schedule"]),
      ...stored,
    };
    return { ...state, disk: { ...stored.disk, ...(await this.folderUse.read()) } };
  }

  /** Per lane, the entries that are acknowledged and not loaded, by whichever front. */
  private lag(): Record<Lane, number> {
    const lag = { realtime: 0, historical: 0 };
    for (const { lane, lag_entries } of laneStatus(this.journal?.state() ?? [], laneCursors(this.people)))
      lag[lane] = lag_entries;
    return lag;
  }

  private roles(): RoleReadiness[] {
    return roleStates({
      state: this.state,
      admission: this.journal?.admission(),
      engine: this.supervisor.state,
      damage: this.damage.reason,
    });
  }

  private async makeScheduledChanges(): Promise<void> {
    try {
      const writing = { metadata: this.metadata, payloads: this.payloads };
      if (hasDueChanges(writing)) await this.together(() => runScheduledChanges(writing));
    } catch (error) {
      // They are still due the next time.
      this.log.error({ error: String(error) }, "scheduled changes could not be made");
    }
  }

  private async storeKeyUses(): Promise<void> {
    try {
      const { projects } = this.metadata;
      if (projects.hasUses) await this.together(() => projects.storeUses());
    } catch (error) {
      this.log.warn({ error: String(error) }, "how much replaced project keys are used could not be stored");
    }
  }
}

/** Loaded where a collector is set: elsewhere the libraries would take 7 MB for nothing. */
async function tracesOf(config: Config, log: Log): Promise<Traces | undefined> {
  if (config["traces-endpoint"] === "") return undefined;
  const { Traces } = await import("../operate/traces.ts");
  return new Traces({ endpoint: config["traces-endpoint"], samplePercent: config["traces-sample"] }, log);
}
