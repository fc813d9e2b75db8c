/**
 * Connects a command to the server of a data directory: the running one, or one started in the command's own process
 * and stopped afterwards.
 *
 * Either way entries that are only in the journal, as after a crash, are loaded through the same pipeline.
 */

import type { Config } from "../src/config/settings.ts";
import type { AdminQueries, AdminQueryName } from "../src/engine/admin-queries.ts";
import { EngineClient, EngineUnavailableError } from "../src/engine/client.ts";
import type { DownloadRequest } from "../src/events/query/download.ts";
import type { LastSeqs } from "../src/import/control-route.ts";
import type { Lane } from "../src/journal/segment.ts";
import { lanes } from "../src/journal/segment.ts";
import { AppError } from "../src/lib/errors.ts";
import { acquireLock, DirectoryInUseError, type Lock } from "../src/lock.ts";
import { createLog } from "../src/log.ts";
import { hasExternalStore } from "../src/operate/doctor/clickhouse.ts";
import { paths } from "../src/paths.ts";
import { eventsAreExternal } from "../src/persons/external-events.ts";
import { RpcError } from "../src/rpc/client.ts";
import { callControl } from "../src/rpc/control.ts";
import { openDataDirectory } from "../src/serve/data-directory.ts";
import { FlagkeepServer } from "../src/serve/flagkeep-server.ts";

const pollMs = 50;

/** A process uses the directory but does not respond. */
export class ServerUnreachableError extends AppError {
  readonly code = "appliance_silent";
  override readonly hint = "See its log, and check for another running command; then try again.";
}

/** The process that used the directory has exited. */
class ServerStoppedError extends ServerUnreachableError {}

export interface ServerConnection {
  /** Whether it was started for the command. */
  readonly isOwn: boolean;
  /** Calls the engine; retries while it starts. @throws {ServerUnreachableError} */
  ask<Name extends AdminQueryName>(
    name: Name,
    request: Parameters<AdminQueries[Name]>[0],
  ): ReturnType<AdminQueries[Name]>;
  /** Streams the rows of a statement as a file; retries while the engine starts. @throws {ServerUnreachableError} */
  download(request: DownloadRequest): Promise<ReadableStream<Uint8Array>>;
  /** Calls the server process; retries while it starts or its disk is full. @throws {ServerUnreachableError} */
  send<Answer>(name: string, request?: unknown): Promise<Answer>;
  /** Resolves once the lanes are loaded up to these sequence numbers. */
  waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void>;
}

export interface ConnectionOptions {
  config: Config;
  /** Command that starts the engine process. */
  engineCommand: readonly string[];
  /** How long to retry a server that does not respond. */
  patienceMs: number;
  /**
   * Whether the work may restart with a server of its own process after the first one has exited: that may have been
   * another command's.
   */
  mayStartAgain: boolean;
  /** Receives the number of entries still to be loaded. */
  onWait?: (entries: number) => void;
}

/**
 * Runs the work with a server.
 *
 * The working directory becomes the data directory: socket names are relative.
 *
 * @throws {ServerUnreachableError}
 */
export async function withServer<Result>(
  options: ConnectionOptions,
  work: (server: ServerConnection) => Promise<Result>,
): Promise<Result> {
  const { config, engineCommand } = options;
  process.chdir(config["data-dir"]);
  let rejectPending: (reason: Error) => void = () => {};
  const rejected = new Promise<never>((_, reject) => {
    rejectPending = reject;
  });
  rejected.catch(() => undefined);
  let directory: Lock;
  try {
    directory = openDataDirectory(config["data-dir"]);
  } catch (error) {
    if (!(error instanceof DirectoryInUseError)) throw error;
    try {
      return await work(new OpenConnection(options, false));
    } catch (silence) {
      if (!(silence instanceof ServerStoppedError) || !options.mayStartAgain) throw silence;
      return await withServer(options, work);
    }
  }
  let server: FlagkeepServer;
  try {
    const log = createLog("warn", "text", process.stderr);
    const own = engineCommand.slice(0, -1);
    const commands = { own, sqliteCheck: [], engine: engineCommand, worker: [] };
    server = new FlagkeepServer(configWithoutPruning(config), log, directory, commands, rejectPending);
  } catch (error) {
    directory.release();
    throw error;
  }
  try {
    // Fail now instead of when the retries with an engine that cannot open the events time out.
    if (config["events-url"] === null && hasExternalStore(config["data-dir"])) throw eventsAreExternal();
    await server.start({ sendsWebhooks: false });
    return await Promise.race([rejected, work(new OpenConnection(options, true))]);
  } finally {
    await server.stop();
  }
}

