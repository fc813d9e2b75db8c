/**
 * A cluster node: shared data is in PostgreSQL, and the data directory holds replicas.
 *
 * This is the server process's connection; the engine has a separate one for the persons store.
 */

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { metadataStore } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { changeChannel } from "../cluster/commits.ts";
import { Postgres, PostgresUnreachableError } from "../cluster/connection.ts";
import { PostgresJournal, type PostgresJournalOptions } from "../cluster/journal.ts";
import { chooseLayout, type PersonsLayout } from "../cluster/layout.ts";
import { type Loading, type PartitionLag, readLoading, readPartitionLags } from "../cluster/loading.ts";
import {
  heartbeatMs,
  markStopped,
  type NodeInfo,
  pruneStoppedNodes,
  sendHeartbeat,
  sharedSecret,
} from "../cluster/nodes.ts";
import { deleteSqlite } from "../cluster/replica-file.ts";
import { type CopyProgress, describeProgress } from "../cluster/replica-reader.ts";
import { describeHeldBack } from "../cluster/safe-number.ts";
import { migratePostgres } from "../cluster/schema.ts";
import { StoreReplica } from "../cluster/store-replica.ts";
import { assertNodeMayWrite } from "../cluster/write-check.ts";
import { postgresAddress } from "../config/secrets.ts";
import type { Config } from "../config/settings.ts";
import { newPayloadKey, readPayloadKey, writePayloadKey } from "../flags/store/payload-key.ts";
import type { SharedState } from "../http/edge-deps.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import { AppError } from "../lib/errors.ts";
import { type PostgresAddress, redactPostgresUrl } from "../lib/store-urls.ts";
import { acquireEngineLock } from "../lock.ts";
import type { Log } from "../log.ts";
import type { Status } from "../operate/status-schema.ts";
import { paths } from "../paths.ts";
import { personStore } from "../persons/open.ts";
import { NodePersonReader } from "../persons/postgres/node-reader.ts";
import { version } from "../version.ts";
import { deleteLeftPersons } from "./cluster-migration.ts";
import { assertEventsUrl, assertNoLocalData, payloadKeyName } from "./local-data.ts";

const connections = 8;
/** Connections for persons as rows: reads by flag evaluation do not delay the journal. */
const personConnections = 4;
/** Timeout of changes with a waiting client, shorter than the connection timeout so that the client gets an error. */
const changeMs = 10_000;
/** Polling interval, which covers notifications missed while disconnected. */
const checkIntervalMs = 500;
const tidyEveryMs = 20_000;
/** A takeover takes less. */
const unloadedSecondsMax = 15;
/** Changes of persons are read twice a second. */
const feedSecondsMax = 10;
/** Timeout of a metric: a scrape must not wait for PostgreSQL. */
const lagsMs = 2_000;
/** Interval of logging that events are not loaded. */
const logEveryMs = 60_000;

export class ClusterNode implements SharedState {
  private readonly node: NodeInfo;
  private readonly layout: PersonsLayout;
  private copy: StoreReplica | undefined;
  private liveNodes: NodeInfo[];
  private loading: Loading = {
    node: null,
    loadingNodes: [],
    partitions: { all: 0, unheld: 0 },
    pausedUntil: null,
    heldBack: null,
  };
  /** When nodes last loaded all events or loading was paused. */
  private loadedAt = performance.now();
  private loggedAt = Number.NEGATIVE_INFINITY;
  private problem: PostgresUnreachableError | null = null;
  private readonly chores: PeriodicTasks;
  /** Undefined if persons are in this node's replica. */
  readonly persons: NodePersonReader | undefined;
  private readonly personPool: Postgres | undefined;
  /** Called when another node is no longer alive. */
  onNodeStopped: () => void = () => undefined;

  private constructor(
    readonly address: PostgresAddress,
    private readonly postgres: Postgres,
    private readonly log: Log,
    { layout, cacheBytes }: { layout: PersonsLayout; cacheBytes: number },
  ) {
    this.layout = layout;
    if (layout === "rows") {
      const settings = { connections: personConnections, name: "persons" };
      let isUnavailable = false;
      this.personPool = new Postgres(address, settings, (reason) => {
        isUnavailable = reason !== null;
      });
      this.persons = new NodePersonReader(this.personPool, {
        cacheBytes,
        isUnavailable: () => isUnavailable || this.problem !== null,
        onError: (error) =>
          log.debug({ error: String(error) }, "failed to read changes of persons; retrying"),
      });
    }
    this.node = { id: crypto.randomUUID(), name: hostname(), version };
    this.liveNodes = [this.node];
    this.chores = new PeriodicTasks((error) =>
      log.debug({ error: String(error) }, "PostgreSQL is unavailable; retrying"),
    );
  }

