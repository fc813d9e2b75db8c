/**
 * The front: opens its stores, starts the engine and the server, stops them in order.
 *
 * This is the only place that wires the rooms together.
 */

import type { Server } from "bun";
import { guardOf } from "../accounts/api/guard.ts";
import { type Metadata, openMetadata } from "../accounts/metadata.ts";
import { knownVersions } from "../backup/schema-versions.ts";
import { endInterruptedCalculations } from "../cohorts/cohorts.ts";
import { type Config, eventsAddress } from "../config.ts";
import { consolePath, consoleRoutes } from "../console/routes.ts";
import { EngineClient } from "../engine/client.ts";
import type { Report } from "../engine/messages.ts";
import { type EngineRefused, EngineSupervisor } from "../engine/supervisor.ts";
import { eventRoutes } from "../events/api/events.ts";
import { LiveEvents, liveRoutes } from "../events/api/live.ts";
import { queryRoutes } from "../events/query/query-route.ts";
import { explainRoutes } from "../flags/api/explain-route.ts";
import { hasDueChanges, runScheduledChanges } from "../flags/api/later-changes.ts";
import { evaluationRoutes } from "../flags/api/routes.ts";
import { FlagSets, groupTypesFrom } from "../flags/store/flag-sets.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import { payloadCipher, readPayloadKey } from "../flags/store/payload-cipher.ts";
import { CanNotListen } from "../http/address.ts";
import { type App, createApp } from "../http/app.ts";
import { TrustedPlaces } from "../http/places.ts";
import type { RoleReadiness } from "../http/probes.ts";
import { defaultRateLimits, RateLimiter } from "../http/rate-limit.ts";
import type { Route } from "../http/route.ts";
import { listen } from "../http/server.ts";
import { importUploadRoutes } from "../import/api/imports.ts";
import { importRoutes } from "../import/control-route.ts";
import { ImportUploads } from "../import/uploads.ts";
import { captureRoutes } from "../ingestion/routes.ts";
import { seenSeqs } from "../journal/archive.ts";
import { Journal, type JournalPort } from "../journal/journal.ts";
import type { JournalUnavailable } from "../journal/lane-writer.ts";
import type { Lane } from "../journal/segment.ts";
import { shownAddress } from "../lib/clickhouse-address.ts";
import { engineMemory, memoryBudget } from "../lib/memory-budget.ts";
import { lapse } from "../lib/time.ts";
import { type Lock, takeLock } from "../lock.ts";
import type { Log } from "../log.ts";
import { mcpRoutes } from "../mcp/route.ts";
import { instanceRoutes } from "../operate/api/instance.ts";
import { EventRate } from "../operate/event-rate.ts";
import { Metrics } from "../operate/metrics.ts";
import { Reports } from "../operate/reports.ts";
import { Requests } from "../operate/requests.ts";
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
import { Certificates } from "./certificates.ts";
import { prepareDirectory } from "./data-directory.ts";
import { EnginePorts } from "./engine-ports.ts";
import { instanceDeps } from "./instance.ts";
import { Eraser } from "./person-eraser.ts";
import { managementRoutes } from "./routes.ts";
import { requireOwnData, type SharedFront } from "./shared-front.ts";

/**
 * Entries of a journal segment: what the pipeline applies in well under a second, which is how long a live event may
 * have to wait behind a historical segment.
 */
const segmentEntriesMax = 20_000;

const refusalLogMs = 10_000;
/** How late a scheduled change may be. */
const scheduledEveryMs = 2_000;

/** How much of the counted use of a replaced key a crash may lose. */
const keyUsesEveryMs = 10_000;

/** How long a stop waits for requests that are in flight. */
const inFlightMs = 2_000;

export class Appliance {
  private readonly lock: Lock;
  readonly metadata: Metadata;
  private readonly people: PeopleDb;
  private readonly supervisor: EngineSupervisor;
  private readonly metrics: Metrics;
  private readonly reports: Reports;
  private readonly retention: Retention;
  private readonly instance: ReturnType<typeof instanceDeps>;
  private readonly uploads: ImportUploads;
  private readonly unknownKeys = new UnknownKeys();
  private certificates: Certificates | undefined;
  private https: Server<undefined> | undefined;
  private traces: Traces | undefined;
  private cipher: PayloadCipher | undefined;
  private scheduleTimer: ReturnType<typeof setInterval> | undefined;
  private keyUseTimer: ReturnType<typeof setInterval> | undefined;
  private journal: JournalPort | undefined;
  private server: Server<undefined> | undefined;
  private state: "starting" | "ready" | "stopping" = "starting";
  private url: string | undefined;
  private readonly stopping = new AbortController();
  private readonly startedAt = new Date();
  /** Requests that were refused since that was last logged. */
  private refused = 0;
  private refusalLoggedAt = Number.NEGATIVE_INFINITY;
  private readonly control: RpcServer;
  private readonly eventRate = new EventRate(() =>
    (this.journal?.state() ?? []).reduce((sum, { durable }) => sum + durable, 0),
  );

