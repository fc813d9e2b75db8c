/** What the server reports about itself: `status`, readiness, and the lag of the journal. */

import type { Metadata } from "../accounts/metadata.ts";
import type { Config } from "../config/settings.ts";
import type { EngineSupervisor } from "../engine/supervisor.ts";
import type { RoleReadiness } from "../http/probes.ts";
import type { JournalPort } from "../journal/journal.ts";
import type { Lane } from "../journal/segment.ts";
import { redactUrl } from "../lib/store-urls.ts";
import type { Log } from "../log.ts";
import { CachedFolderUsage } from "../operate/disk-usage.ts";
import { EventRate } from "../operate/event-rate.ts";
import { readinessStates } from "../operate/readiness.ts";
import type { Retention } from "../operate/retention.ts";
import type { SqliteCorruption } from "../operate/sqlite-corruption.ts";
import { laneStatus, nextBackup, replacedKeys, storedStatus } from "../operate/status.ts";
import { StatusHistory } from "../operate/status-history.ts";
import type { Status } from "../operate/status-schema.ts";
import type { PersonsDb } from "../persons/open.ts";
import { laneCursors } from "../persons/reader.ts";
import { version } from "../version.ts";
import type { ClusterNode } from "./cluster-node";
import type { Listeners } from "./listeners.ts";
import { knownSeqs } from "./open-journal.ts";

interface StatusDeps {
  config: Config;
  log: Log;
  metadata: Metadata;
  people: PersonsDb;
  corruption: SqliteCorruption;
  supervisor: EngineSupervisor;
  retention: Retention;
  /** Absent: single node. */
  shared: ClusterNode | undefined;
  /** Undefined until the journal is recovered. */
  journal: () => JournalPort | undefined;
  /** Undefined until the server listens. */
  listeners: () => Listeners | undefined;
}

export class ServerStatus {
  state: "starting" | "ready" | "stopping" = "starting";
  private readonly startedAt = new Date();
  private readonly folderUse: CachedFolderUsage;
  private readonly eventRate = new EventRate(() => this.acceptedEvents());
  /** The last 24 hours. */
  readonly history: StatusHistory;

  constructor(private readonly deps: StatusDeps) {
    this.folderUse = new CachedFolderUsage(deps.config["data-dir"]);
    this.history = new StatusHistory(
      async () => {
        const { journal, engine, disk, last_backup } = await this.read();
        return {
          events: this.acceptedEvents(),
          lagEntries: journal.reduce((sum, { lag_entries: lag }) => sum + lag, 0),
          isEngineUp: engine.up,
          diskBytes: Object.values(disk).reduce((sum, bytes) => sum + bytes, 0),
          lastBackupAt: last_backup?.created_at ?? null,
        };
      },
      (error) => deps.log.debug({ error: String(error) }, "failed to sample the status"),
    );
  }

  /** Starts counting events per second and sampling the history. */
  start(): void {
    this.eventRate.start();
    this.history.start();
  }

  stop(): void {
    this.eventRate.stop();
    this.history.stop();
  }

  async read(): Promise<Status> {
    const { config, metadata, people, corruption, supervisor, retention, shared } = this.deps;
    const listeners = this.deps.listeners();
    await listeners?.collectFigures();
    // Read before the first await: a stop may close the stores meanwhile.
    const neededBytes = this.deps.journal()?.admission().neededBytes;
    const dataDir = config["data-dir"];
    const stored =
      corruption.reading(() => storedStatus(dataDir, people, neededBytes), undefined) ??
      storedStatus(dataDir, undefined, neededBytes);
    const applied = this.loadedSeqs();
    const state: Omit<Status, "disk"> = {
      running: true,
      state: this.state,
      version,
      url: listeners?.url ?? null,
      started_at: this.startedAt.toISOString(),
      uptime_seconds: Math.floor((Date.now() - this.startedAt.getTime()) / 1_000),
      events_per_second: this.eventRate.perSecond(),
      journal: laneStatus(this.journalState(), applied),
      roles: this.roles(),
      workers: listeners?.workers ?? [],
      engine: supervisor.state,
      events_at: config["events-url"] && redactUrl(config["events-url"]),
      shared: shared?.status() ?? null,
      sqlite_corruption: corruption.reason,
      retention: retention.state(),
      replaced_keys: replacedKeys(metadata.projects),
      next_backup: nextBackup(config["backup-schedule"]),
      ...stored,
    };
    return { ...state, disk: { ...stored.disk, ...(await this.folderUse.read()) } };
  }

  roles(): RoleReadiness[] {
    return readinessStates({
      state: this.state,
      admission: this.deps.journal()?.admission(),
      engine: this.deps.supervisor.state,
      corruption: this.deps.corruption.reason,
      copying: this.deps.shared?.copying,
    });
  }

  /** Per lane, the acknowledged entries that no node has loaded. */
  lag(): Record<Lane, number> {
    const lag = { realtime: 0, historical: 0 };
    for (const { lane, lag_entries } of laneStatus(this.journalState(), this.loadedSeqs()))
      lag[lane] = lag_entries;
    return lag;
  }

  private acceptedEvents(): number {
    return this.journalState().reduce((sum, { durable }) => sum + durable, 0);
  }

  private journalState() {
    return this.deps.journal()?.state() ?? [];
  }

  /** Per lane, the last loaded entry; if that is unreadable, the last entry known to the backup and the archive. */
  private loadedSeqs(): Record<Lane, number> {
    const { corruption, people, config } = this.deps;
    return corruption.reading(() => laneCursors(people), undefined) ?? knownSeqs(config["data-dir"]);
  }
}
