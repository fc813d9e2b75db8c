/** Starts the HTTP workers, and replaces those that exit or hang. */

import type { Subprocess } from "bun";
import { readMessages } from "../../engine/messages.ts";
import { sleep } from "../../lib/time.ts";
import type { Log } from "../../log.ts";
import type { WorkerState } from "../../operate/worker-state.ts";
import type { Certificate, WorkerCommand, WorkerFigures, WorkerReport, WorkerStart } from "./messages.ts";

export interface PoolDeps {
  /** Starts this executable as a worker. */
  readonly command: readonly string[];
  readonly start: Omit<WorkerStart, "port" | "certificate">;
  readonly port: number;
  readonly log: Log;
  readonly onFigures: (figures: WorkerFigures) => void;
  readonly onCorrupt: () => void;
}

const watchEveryMs = 250;
/** A worker without reports for this long hangs; it sends one every second. */
const silenceMs = 4_000;
/** Limit while it opens its stores. */
const startSilenceMs = 30_000;
/** If two checks are further apart, the machine was suspended. */
const suspendedMs = 2_000;
const firstRestartMs = 100;
const restartMsMax = 5_000;
/** A worker that ran this long resets the delay. */
const healthyAfterMs = 10_000;
/** How long a stop waits for a worker to finish. */
const stopMs = 5_000;
/** How long readers of figures wait for those of a worker. */
const figuresMs = 500;
/** Requests that a worker forwards at the same time; the runtime's default of 256 would delay others. */
const forwardedMax = 65_000;

type Child = Subprocess<"pipe", "pipe", "inherit">;

export class WorkerPool {
  private readonly workers: PooledWorker[];
  private readonly watch = setInterval(() => this.check(), watchEveryMs);
  private checkedAt = performance.now();

  private constructor(deps: PoolDeps) {
    const share = (command: WorkerCommand, from: PooledWorker) => {
      for (const worker of this.workers) if (worker !== from) worker.send(command);
    };
    this.workers = Array.from({ length: deps.start.workers }, () => new PooledWorker(deps, share));
    this.watch.unref();
  }

  /** Starts all workers; resolves when they listen. @throws {Error} one of them cannot listen. */
  static async start(deps: PoolDeps): Promise<{ pool: WorkerPool; port: number }> {
    const pool = new WorkerPool(deps);
    try {
      const [first, ...others] = pool.workers;
      const port = await first!.run(deps.port, null);
      await Promise.all(others.map((worker) => worker.run(port, null)));
      return { pool, port };
    } catch (error) {
      pool.kill();
      throw error;
    }
  }

  /** Gives all workers a certificate for HTTPS. */
  setCertificate(certificate: Certificate): void {
    for (const worker of this.workers) worker.setCertificate(certificate);
  }

  get states(): WorkerState[] {
    return this.workers.map(({ state }) => state);
  }

  /** Resolves when the figures of all workers that respond have been reported. */
  async collectFigures(): Promise<void> {
    await Promise.race([Promise.all(this.workers.map((worker) => worker.report())), sleep(figuresMs)]);
  }

  /** Stops accepting; requests in flight are finished. */
  async stop(): Promise<void> {
    clearInterval(this.watch);
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }

  kill(): void {
    clearInterval(this.watch);
    for (const worker of this.workers) worker.kill();
  }

  private check(): void {
    const now = performance.now();
    const wasSuspended = now - this.checkedAt > suspendedMs;
    this.checkedAt = now;
    for (const worker of this.workers) worker.check(now, wasSuspended);
  }
}

/** A worker and its successors. */
class PooledWorker {
  private child: Child | undefined;
  private isUp = false;
  private isStopping = false;
  private restarts = 0;
  private startedAt = 0;
  private heardAt = 0;
  private restartMs = firstRestartMs;
  private restartTimer: ReturnType<typeof setTimeout> | undefined;
  private port = 0;
  private certificate: Certificate | null = null;
  private listening = Promise.withResolvers<number>();
  private exited: Promise<void> = Promise.resolve();
  private figuresWaiters: (() => void)[] = [];

  /** @param share passes a command to all other workers. */
  constructor(
    private readonly deps: PoolDeps,
    private readonly share: (command: WorkerCommand, from: PooledWorker) => void,
  ) {}