  /**
   * Opens the stores; nothing listens yet.
   *
   * @param commands  how to start this executable, and how in the engine's role.
   * @param onRefused called when the engine cannot work on these data; the appliance is of no use then.
   * @param shared    what it shares with other fronts, whose copies are in the data directory; absent: nothing.
   * @throws {DirectoryInUse} @throws {DataFromNewerVersion} @throws {ForeignDirectory} @throws {MetadataMissing}
   */
  constructor(
    private readonly config: Config,
    private readonly log: Log,
    commands: { readonly own: readonly string[]; readonly engine: readonly string[] },
    onRefused: (reason: EngineRefused) => void,
    private readonly shared?: SharedFront,
  ) {
    const dataDir = prepareDirectory(config["data-dir"]);
    const place = paths(dataDir);
    this.lock = takeLock(place.lock, dataDir);
    if (shared === undefined) {
      try {
        requireOwnData(dataDir);
      } catch (error) {
        this.lock.release();
        throw error;
      }
    }
    // The names of sockets are relative: their paths may not be longer than 108 bytes.
    process.chdir(dataDir);
    this.control = new RpcServer(controlSocketName, (error, name) =>
      log.error({ name, error: String(error) }, "a command's question could not be answered"),
    );
    this.metadata = openMetadata(place.metadata);
    // Opened for writing once, so that the schema is up to date before anybody reads.
    openPeople(place.people).$client.close();
    this.people = openPeople(place.people, { readonly: true });
    const budget = memoryBudget(config.memory);
    this.supervisor = new EngineSupervisor(
      commands.engine,
      {
        dataDir,
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
    });
    this.instance = instanceDeps(config, commands.own);
    this.uploads = new ImportUploads({
      ...{ dataDir, executable: commands.own, reserveBytes: config["journal-reserve"] },
    });
    const engine = new EngineClient(this.supervisor);
    this.retention = new Retention({
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
      unknown_keys: () => this.unknownKeys.list(),
      ...importRoutes(this.metadata.projects, () => this.journal),
      ...this.eraser.rpc(),
      ...this.uploads.rpc(),
    });
    // Those of another front may go on.
    if ((this.shared?.count ?? 1) === 1) await this.together(() => endInterruptedCalculations(this.metadata));
    this.supervisor.run();
    const journal =
      this.shared === undefined ? await this.openJournal() : this.openSharedJournal(this.shared);
    this.journal = journal;
    this.eventRate.start();
    this.scheduleTimer = setInterval(() => void this.makeScheduledChanges(), scheduledEveryMs);
    this.keyUseTimer = setInterval(() => void this.storeKeyUses(), keyUsesEveryMs);
    this.traces = await tracesOf(this.config, this.log);
    this.url = this.listen(journal);
    this.shared?.named(this.url);
    this.certificates?.start();
    this.retention.start();
    this.state = "ready";
    return this.url;
  }

  private openSharedJournal(shared: SharedFront): JournalPort {
    const { config, log } = this;
    return shared.journal({
      queueBytesMax: config["journal-queue"],
      onRefused: (reason, lane) => this.noteRefused(reason, lane),
      onFailure: (error, lane) =>
        log.error({ lane, error: String(error) }, "the journal could not be written"),
    });
  }

