/** Counters and gauges in the Prometheus text format, at `/metrics`. */

import { timingSafeEqual } from "node:crypto";
import ipaddr from "ipaddr.js";
import Counter from "prom-client/lib/counter.js";
import collectDefaultMetrics from "prom-client/lib/defaultMetrics.js";
import Gauge from "prom-client/lib/gauge.js";
import Registry from "prom-client/lib/registry.js";
import { readLastBackup } from "../backup/last-backup.ts";
import type { PartitionLag } from "../cluster/loading.ts";
import { rejections } from "../engine/client.ts";
import type { AppliedBatch } from "../engine/pipeline/pipeline.ts";
import type { EngineSupervisor } from "../engine/supervisor.ts";
import { authenticationFailed, permissionDenied } from "../http/http-error.ts";
import type { RoleName, RoleReadiness } from "../http/probes.ts";
import { type Call, clientRoutes, type Route, RouteResponse } from "../http/route.ts";
import { uiFilesProfile } from "../http/route-profile.ts";
import type { JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import type { CacheUse } from "../persons/cached-subjects.ts";
import type { SpikeSignal } from "../persons/spike-detector.ts";
import { readLastScrub } from "./scrub-schedule.ts";
import type { SqliteCorruption } from "./sqlite-corruption.ts";

/**
 * Sampling interval of the event loop delay, in milliseconds. At the library's 10 ms, sampling takes most of the
 * processor time of an idle server.
 */
const loopDelayEveryMs = 100;

export interface MetricSources {
  dataDir: string;
  journal: () => JournalPort | undefined;
  supervisor: EngineSupervisor;
  roles: () => readonly RoleReadiness[];
  /** Known corruption of the SQLite files. */
  corruption: Pick<SqliteCorruption, "reason" | "checkedAt">;
  /** Absent: single node. */
  shared?: ClusterSources | undefined;
  /** HTTP workers. */
  workers?: () => readonly { up: boolean; restarts: number }[];
}

interface ClusterSources {
  /** Per lane, the entries that wait for the loading node. */
  lag: () => Record<Lane, number>;
  node: {
    readonly isLoaded: boolean;
    readonly isPaused: boolean;
    readonly heldBackSeconds: number;
    /** Undefined if the node has all persons. */
    readonly persons: { readonly cacheUse: CacheUse; readonly feedAgeSeconds: number } | undefined;
    readonly unheldPartitions: number;
    readPartitionLags(): Promise<readonly PartitionLag[]>;
  };
}

export interface MetricsAccess {
  readonly whom: "local" | "open" | "off";
  /** Required as a Bearer token; empty: none. */
  readonly token: string;
  /** Resolves when the HTTP workers have reported their counts; absent without workers. */
  readonly collectFigures?: () => Promise<void>;
}

/** @throws {HttpError} 401, 403. */
function assertAccess(call: Call, { whom, token }: MetricsAccess): void {
  const { headers } = call.request;
  if (whom === "local" && !isLocal(call)) {
    throw permissionDenied("Metrics are only available to clients on the same machine; see --metrics.");
  }
  if (token === "") return;
  const [, sent = ""] = /^Bearer\s+(\S+)\s*$/i.exec(headers.get("authorization") ?? "") ?? [];
  const hash = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest();
  if (!timingSafeEqual(hash(sent), hash(token))) throw authenticationFailed("The token is invalid.");
}

/** A proxy on this machine that is not trusted cannot prove the client address. */
function isLocal({ address, isViaTrustedProxy, request: { headers } }: Call): boolean {
  if (address === undefined || !ipaddr.isValid(address)) return false;
  const isForwarded = headers.has("x-forwarded-for") || headers.has("forwarded") || headers.has("via");
  return ipaddr.process(address).range() === "loopback" && (!isForwarded || isViaTrustedProxy);
}

export class Metrics {
  readonly registry = new Registry();
  private readonly stored = this.counter("flagkeep_events_stored_total", "Events stored.", ["lane"]);
  private readonly duplicates = this.counter(
    "flagkeep_events_duplicate_total",
    "Events discarded as duplicates of a stored uuid.",
    ["lane"],
  );
  private readonly dropped = this.counter(
    "flagkeep_events_dropped_total",
    "Events discarded because the name or distinct id is missing.",
    ["lane"],
  );
  private readonly spikes = this.counter("flagkeep_spikes_total", "Event spikes started.", ["project"]);

  private readonly rejected = this.counter(
    "flagkeep_refused_total",
    "Requests rejected, by role and reason.",
    ["role", "reason"],
  );

  constructor(sources: MetricSources) {
    const { dataDir, journal, supervisor, roles, corruption, shared, workers = () => [] } = sources;
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: loopDelayEveryMs });
    this.startAtZero();

    this.gauge("flagkeep_journal_acknowledged_entries", "Journal entries fsynced since the start.", (set) => {
      for (const { lane, durable } of journal()?.state() ?? []) set({ lane }, durable);
    });
    this.gauge("flagkeep_journal_queued_bytes", "Bytes queued for fsync.", (set) => {
      for (const { lane, queuedBytes } of journal()?.state() ?? []) set({ lane }, queuedBytes);
    });
    this.gauge("flagkeep_journal_lag_entries", "Acknowledged entries not yet loaded.", (set) => {
      const entries = shared?.lag() ?? supervisor.lag().entries;
      for (const lane of lanes) set({ lane }, entries[lane]);
    });
    this.gauge(
      "flagkeep_engine_up",
      "1 if the engine answers queries.",
      (set) => set({}, supervisor.ready ? 1 : 0),
      [],
    );
    this.gauge(
      "flagkeep_ready",
      "1 if the role can be served, as in the readiness probe.",
      (set) => {
        for (const { role, ready } of roles()) set({ role }, ready ? 1 : 0);
      },
      ["role"],
    );
    this.gauge(
      "flagkeep_engine_trouble",
      "1 if the event store is degraded; see flagkeep status.",
      (set) => set({}, supervisor.state.trouble === null ? 0 : 1),
      [],
    );
    this.gauge("flagkeep_engine_restarts", "Engine restarts.", (set) => set({}, supervisor.restartCount), []);
    this.gauge(
      "flagkeep_http_workers_up",
      "HTTP workers that respond; 0 if the server process handles all requests.",
      (set) => set({}, workers().filter(({ up }) => up).length),
      [],
    );
    this.gauge(
      "flagkeep_http_worker_restarts",
      "Restarts of HTTP workers.",
      (set) =>
        set(
          {},
          workers().reduce((sum, { restarts }) => sum + restarts, 0),
        ),
      [],
    );
    this.gauge(
      "flagkeep_engine_memory_bytes",
      "Memory of the engine process by part: total, JavaScript heap, cached file blocks, required memory of the event store.",
      (set) => {
        for (const [part, bytes] of Object.entries(supervisor.memoryUse ?? {})) set({ part }, bytes);
      },
      ["part"],
    );
    this.gauge(
      "flagkeep_scrub_last_timestamp_seconds",
      "Time of the last scrub; 0 if none ran.",
      (set) => set({}, Date.parse(readLastScrub(dataDir)?.at ?? "1970-01-01T00:00:00Z") / 1_000),
      [],
    );
    this.gauge(
      "flagkeep_scrub_last_damaged",
      "1 if the last scrub found corruption.",
      (set) => set({}, readLastScrub(dataDir)?.ok === false ? 1 : 0),
      [],
    );
    this.gauge(
      "flagkeep_sqlite_corrupt",
      "1 if flagkeep.sqlite or people.sqlite is corrupt or missing; see flagkeep status.",
      (set) => set({}, corruption.reason === null ? 0 : 1),
      [],
    );
    this.gauge(
      "flagkeep_sqlite_check_timestamp_seconds",
      "Unix time of the last check of both SQLite files; 0 before the first one.",
      (set) => set({}, (corruption.checkedAt?.getTime() ?? 0) / 1_000),
      [],
    );
    // In a cluster the journal and the backups are PostgreSQL's: a zero would claim that they are empty.
    if (shared === undefined) this.addOwnData({ dataDir, journal, supervisor });
    else this.addCluster(shared);
  }

  /** Metrics of a cluster, equal on each node, and of the node's cache. */
  private addCluster({ node }: ClusterSources): void {
    this.gauge(
      "flagkeep_cluster_loading",
      "1 if a node of the cluster loads events, also if it is another one.",
      (set) => set({}, node.isLoaded ? 1 : 0),
      [],
    );
    this.gauge(
      "flagkeep_cluster_loading_paused",
      "1 if loading is paused; see flagkeep cluster.",
      (set) => set({}, node.isPaused ? 1 : 0),
      [],
    );
    this.gauge(
      "flagkeep_cluster_loading_held_back_seconds",
      "Age of a transaction in PostgreSQL that delays loading; 0 below 5 seconds.",
      (set) => set({}, node.heldBackSeconds),
      [],
    );
    this.gauge(
      "flagkeep_unheld_partitions",
      "Partitions that no node loads; 0 if one node loads everything.",
      (set) => set({}, node.unheldPartitions),
      [],
    );
    this.gauge(
      "flagkeep_partition_lag_entries",
      "Journal entries after the position of a partition, of any partition; absent if one node loads everything.",
      async (set) => {
        // While PostgreSQL is unavailable, the lags of the previous scrape are the last known ones.
        const lags = await node.readPartitionLags().catch(() => []);
        for (const { id, waitingRealtime, waitingHistorical } of lags)
          set({ partition: String(id) }, waitingRealtime + waitingHistorical);
      },
      ["partition"],
    );
    if (node.persons !== undefined) this.addPersonCache(node.persons);
  }

  private addPersonCache(persons: NonNullable<ClusterSources["node"]["persons"]>): void {
    this.readCounter(
      "flagkeep_person_cache_hits_total",
      "Persons and groups of flag requests that were cached.",
      () => persons.cacheUse.hits,
    );
    this.readCounter(
      "flagkeep_person_cache_misses_total",
      "Persons and groups of flag requests that were not cached.",
      () => persons.cacheUse.misses,
    );
    this.gauge(
      "flagkeep_person_cache_bytes",
      "Size of the cached persons and groups; see --person-cache.",
      (set) => set({}, persons.cacheUse.bytes),
      [],
    );
    this.gauge(
      "flagkeep_person_cache_feed_age_seconds",
      "Time since changes of cached persons were read; normally below 1.",
      (set) => set({}, persons.feedAgeSeconds),
      [],
    );
  }

  /** Metrics of a single node. */
  private addOwnData({ dataDir, journal, supervisor }: Omit<MetricSources, "roles" | "corruption">): void {
    this.gauge("flagkeep_journal_lag_bytes", "Bytes of acknowledged entries not yet loaded.", (set) => {
      for (const lane of lanes) set({ lane }, supervisor.lag().bytes[lane]);
    });
    this.gauge(
      "flagkeep_disk_free_bytes",
      "Free bytes of the volume.",
      (set) => set({}, journal()?.admission().freeBytes ?? 0),
      [],
    );
    this.gauge(
      "flagkeep_disk_needed_bytes",
      "Free bytes below which new events are rejected.",
      (set) => set({}, journal()?.admission().neededBytes ?? 0),
      [],
    );
    this.gauge(
      "flagkeep_backup_last_success_timestamp_seconds",
      "Time of the last successful backup; 0 if none exists.",
      (set) => set({}, Date.parse(readLastBackup(dataDir)?.created_at ?? "1970-01-01T00:00:00Z") / 1_000),
      [],
    );
    this.gauge(
      "flagkeep_backup_last_attempt_failed",
      "1 if the last backup attempt failed.",
      (set) => set({}, readLastBackup(dataDir)?.failed_at ? 1 : 0),
      [],
    );
  }

  /** Prometheus sees no increase in a counter that first appears above zero: its alert would not fire. */
  private startAtZero(): void {
    for (const lane of lanes) this.countApplied({ lane, events: 0, duplicates: 0, dropped: 0 });
    for (const reason of Object.keys(JournalUnavailableError.reasons))
      this.rejected.inc({ role: "capture", reason }, 0);
    for (const reason of rejections) this.rejected.inc({ role: "query", reason }, 0);
  }

  countApplied({
    lane,
    events,
    duplicates,
    dropped,
  }: Pick<AppliedBatch, "lane" | "events" | "duplicates" | "dropped">): void {
    this.stored.inc({ lane }, events);
    this.duplicates.inc({ lane }, duplicates);
    this.dropped.inc({ lane }, dropped);
  }

  countRejected(role: RoleName, reason: string): void {
    this.rejected.inc({ role, reason });
  }

  countSpike({ kind, projectId }: SpikeSignal): void {
    if (kind === "began") this.spikes.inc({ project: String(projectId) });
  }

  /** Serves `/metrics`: no personal data, but for operators only. */
  routes(access: MetricsAccess): Route[] {
    if (access.whom === "off") return [];
    return [
      clientRoutes(uiFilesProfile)("GET", "/metrics", {
        summary: "Get metrics in the Prometheus text format",
        tag: "Probes",
        answers: {
          200: { description: "Plain text." },
          401: { description: "The token is missing or wrong." },
          403: { description: "The client is not on this machine." },
        },
        handle: async (call) => {
          assertAccess(call, access);
          await access.collectFigures?.();
          return RouteResponse.create(this.registry.contentType, await this.registry.metrics());
        },
      }),
    ];
  }

  private counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  /** A counter that is maintained elsewhere. */
  private readCounter(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  private gauge(
    name: string,
    help: string,
    read: (set: (labels: Record<string, string>, value: number) => void) => void | Promise<void>,
    labelNames: string[] = ["lane"],
  ): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        return read((labels, value) => this.set(labels, value));
      },
    });
  }
}