  /**
   * Connects and updates the replicas in a data directory, whose lock is held; waits for an unreachable PostgreSQL.
   *
   * @returns undefined without a configured cluster.
   * @throws {InvalidSettingError} @throws {PostgresRejectedError} @throws {NewerDataVersionError}
   */
  static async open(config: Config, log: Log): Promise<ClusterNode | undefined> {
    const address = postgresAddress(config, process.env);
    if (address === null) return undefined;
    assertEventsUrl(config);
    const dataPaths = paths(config["data-dir"]);
    assertNoLocalData(config["data-dir"]);
    let node: ClusterNode | undefined;
    let lastWarning = "";
    const onState = (reason: PostgresUnreachableError | null) => {
      if (node !== undefined) node.recordState(reason);
      else if (reason !== null && reason.message !== lastWarning) {
        lastWarning = reason.message;
        log.warn(`${lastWarning}. Flagkeep retries automatically.`);
      }
    };
    const postgres = new Postgres(address, { connections, name: "node" }, onState);
    let layout: PersonsLayout = "replica";
    await postgres.untilDone(async () => {
      await migratePostgres(postgres);
      await postgres.run((sql) => assertNodeMayWrite(sql));
      // Left by a conversion that was interrupted here and finished elsewhere.
      deleteSqlite(dataPaths.peopleConversion);
      const chosen = { persons: config["cluster-persons"], loading: config["cluster-loading"] };
      layout = (await chooseLayout(postgres, chosen)).persons;
      const copying = (store: string) => ({
        onCopying: (progress: CopyProgress) =>
          log.info(`copying the ${store} store: ${describeProgress(progress)}`),
      });
      await StoreReplica.prepare(dataPaths.metadata, metadataStore, postgres, copying("metadata"));
      const engine = await acquireEngineLock(dataPaths.engine, config["data-dir"], () =>
        log.info("waiting for the engine of the previous node to exit"),
      );
      try {
        await StoreReplica.prepare(dataPaths.people, personStore, postgres, copying("persons"));
        // A conversion to replicas that ended meanwhile has copied the persons to the replica.
        await postgres.run((sql) => assertNodeMayWrite(sql, layout));
        if (layout === "rows") deleteLeftPersons(dataPaths.people);
      } finally {
        engine?.release();
      }
      const own = existsSync(dataPaths.payloadKey) ? readPayloadKey(dataPaths.payloadKey) : undefined;
      // The first node's key becomes the key of the cluster.
      const offered = own?.toString("base64") ?? newPayloadKey();
      const key = Buffer.from(await sharedSecret(postgres, payloadKeyName, offered), "base64");
      if (own === undefined || !key.equals(own)) writePayloadKey(dataPaths.payloadKey, key);
    });
    node = new ClusterNode(address, postgres, log, { layout, cacheBytes: config["person-cache"] });
    return node;
  }

  /** Identifies this node to the engine and in PostgreSQL. */
  get id(): string {
    return this.node.id;
  }

  /**
   * Starts to replicate changes of other nodes into the store.
   * @param onRejected called when persons were converted or migrated while this node was suspended: it must exit
   * @throws {PersonsConvertedError} @throws {ConversionPendingError} @throws {ClusterMigrationError}
   */
  async attach(metadata: Metadata, onRejected: (error: AppError) => void): Promise<void> {
    const onApplied = (isBack: boolean) => metadata.changes.syncRows(isBack);
    this.copy = StoreReplica.attach(metadata.db.$client, metadataStore, this.postgres, {
      onApplied,
      persons: this.layout,
    });
    await this.check();
    await this.postgres.untilDone(() => this.recordLife());
    // A conversion that started before the first heartbeat has seen no node.
    await this.postgres.untilDone(() => this.assertMayWrite());
    await this.postgres.listen(changeChannel, (name) => {
      if (name === metadataStore.name) void this.check();
    });
    this.chores.every(checkIntervalMs, async () => {
      await this.check();
      // Changes made outside of `change`, such as when a key was last used.
      await this.settle();
    });
    this.chores.every(heartbeatMs, async () => {
      await this.recordLife();
      await this.assertMayWrite().catch((error: unknown) => {
        if (!(error instanceof AppError) || error instanceof PostgresUnreachableError) throw error;
        onRejected(error);
      });
    });
    this.chores.every(tidyEveryMs, async () => {
      await this.copy!.tidy();
      await pruneStoppedNodes(this.postgres);
    });
  }

  journal(settings: Omit<PostgresJournalOptions, "node">): PostgresJournal {
    return new PostgresJournal(this.postgres, { ...settings, node: this.id });
  }

  async check(): Promise<void> {
    await this.copy?.check();
  }

  async change<Result>(run: (now: Date) => Result | Promise<Result>): Promise<Result> {
    return await this.copy!.change((_, now) => run(now), undefined, changeMs);
  }