  private async openJournal(): Promise<JournalPort> {
    const { config, log } = this;
    const { journal, segments, quarantined } = await Journal.open(
      paths(config["data-dir"]).journal,
      seenSeqs(paths(config["data-dir"]).archive, laneCursors(this.people)),
      {
        segmentBytesMax: config["journal-segment-size"],
        segmentEntriesMax,
        sealIntervalMs: config["journal-seal-interval"],
        flushIntervalMs: config["journal-flush-interval"],
        queueBytesMax: config["journal-queue"],
        reserveBytes: config["journal-reserve"],
      },
      {
        onSealed: (segment) => this.supervisor.offer([segment]),
        debt: () => this.supervisor.debt(),
        onRefused: (reason, lane) => this.noteRefused(reason, lane),
        onFailure: (error, lane) =>
          log.error({ lane, error: String(error) }, "the journal could not be written"),
      },
    );
    for (const torn of quarantined)
      log.warn({ ...torn }, "a torn write at the end of the journal was put aside");
    this.supervisor.offer(segments);
    return journal;
  }

  private takeReport(report: Report): void {
    const isKept = report.type === "flag_usage" && report.usage.length > 0;
    if (this.shared === undefined || !isKept) this.reports.take(report);
    else
      this.shared
        .change(() => this.reports.take(report))
        .catch((error) => this.log.warn({ error: String(error) }, "the use of flags could not be recorded"));
  }

  private noteRefused(reason: JournalUnavailable["reason"], lane: Lane): void {
    this.metrics.countRefused("capture", reason);
    this.logRefusal(reason, lane);
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
    await this.certificates?.stop();
    await Promise.race([Promise.all([this.server?.stop(), this.https?.stop()]), lapse(inFlightMs)]);
    await this.https?.stop(true);
    // Whoever is still sending has no answer yet, and sends again.
    await this.server?.stop(true);
    await Promise.all([this.instance.jobs.stop(), this.uploads.stop()]);
    await this.journal?.close();
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
    this.lock.release();
  }

  private get eraser(): Eraser {
    const { metadata, people } = this;
    return new Eraser({ dataDir: this.config["data-dir"], metadata, people, journal: () => this.journal });
  }

  /** Ends the engine at once; what is acknowledged is loaded at the next start. */
  kill(): void {
    this.supervisor.kill();
  }

  /** What `flagkeep status` shows. */
  private status(): Status {
    return {
      running: true,
      state: this.state,
      version,
      url: this.url ?? null,
      started_at: this.startedAt.toISOString(),
      uptime_seconds: Math.floor((Date.now() - this.startedAt.getTime()) / 1_000),
      events_per_second: this.eventRate.perSecond(),
      journal: laneStatus(this.journal?.state() ?? [], laneCursors(this.people)),
      roles: this.roles(),
      engine: this.supervisor.state,
      events_at: this.config["events-url"] && shownAddress(this.config["events-url"]),
      shared: this.shared?.status() ?? null,
      retention: this.retention.state(),
      replaced_keys: replacedKeys(this.metadata.projects),
      next_backup: nextBackup(this.config["backup-schedule"]),
      ...storedStatus(this.config["data-dir"], this.people, this.journal?.admission().neededBytes),
    };
  }

  private roles(): RoleReadiness[] {
    return roleStates({
      state: this.state,
      admission: this.journal?.admission(),
      engine: this.supervisor.state,
    });
  }

  /** One line in ten seconds: whoever is refused sends again. */
  private logRefusal(reason: string, lane: string): void {
    this.refused += 1;
    const now = performance.now();
    if (now < this.refusalLoggedAt + refusalLogMs) return;
    this.refusalLoggedAt = now;
    this.log.warn({ reason, lane, requests: this.refused }, "events are refused");
    this.refused = 0;
  }