function configWithoutPruning(config: Config): Config {
  // The archive limit is a setting of `serve`, whose flags are unknown here: never prune.
  return { ...config, host: "127.0.0.1", port: 0, workers: 1, "archive-max-size": Number.MAX_SAFE_INTEGER };
}

class OpenConnection implements ServerConnection {
  private readonly engine = new EngineClient();
  private readonly dataDir: string;

  constructor(
    private readonly options: ConnectionOptions,
    readonly isOwn: boolean,
  ) {
    this.dataDir = options.config["data-dir"];
  }

  ask<Name extends AdminQueryName>(
    name: Name,
    request: Parameters<AdminQueries[Name]>[0],
  ): ReturnType<AdminQueries[Name]> {
    return this.onceReady(() => this.engine.ask(name, request)) as ReturnType<AdminQueries[Name]>;
  }

  async download(request: DownloadRequest): Promise<ReadableStream<Uint8Array>> {
    return (await this.onceReady(() => this.engine.stream("download", request))).body;
  }

  private onceReady<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return this.patiently(async () => {
      try {
        return { answer: await ask() };
      } catch (error) {
        if (error instanceof EngineUnavailableError) return undefined;
        throw error;
      }
    });
  }

  send<Answer>(name: string, request?: unknown): Promise<Answer> {
    return this.patiently(async () => {
      try {
        const answer = await callControl<Answer>(this.dataDir, name, request);
        return answer === undefined ? undefined : { answer };
      } catch (error) {
        if (error instanceof RpcError && error.code === "journal_unavailable") return undefined;
        throw error;
      }
    });
  }

  async waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void> {
    for (;;) {
      const loaded = await this.ask("loadedSeqs", {});
      const sent = await this.send<LastSeqs>("last_seqs");
      // A crash discards sequence numbers that were assigned but never acknowledged.
      const missing = (lane: Lane) => Math.min(seqs[lane] ?? 0, sent[lane]) - loaded[lane];
      const entries = lanes.reduce((sum, lane) => sum + Math.max(0, missing(lane)), 0);
      if (entries === 0) return;
      this.options.onWait?.(entries);
      await Bun.sleep(pollMs);
    }
  }

  /** @param attempt returns undefined to be retried. */
  private async patiently<Answer>(attempt: () => Promise<{ answer: Answer } | undefined>): Promise<Answer> {
    const end = performance.now() + this.options.patienceMs;
    for (;;) {
      const result = await attempt();
      if (result !== undefined) return result.answer;
      if (this.options.mayStartAgain && this.isServerStopped()) {
        throw new ServerStoppedError(`The server that used ${this.dataDir} has stopped.`);
      }
      if (performance.now() > end) {
        throw new ServerUnreachableError(`The server that uses ${this.dataDir} does not respond.`);
      }
      await Bun.sleep(pollMs);
    }
  }
  private isServerStopped(): boolean {
    if (this.isOwn) return false;
    try {
      acquireLock(paths(this.dataDir).lock, this.dataDir).release();
      return true;
    } catch (error) {
      if (error instanceof DirectoryInUseError) return false;
      throw error;
    }
  }
}
