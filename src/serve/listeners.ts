/** HTTP listener, and the HTTPS listener once a certificate exists: of this process, or of its HTTP workers. */

import type { Server } from "bun";
import type { Metadata } from "../accounts/metadata.ts";
import { type Config, workerCount } from "../config/settings.ts";
import type { App } from "../http/app.ts";
import { ListenError, listen, listenSecurely } from "../http/server.ts";
import type { PreparedSink } from "../journal/journal.ts";
import { memoryBudget, serverPersonCacheBytes } from "../lib/memory-budget.ts";
import { sleep } from "../lib/time.ts";
import type { Log } from "../log.ts";
import type { RequestLog } from "../operate/request-log.ts";
import type { SqliteCorruption } from "../operate/sqlite-corruption.ts";
import type { UnknownKeys } from "../operate/unknown-keys.ts";
import type { WorkerState } from "../operate/worker-state.ts";
import { paths } from "../paths.ts";
import { Certificates } from "./certificates.ts";
import { listenForwarded } from "./workers/forwarded-listener.ts";
import { JournalServer } from "./workers/journal-link.ts";
import { forwardSocketName, journalSocketName, pickWorkerConfig } from "./workers/messages.ts";
import { type PoolDeps, WorkerPool } from "./workers/pool.ts";

/** How long a stop waits for requests in flight. */
const inFlightMs = 2_000;

/** A server that accepts connections. */
interface PublicListener {
  readonly port: number;
  /** Serves HTTPS with this certificate from now on. */
  useCertificate(tls: { key: string; cert: string }): void;
  /** Stops accepting, and waits up to `inFlightMs` for requests in flight. */
  stop(): Promise<void>;
}

/** What the workers need in addition to the application. */
export interface WorkerDeps extends Pick<PoolDeps, "command" | "onFigures" | "onCorrupt"> {
  readonly count: number;
  readonly journal: PreparedSink;
  readonly cacheBytes: number | null;
}

/** Undefined if the server process handles all requests. */
export function workerDeps(
  config: Config,
  deps: {
    metadata: Metadata;
    requests: RequestLog;
    unknownKeys: UnknownKeys;
    corruption: SqliteCorruption;
    command: readonly string[];
    journal: PreparedSink;
  },
): WorkerDeps | undefined {
  const { metadata, requests, unknownKeys, corruption, command, journal } = deps;
  const budget = memoryBudget(config.memory);
  const count = workerCount(config, budget);
  if (count === 1) return undefined;
  return {
    count,
    journal,
    command,
    cacheBytes: budget === null ? null : Math.floor(serverPersonCacheBytes(budget) / count),
    onFigures: (figures) => {
      requests.add(figures.requests);
      for (const key of figures.unknownKeys) unknownKeys.add(key);
      for (const uses of figures.keyUses) metadata.projects.addUses(uses);
    },
    onCorrupt: () => corruption.recordUnknownFile(),
  };
}

export class Listeners {
  private readonly certificates: Certificates | undefined;

  private constructor(
    private readonly config: Config,
    private readonly log: Log,
    private readonly listener: PublicListener & { pool?: WorkerPool },
  ) {
    this.certificates = this.openCertificates();
    this.certificates?.start();
  }

  /** Starts listening. @param workers absent: this process handles all requests. @throws {ListenError} */
  static async open(config: Config, log: Log, app: App, workers?: WorkerDeps): Promise<Listeners> {
    let listener: PublicListener & { pool?: WorkerPool };
    try {
      listener =
        workers === undefined
          ? new OwnListener(config, log, app)
          : await WorkerListener.open(config, log, app, workers);
    } catch (error) {
      throw new ListenError(config.host, config.port, (error as Error).message);
    }
    return new Listeners(config, log, listener);
  }

  get url(): string {
    const { host } = this.config;
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.listener.port}`;
  }

  /** Empty if this process handles all requests. */
  get workers(): WorkerState[] {
    return this.listener.pool?.states ?? [];
  }

  /** Resolves when the workers have reported what they counted. */
  async collectFigures(): Promise<void> {
    await this.listener.pool?.collectFigures();
  }

  /** Stops accepting, and waits briefly for requests in flight. */
  async stop(): Promise<void> {
    await this.certificates?.stop();
    await this.listener.stop();
  }

  /** Undefined without configured domains. */
  private openCertificates(): Certificates | undefined {
    const { config, log } = this;
    const host = config["https-host"];
    const port = config["https-port"];
    if (config["acme-domain"].length === 0) return undefined;
    return new Certificates(
      {
        domains: config["acme-domain"],
        email: config["acme-email"],
        host,
        httpsPort: port,
        directoryUrl: config["acme-directory"],
        httpPort: config["acme-http-port"],
        folder: paths(config["data-dir"]).certificates,
      },
      log,
      (tls) => this.listener.useCertificate(tls),
    );
  }
}

/** Handles requests in this process. */
class OwnListener implements PublicListener {
  private readonly http: Server<undefined>;
  private https: Server<undefined> | undefined;

  /** @throws {Error} the address cannot be listened on. */
  constructor(
    private readonly config: Config,
    private readonly log: Log,
    private readonly app: App,
  ) {
    const bodyBytesMax = config["body-limit"];
    this.http = listen(app, { hostname: config.host, port: config.port, bodyBytesMax });
  }

  get port(): number {
    return this.http.port!;
  }

  useCertificate(tls: { key: string; cert: string }): void {
    const { config, log } = this;
    // Open connections keep the previous certificate.
    void this.https?.stop();
    this.https = listenSecurely(this.app, { config, log, tls }) ?? this.https;
  }

  async stop(): Promise<void> {
    await Promise.race([Promise.all([this.http.stop(), this.https?.stop()]), sleep(inFlightMs)]);
    // Clients that are still sending have no response yet and retry.
    await this.https?.stop(true);
    await this.http.stop(true);
  }
}

/** Workers handle requests; this process handles what they forward. */
class WorkerListener implements PublicListener {
  private constructor(
    private readonly forwarded: Server<undefined>,
    private readonly journal: JournalServer,
    readonly pool: WorkerPool,
    readonly port: number,
  ) {}

  /** @throws {Error} the address cannot be listened on. */
  static async open(config: Config, log: Log, app: App, workers: WorkerDeps): Promise<WorkerListener> {
    const forwarded = listenForwarded(app, forwardSocketName, config["body-limit"]);
    const journal = new JournalServer(journalSocketName, workers.journal);
    journal.listen();
    const { command, count, cacheBytes, onFigures, onCorrupt } = workers;
    const { pool, port } = await WorkerPool.start({
      command,
      log,
      onFigures,
      onCorrupt,
      port: config.port,
      start: { config: pickWorkerConfig(config), workers: count, cacheBytes },
    });
    return new WorkerListener(forwarded, journal, pool, port);
  }

  useCertificate(tls: { key: string; cert: string }): void {
    this.pool.setCertificate(tls);
  }

  async stop(): Promise<void> {
    // The workers finish their requests first, which may be forwarded ones.
    await this.pool.stop();
    await this.forwarded.stop(true);
    this.journal.stop();
  }
}