  /** Like `change` for background work: waits for an unavailable PostgreSQL. */
  async changeLater(run: () => void): Promise<void> {
    await this.postgres.untilDone(() => this.change(run));
  }

  async settle(): Promise<void> {
    if (this.copy!.hasChanges) await this.change(() => undefined);
  }

  /** Number of live nodes, including this one. */
  get count(): number {
    return this.liveNodes.length;
  }

  /** The progress of replacing flags and keys after PostgreSQL was restored to an earlier state. */
  get copying(): CopyProgress | undefined {
    return this.copy?.copying;
  }

  /** Whether this node's engine has the lease: background work that only one node does is done here. */
  get isLoader(): boolean {
    return this.loading.node === this.id;
  }

  /** Whether any node loads events. */
  get isLoaded(): boolean {
    return this.loading.loadingNodes.length > 0;
  }

  /** Partitions that no node loads. */
  get unheldPartitions(): number {
    return this.loading.partitions.unheld;
  }

  /** Empty if one engine loads everything. @throws {PostgresUnreachableError} */
  async readPartitionLags(): Promise<readonly PartitionLag[]> {
    return this.loading.partitions.all === 0 ? [] : await readPartitionLags(this.postgres, lagsMs);
  }

  get isPaused(): boolean {
    return this.loading.pausedUntil !== null;
  }

  /** Age of a transaction that delays loading; 0: none. */
  get heldBackSeconds(): number {
    return this.loading.heldBack?.seconds ?? 0;
  }

  /** What an operator has to look at. */
  get warnings(): string[] {
    const { pausedUntil, heldBack } = this.loading;
    if (pausedUntil !== null) return [`Loading is paused until ${pausedUntil.toISOString()}.`];
    if (heldBack !== null) return [describeHeldBack(heldBack)];
    const feedSeconds = Math.floor(this.persons?.feedAgeSeconds ?? 0);
    if (feedSeconds >= feedSecondsMax) return [`Changes of persons have not been read for ${feedSeconds} s.`];
    const seconds = Math.floor((performance.now() - this.loadedAt) / 1_000);
    if (seconds < unloadedSecondsMax) return [];
    const { unheld, all } = this.loading.partitions;
    if (!this.isLoaded || unheld === 0) return [`No node has loaded events for ${seconds} s.`];
    return [`No node has loaded ${unheld} of ${all} partitions for ${seconds} s.`];
  }

  status(): NonNullable<Status["shared"]> {
    const cache = this.persons?.cacheUse;
    return {
      postgres: redactPostgresUrl(this.address),
      trouble: this.problem?.message ?? null,
      loading_paused_until: this.loading.pausedUntil?.toISOString() ?? null,
      loading_held_back_by: this.loading.heldBack,
      person_cache:
        cache === undefined
          ? null
          : {
              entries: cache.entries,
              bytes: cache.bytes,
              bytes_max: cache.bytesMax,
              hits: cache.hits,
              misses: cache.misses,
              feed_age_seconds: Math.floor(this.persons!.feedAgeSeconds),
            },
      fronts: this.liveNodes.map(({ id, name, version: its }) => ({
        name,
        version: its,
        is_this: id === this.id,
        loads_events: this.loading.loadingNodes.includes(id),
      })),
    };
  }

  /** Publishes the node's URL as its display name. */
  named(url: string): void {
    this.node.name = `${hostname()} ${url}`;
  }

  async close(): Promise<void> {
    this.chores.stop();
    this.persons?.stop();
    await this.settle().catch(() => undefined);
    await markStopped(this.postgres, this.id).catch(() => undefined);
    await Promise.all([this.postgres.close(), this.personPool?.close()]);
  }

  /** @throws errors of `assertNodeMayWrite` @throws {PostgresUnreachableError} */
  private async assertMayWrite(): Promise<void> {
    await this.postgres.run((sql) => assertNodeMayWrite(sql, this.layout));
  }

  private async recordLife(): Promise<void> {
    const before = this.liveNodes;
    this.liveNodes = await sendHeartbeat(this.postgres, this.node);
    if (before.some(({ id }) => !this.liveNodes.some((node) => node.id === id))) this.onNodeStopped();
    this.loading = await readLoading(this.postgres);
    const isWhole = this.isLoaded && this.unheldPartitions === 0;
    if (isWhole || this.isPaused) this.loadedAt = performance.now();
    const [warning] = this.warnings;
    if (warning === undefined || performance.now() - this.loggedAt < logEveryMs) return;
    this.loggedAt = performance.now();
    this.log.warn(warning);
  }

  private recordState(reason: PostgresUnreachableError | null): void {
    if (reason !== null && this.problem === null) this.log.warn(reason.message);
    if (reason === null && this.problem !== null) this.log.info("PostgreSQL is available again");
    this.problem = reason;
  }
}
