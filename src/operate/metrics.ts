/** Counters and gauges in the Prometheus text format, at `/metrics`. */

import { timingSafeEqual } from "node:crypto";
import ipaddr from "ipaddr.js";
import Counter from "prom-client/lib/counter.js";
import collectDefaultMetrics from "prom-client/lib/defaultMetrics.js";
import Gauge from "prom-client/lib/gauge.js";
import Registry from "prom-client/lib/registry.js";
import { readLastBackup } from "../backup/last-backup.ts";
import { refusals } from "../engine/client.ts";
import type { AppliedBatch } from "../engine/pipeline/pipeline.ts";
import type { EngineSupervisor } from "../engine/supervisor.ts";
import { ownFilesDialect } from "../http/dialect.ts";
import { authenticationFailed, permissionDenied } from "../http/failure.ts";
import type { RoleName, RoleReadiness } from "../http/probes.ts";
import { type Call, clientRoutes, Reply, type Route } from "../http/route.ts";
import type { JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import type { SpikeSignal } from "../people/spikes/detector.ts";
import { readLastScrub } from "./scrub/last-scrub.ts";

/**
 * How often the delay of the event loop is looked at, in milliseconds. At the library's ten, looking would take most of
 * the processor time of an idle server.
 */
const loopDelayEveryMs = 100;

export interface MetricSources {
  dataDir: string;
  journal: () => JournalPort | undefined;
  supervisor: EngineSupervisor;
  roles: () => readonly RoleReadiness[];
  /** Of one of several fronts: per lane, what waits for whichever of them loads events. Absent: this one is alone. */
  sharedLag?: () => Record<Lane, number>;
}

/** Who may read the figures. */
export interface MetricsAccess {
  readonly whom: "local" | "open" | "off";
  /** Asked for as a Bearer token; empty for none. */
  readonly token: string;
}

/** @throws {HttpFailure} 401, 403. */
function requireAccess(call: Call, { whom, token }: MetricsAccess): void {
  const { headers } = call.request;
  if (whom === "local" && !isLocal(call)) {
    throw permissionDenied("Only clients on the same machine may read this: see --metrics.");
  }
  if (token === "") return;
  const [, given = ""] = /^Bearer\s+(\S+)\s*$/i.exec(headers.get("authorization") ?? "") ?? [];
  const hash = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest();
  if (!timingSafeEqual(hash(given), hash(token))) throw authenticationFailed("The token is wrong.");
}

/** A proxy on this machine that is not trusted cannot vouch for whom it forwards. */
function isLocal({ address, isVouchedFor, request: { headers } }: Call): boolean {
  if (address === undefined || !ipaddr.isValid(address)) return false;
  const isForwarded = headers.has("x-forwarded-for") || headers.has("forwarded") || headers.has("via");
  return ipaddr.process(address).range() === "loopback" && (!isForwarded || isVouchedFor);
}

export class Metrics {
  readonly registry = new Registry();
  private readonly stored = this.counter("flagkeep_events_stored_total", "Events that became readable.", [
    "lane",
  ]);
  private readonly duplicates = this.counter(
    "flagkeep_events_duplicate_total",
    "Events left out because their uuid was stored before.",
    ["lane"],
  );
  private readonly dropped = this.counter(
    "flagkeep_events_dropped_total",
    "Events that were not stored, for want of a name or a distinct id.",
    ["lane"],
  );
  private readonly spikes = this.counter("flagkeep_spikes_total", "Event spikes that began.", ["project"]);

  private readonly refused = this.counter(
    "flagkeep_refused_total",
    "Requests for events, and questions about them, that were refused for want of room, time or an engine.",
    ["role", "reason"],
  );

  constructor({ dataDir, journal, supervisor, roles, sharedLag }: MetricSources) {
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: loopDelayEveryMs });
    this.beginAtZero();

    this.gauge(
      "flagkeep_journal_acknowledged_entries",
      "Journal entries made durable since the start.",
      (set) => {
        for (const { lane, durable } of journal()?.state() ?? []) set({ lane }, durable);
      },
    );
    this.gauge("flagkeep_journal_queued_bytes", "Bytes that wait for the disk.", (set) => {
      for (const { lane, queuedBytes } of journal()?.state() ?? []) set({ lane }, queuedBytes);
    });
    this.gauge("flagkeep_journal_lag_entries", "Acknowledged entries that wait to be loaded.", (set) => {
      const entries = sharedLag?.() ?? supervisor.lag().entries;
      for (const lane of lanes) set({ lane }, entries[lane]);
    });
    this.gauge(
      "flagkeep_engine_up",
      "Whether the engine answers queries.",
      (set) => set({}, supervisor.ready ? 1 : 0),
      [],
    );
    this.gauge(
      "flagkeep_ready",
      "Whether a role can be served, as the probe tells it.",
      (set) => {
        for (const { role, ready } of roles()) set({ role }, ready ? 1 : 0);
      },
      ["role"],
    );
    this.gauge(
      "flagkeep_engine_trouble",
      "Whether something about the event store is wrong; `flagkeep status` says what.",
      (set) => set({}, supervisor.state.trouble === null ? 0 : 1),
      [],
    );
    this.gauge(
      "flagkeep_engine_restarts",
      "Starts of the engine after it died.",
      (set) => set({}, supervisor.restartCount),
      [],
    );
    this.gauge(
      "flagkeep_engine_memory_bytes",
      "What the engine has in memory of its own, and of that: JavaScript's objects, what the event store keeps of its file until it needs the memory, what it needs.",
      (set) => {
        for (const [part, bytes] of Object.entries(supervisor.memoryUse ?? {})) set({ part }, bytes);
      },
      ["part"],
    );
    this.gauge(
      "flagkeep_scrub_last_timestamp_seconds",
      "When everything on disk was read and compared last; 0 when it never was.",
      (set) => set({}, Date.parse(readLastScrub(dataDir)?.at ?? "1970-01-01T00:00:00Z") / 1_000),
      [],
    );
    this.gauge(
      "flagkeep_scrub_last_damaged",
      "Whether that found damage.",
      (set) => set({}, readLastScrub(dataDir)?.ok === false ? 1 : 0),
      [],
    );
    // The journal of several fronts, and their backups, are PostgreSQL's: a zero would say that they are empty.
    if (sharedLag === undefined) this.addOwnData({ dataDir, journal, supervisor });
  }

  /** Figures of one that is alone. */
  private addOwnData({ dataDir, journal, supervisor }: Omit<MetricSources, "roles">): void {
    this.gauge(
      "flagkeep_journal_lag_bytes",
      "Bytes of acknowledged entries that wait to be loaded.",
      (set) => {
        for (const lane of lanes) set({ lane }, supervisor.lag().bytes[lane]);
      },
    );
    this.gauge(
      "flagkeep_disk_free_bytes",
      "Free bytes of the volume.",
      (set) => set({}, journal()?.admission().freeBytes ?? 0),
      [],
    );
    this.gauge(
      "flagkeep_disk_needed_bytes",
      "New events are refused while less is free.",
      (set) => set({}, journal()?.admission().neededBytes ?? 0),
      [],
    );
    this.gauge(
      "flagkeep_backup_last_success_timestamp_seconds",
      "When the last good backup was taken; 0 when there is none.",
      (set) => set({}, Date.parse(readLastBackup(dataDir)?.created_at ?? "1970-01-01T00:00:00Z") / 1_000),
      [],
    );
    this.gauge(
      "flagkeep_backup_last_attempt_failed",
      "Whether the last attempt to take a backup failed.",
      (set) => set({}, readLastBackup(dataDir)?.failed_at ? 1 : 0),
      [],
    );
  }

  /** A counter that first appears with a number above zero has not increased for Prometheus: its alert would be silent. */
  private beginAtZero(): void {
    for (const lane of lanes) this.countApplied({ lane, events: 0, duplicates: 0, dropped: 0 });
    for (const reason of Object.keys(JournalUnavailableError.reasons))
      this.refused.inc({ role: "capture", reason }, 0);
    for (const reason of refusals) this.refused.inc({ role: "query", reason }, 0);
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

  countRefused(role: RoleName, reason: string): void {
    this.refused.inc({ role, reason });
  }

  countSpike({ kind, projectId }: SpikeSignal): void {
    if (kind === "began") this.spikes.inc({ project: String(projectId) });
  }

  /** Serves `/metrics`: the figures name no one, and still they are nobody's business but the operator's. */
  routes(access: MetricsAccess): Route[] {
    if (access.whom === "off") return [];
    return [
      clientRoutes(ownFilesDialect)("GET", "/metrics", {
        summary: "Get metrics in the Prometheus text format",
        tag: "Probes",
        answers: {
          200: { description: "Plain text." },
          401: { description: "The token is missing or wrong." },
          403: { description: "The client is not on this machine." },
        },
        handle: async (call) => {
          requireAccess(call, access);
          return Reply.of(this.registry.contentType, await this.registry.metrics());
        },
      }),
    ];
  }

  private counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  private gauge(
    name: string,
    help: string,
    read: (set: (labels: Record<string, string>, value: number) => void) => void,
    labelNames: string[] = ["lane"],
  ): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        read((labels, value) => this.set(labels, value));
      },
    });
  }
}