  private listen(journal: JournalPort): string {
    const { config, log, metadata, people } = this;
    const { traces } = this;
    const engine = new EngineClient(
      this.supervisor,
      (reason) => this.metrics.countRefused("query", reason),
      traces && ((name, ask) => traces.asking(name, ask)),
    );
    const flagSets = new FlagSets(metadata, groupTypesFrom(people));
    const live = new LiveEvents(this.stopping.signal);
    const requests = new Requests(this.metrics.registry, log);
    const app: App = createApp({
      guard: guardOf(metadata),
      log,
      publicUrl: config["public-url"] || undefined,
      places: new TrustedPlaces(config["trusted-proxies"], config["public-url"] || undefined),
      limits: {
        bytesMax: config["body-limit"],
        apiBytesMax: config["api-body-limit"],
        inFlightBytesMax: config["bodies-in-flight"],
      },
      onSeen: (seen) => {
        requests.see(seen);
        traces?.seen(seen);
      },
      homePage: config.console === "on" ? consolePath : undefined,
      roles: () => this.roles(),
      routes: [
        ...this.metrics.routes({ whom: config.metrics, token: config["metrics-token"] }),
        ...captureRoutes({
          journal: live.watching(journal),
          projects: this.unknownKeys.watching(metadata.projects),
        }),
        ...evaluationRoutes({
          projects: this.unknownKeys.watching(metadata.projects),
          flagSets,
          people,
          storeOverrides: ({ projectId, distinctIds, flagKeys, hashKey }) =>
            engine.ask("addHashKeyOverrides", {
              ...{ projectId, hashKey },
              distinctIds: [...distinctIds],
              flagKeys: [...flagKeys],
            }),
          positions: () => ({
            accepted: journal.state().find(({ lane }) => lane === "realtime")!.lastSeq,
            applied: laneCursors(people).realtime,
          }),
          publicUrl: config["public-url"] || undefined,
          stopping: this.stopping.signal,
          onTrouble: (error: unknown) =>
            log.error({ error: String(error) }, "flags could not be computed fully"),
        }),
        ...this.routes(engine, flagSets, requests),
        ...liveRoutes({ live }),
        ...(config.console === "on" ? consoleRoutes() : []),
        ...(config.mcp === "on" ? mcpRoutes({ handle: (request) => app.handle(request) }) : []),
      ],
      rateLimiter:
        config["rate-limits"] === "on"
          ? new RateLimiter(defaultRateLimits, () => this.shared?.count ?? 1)
          : undefined,
      shared: this.shared,
    });
    try {
      const traced = traces === undefined ? app : { ...app, handle: traces.around(app.handle) };
      this.startHttps(traced);
      this.server = listen(traced, {
        hostname: config.host,
        port: config.port,
        bodyBytesMax: config["body-limit"],
      });
    } catch (error) {
      throw new CanNotListen(config.host, config.port, (error as Error).message);
    }
    const host = config.host.includes(":") ? `[${config.host}]` : config.host;
    return `http://${host}:${this.server.port}`;
  }

  /** Serves https too, as soon as there is a certificate, where names are set for one. */
  private startHttps(app: App): void {
    const { config, log } = this;
    const [host, port] = [config["https-host"], config["https-port"]];
    if (config["acme-domain"].length === 0) return;
    this.certificates = new Certificates(
      {
        ...{ domains: config["acme-domain"], email: config["acme-email"], host, httpsPort: port },
        directoryUrl: config["acme-directory"],
        httpPort: config["acme-http-port"],
        folder: paths(config["data-dir"]).certificates,
      },
      log,
      (tls) => {
        // Whoever is connected goes on with the one of before.
        void this.https?.stop();
        try {
          this.https = listen(app, { hostname: host, port, bodyBytesMax: config["body-limit"], tls });
          log.info({ domains: config["acme-domain"], port }, "https is served");
        } catch (error) {
          log.warn({ port, error: (error as Error).message }, "https cannot be served; going on without");
        }
      },
    );
  }

  private get payloads(): PayloadCipher {
    this.cipher ??= payloadCipher(readPayloadKey(paths(this.config["data-dir"]).payloadKey));
    return this.cipher;
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

  private routes(engine: EngineClient, flagSets: FlagSets, requests: Requests): Route[] {
    const { metadata, people, log } = this;
    const ports = new EnginePorts({ engine, metadata, flagSets, people });
    return [
      ...managementRoutes({
        ...{ metadata, people, flagSets, payloads: this.payloads, log },
        fronts: () => this.shared?.count ?? 1,
        personCounter: ports,
        cohortFiller: ports,
        insights: ports,
        eraser: this.eraser,
      }),
      ...instanceRoutes({
        ...{ metadata, requests, uploads: this.uploads, status: () => this.status() },
        ...this.instance,
      }),
      ...importUploadRoutes({ metadata, uploads: this.uploads }),
      ...eventRoutes({ engine }),
      ...queryRoutes({ engine }),
      ...explainRoutes({ metadata, flagSets, people }),
    ];
  }
}

/** Loaded where a collector is set: elsewhere the libraries would take 7 MB for nothing. */
async function tracesOf(config: Config, log: Log): Promise<Traces | undefined> {
  if (config["traces-endpoint"] === "") return undefined;
  const { Traces } = await import("../operate/traces.ts");
  return new Traces({ endpoint: config["traces-endpoint"], samplePercent: config["traces-sample"] }, log);
}
