/**
 * Lets a command work with the appliance of a data directory: the one that runs, or one that is started for the
 * command in its own process and stopped behind it.
 *
 * Either way what is only in the journal yet, as after a crash, gets into the stores by the same road.
 */

import type { Config } from "../src/config/settings.ts";
import type { Analysis, AnalysisName } from "../src/engine/analysis.ts";
import { EngineClient, EngineUnavailable } from "../src/engine/client.ts";
import type { DownloadRequest } from "../src/events/query/download.ts";
import type { LastSeqs } from "../src/import/control-route.ts";
import type { Lane } from "../src/journal/segment.ts";
import { lanes } from "../src/journal/segment.ts";
import { AppError } from "../src/lib/errors.ts";
import { DirectoryInUse, type Lock, takeLock } from "../src/lock.ts";
import { createLog } from "../src/log.ts";
import { isKeptOutside } from "../src/operate/doctor/clickhouse.ts";
import { paths } from "../src/paths.ts";
import { eventsAreOutside } from "../src/people/outside-events.ts";
import { RpcFailed } from "../src/rpc/client.ts";
import { askControl } from "../src/rpc/control.ts";
import { Appliance } from "../src/serve/appliance.ts";
import { takeDirectory } from "../src/serve/data-directory.ts";

const pollMs = 50;

/** A process uses the directory, but it does not answer. */
export class ApplianceSilent extends AppError {
  readonly code = "appliance_silent";
  override readonly hint = "See its log, and whether another command is at work; then try again.";
}

/** No process uses the directory any more. */
class ApplianceGone extends ApplianceSilent {}

export interface ReachedAppliance {
  /** Whether it was started for the command. */
  readonly isOwn: boolean;
  /** Asks the engine, again and again while it starts. @throws {ApplianceSilent} */
  ask<Name extends AnalysisName>(
    name: Name,
    request: Parameters<Analysis[Name]>[0],
  ): ReturnType<Analysis[Name]>;
  /** Asks the engine for the rows of a statement as a file, again and again while it starts. @throws {ApplianceSilent} */
  download(request: DownloadRequest): Promise<ReadableStream<Uint8Array>>;
  /** Asks the front, again and again while it starts or its disk is full. @throws {ApplianceSilent} */
  tell<Answer>(name: string, request?: unknown): Promise<Answer>;
  /** Resolves once the lanes can be read up to these sequence numbers. */
  waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void>;
}

export interface ReachOptions {
  config: Config;
  /** How to start this executable in the engine's role. */
  engineCommand: readonly string[];
  /** How long an appliance that does not answer is asked again. */
  patienceMs: number;
  /**
   * Whether the work may be begun again with an appliance of its own when the one that it was begun with has gone: that
   * may have been another command's.
   */
  mayStartAgain: boolean;
  /** Told of entries that have to be loaded first. */
  onWait?: (entries: number) => void;
}

/**
 * Does the work with an appliance.
 *
 * The working directory becomes the data directory: the names of the sockets are relative.
 *
 * @throws {ApplianceSilent}
 */
export async function withAppliance<Result>(
  options: ReachOptions,
  work: (appliance: ReachedAppliance) => Promise<Result>,
): Promise<Result> {
  const { config, engineCommand } = options;
  process.chdir(config["data-dir"]);
  let refuse: (reason: Error) => void = () => {};
  const refused = new Promise<never>((_, reject) => {
    refuse = reject;
  });
  refused.catch(() => undefined);
  let directory: Lock;
  try {
    directory = takeDirectory(config["data-dir"]);
  } catch (error) {
    if (!(error instanceof DirectoryInUse)) throw error;
    try {
      return await work(new Reached(options, false));
    } catch (silence) {
      if (!(silence instanceof ApplianceGone) || !options.mayStartAgain) throw silence;
      return await withAppliance(options, work);
    }
  }
  let own: Appliance;
  try {
    const log = createLog("warn", "text", process.stderr);
    const commands = { own: engineCommand.slice(0, -1), engine: engineCommand };
    own = new Appliance(ownConfig(config), log, directory, commands, refuse);
  } catch (error) {
    directory.release();
    throw error;
  }
  try {
    // Said at once, not when patience with an engine ends that cannot open the events.
    if (config["events-url"] === null && isKeptOutside(config["data-dir"])) throw eventsAreOutside();
    await own.start();
    return await Promise.race([refused, work(new Reached(options, true))]);
  } finally {
    await own.stop();
  }
}

function ownConfig(config: Config): Config {
  // How much of the archive is kept is for `serve` to decide, whose flags are not known here.
  return { ...config, host: "127.0.0.1", port: 0, "archive-max-size": Number.MAX_SAFE_INTEGER };
}

class Reached implements ReachedAppliance {
  private readonly engine = new EngineClient();
  private readonly dataDir: string;

  constructor(
    private readonly options: ReachOptions,
    readonly isOwn: boolean,
  ) {
    this.dataDir = options.config["data-dir"];
  }

  ask<Name extends AnalysisName>(
    name: Name,
    request: Parameters<Analysis[Name]>[0],
  ): ReturnType<Analysis[Name]> {
    return this.onceReady(() => this.engine.ask(name, request)) as ReturnType<Analysis[Name]>;
  }

  async download(request: DownloadRequest): Promise<ReadableStream<Uint8Array>> {
    return (await this.onceReady(() => this.engine.stream("download", request))).body;
  }

  private onceReady<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return this.patiently(async () => {
      try {
        return { answer: await ask() };
      } catch (error) {
        if (error instanceof EngineUnavailable) return undefined;
        throw error;
      }
    });
  }

  tell<Answer>(name: string, request?: unknown): Promise<Answer> {
    return this.patiently(async () => {
      try {
        const answer = await askControl<Answer>(this.dataDir, name, request);
        return answer === undefined ? undefined : { answer };
      } catch (error) {
        if (error instanceof RpcFailed && error.code === "journal_unavailable") return undefined;
        throw error;
      }
    });
  }

  async waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void> {
    for (;;) {
      const loaded = await this.ask("loadedSeqs", {});
      const given = await this.tell<LastSeqs>("last_seqs");
      // A crash takes back numbers that were given out and never acknowledged.
      const missing = (lane: Lane) => Math.min(seqs[lane] ?? 0, given[lane]) - loaded[lane];
      const entries = lanes.reduce((sum, lane) => sum + Math.max(0, missing(lane)), 0);
      if (entries === 0) return;
      this.options.onWait?.(entries);
      await Bun.sleep(pollMs);
    }
  }

  /** @param attempt answers undefined when it should be made again. */
  private async patiently<Answer>(attempt: () => Promise<{ answer: Answer } | undefined>): Promise<Answer> {
    const end = performance.now() + this.options.patienceMs;
    for (;;) {
      const result = await attempt();
      if (result !== undefined) return result.answer;
      if (this.options.mayStartAgain && this.isGone()) {
        throw new ApplianceGone(`The Flagkeep that used ${this.dataDir} has stopped.`);
      }
      if (performance.now() > end) {
        throw new ApplianceSilent(`The Flagkeep that uses ${this.dataDir} does not answer.`);
      }
      await Bun.sleep(pollMs);
    }
  }
  private isGone(): boolean {
    if (this.isOwn) return false;
    try {
      takeLock(paths(this.dataDir).lock, this.dataDir).release();
      return true;
    } catch (error) {
      if (error instanceof DirectoryInUse) return false;
      throw error;
    }
  }
}