  /** Starts a process. @returns its port, when it listens. @throws {Error} it cannot listen. */
  run(port: number, certificate: Certificate | null): Promise<number> {
    const { command, start } = this.deps;
    this.port = port;
    this.certificate = certificate;
    this.listening = Promise.withResolvers<number>();
    const child = Bun.spawn([...command], {
      cwd: start.config["data-dir"],
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
      env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: String(forwardedMax) },
    });
    this.child = child;
    this.startedAt = performance.now();
    this.heardAt = this.startedAt;
    this.send({ type: "start", start: { ...start, port, certificate } });
    this.exited = this.follow(child);
    return this.listening.promise;
  }

  get state(): WorkerState {
    const { child, isUp: up, restarts } = this;
    return { pid: child?.pid ?? null, up, restarts };
  }

  setCertificate(certificate: Certificate): void {
    this.certificate = certificate;
    this.send({ type: "certificate", certificate });
  }

  /** Resolves when the worker has reported its figures, or has exited. */
  async report(): Promise<void> {
    if (!this.isUp) return;
    const reported = new Promise<void>((resolve) => this.figuresWaiters.push(resolve));
    this.send({ type: "report" });
    await reported;
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    clearTimeout(this.restartTimer);
    this.send({ type: "stop" });
    const killer = setTimeout(() => this.child?.kill("SIGKILL"), stopMs);
    await this.exited;
    clearTimeout(killer);
  }

  kill(): void {
    this.isStopping = true;
    clearTimeout(this.restartTimer);
    this.child?.kill("SIGKILL");
  }

  /** Kills a worker that hangs, so that the others accept its share of the connections. */
  check(now: number, wasSuspended: boolean): void {
    if (wasSuspended) this.heardAt = now;
    if (this.child === undefined || this.isStopping) return;
    if (now - this.heardAt <= (this.isUp ? silenceMs : startSilenceMs)) return;
    this.deps.log.error({ pid: this.child.pid }, "restarting an HTTP worker that does not respond");
    this.child.kill("SIGKILL");
    this.heardAt = now;
  }

  /** Does nothing if the process is exiting. */
  send(command: WorkerCommand): void {
    try {
      this.child?.stdin.write(`${JSON.stringify(command)}\n`);
      this.child?.stdin.flush();
    } catch {
      // It is exiting; its successor gets what it needs at its start.
    }
  }

  private async follow(child: Child): Promise<void> {
    let failure = "The worker exited before it listened.";
    await readMessages<WorkerReport>(child.stdout, (report) => {
      if (report.type === "failed") failure = report.message;
      else this.onReport(report);
    }).catch(() => child.kill("SIGKILL"));
    const code = await child.exited;
    this.child = undefined;
    const wasUp = this.isUp;
    this.isUp = false;
    for (const resolve of this.figuresWaiters.splice(0)) resolve();
    this.listening.reject(new Error(failure));
    this.listening.promise.catch(() => undefined);
    // The first start reports its failure to the caller.
    if (this.isStopping || (!wasUp && this.restarts === 0)) return;
    if (performance.now() - this.startedAt > healthyAfterMs) this.restartMs = firstRestartMs;
    const { restartMs } = this;
    const facts = { code, signal: child.signalCode, restartInMs: restartMs };
    this.deps.log.warn(wasUp ? facts : { ...facts, reason: failure }, "an HTTP worker exited; restarting it");
    this.restarts += 1;
    this.restartMs = Math.min(restartMs * 2, restartMsMax);
    this.restartTimer = setTimeout(() => this.restart(), restartMs);
  }

  private restart(): void {
    this.run(this.port, this.certificate).catch(() => undefined);
  }

  private onReport(report: Exclude<WorkerReport, { type: "failed" }>): void {
    const { log, onFigures, onCorrupt } = this.deps;
    this.heardAt = performance.now();
    if (report.type === "listening") {
      this.isUp = true;
      this.listening.resolve(report.port);
    } else if (report.type === "figures") {
      onFigures(report.figures);
      for (const resolve of this.figuresWaiters.splice(0)) resolve();
    } else if (report.type === "overrides") {
      this.share(report, this);
    } else if (report.type === "corrupt") {
      onCorrupt();
    } else {
      const { level, msg, time, ...fields } = JSON.parse(report.line) as Record<string, unknown>;
      log[level as "info"](fields, msg as string);
    }
  }
}
