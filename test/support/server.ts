/** Starts the compiled executable on a temporary data directory and a free port, as a user would. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Subprocess } from "bun";
import { getChildren } from "./processes.ts";

export const executable =
  process.env.FLAGKEEP_TEST_EXECUTABLE ?? resolve(import.meta.dir, "../../dist/flagkeep");

export interface Initialized {
  organization: { id: string; name: string };
  project: { id: number; name: string; api_key: string; secret_api_key: string };
  user: { id: number; email: string };
  personal_api_key: string;
  console_url: string;
}

export interface StoredEvent {
  id: string;
  uuid: string;
  event: string;
  distinct_id: string;
  timestamp: string;
  properties: Record<string, unknown>;
  person: { uuid: string; distinct_ids: string[]; properties: Record<string, unknown> } | null;
  elements_chain: string;
  seq: number;
  historical: boolean;
}

/** The operating system's user of this process, which commands print whatever the environment says. */
export const osUser = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();

/** Runs a command of the executable to its end. @param cwd the folder it is called in; default: this process's. */
export async function flagkeep(args: readonly string[], env: Record<string, string> = {}, cwd?: string) {
  if (!existsSync(executable)) throw new Error("dist/flagkeep is missing: run `make build` first.");
  const child = Bun.spawn([executable, ...args], { stdout: "pipe", stderr: "pipe", env, cwd });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, code };
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "flagkeep-test-"));
}

/** Makes a data directory that is set up, with its keys. */
export async function initializedDirectory(
  args: readonly string[] = [],
): Promise<{ dataDir: string; initialized: Initialized }> {
  const dataDir = join(temporaryFolder(), "data");
  const { stdout, stderr, code } = await flagkeep(["init", "--data-dir", dataDir, "--json", ...args]);
  if (code !== 0) throw new Error(`flagkeep init failed: ${stderr}`);
  return { dataDir, initialized: JSON.parse(stdout) as Initialized };
}

/** Waits until the condition holds; throws after the deadline. */
export async function until<Value>(
  condition: () => Promise<Value | undefined | false> | Value | undefined | false,
  what: string,
  deadlineMs = 40_000,
): Promise<Value> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`Waited ${deadlineMs} ms in vain until ${what}.`);
    await Bun.sleep(20);
  }
}

export class ServerProcess implements AsyncDisposable {
  private constructor(
    readonly dataDir: string,
    readonly initialized: Initialized,
    readonly url: string,
    readonly process: Subprocess<"ignore", "pipe", "inherit">,
    readonly logs: Record<string, unknown>[],
    private readonly isOwner: boolean,
    /** Ends what is behind a balancer. */
    private readonly end?: () => Promise<void>,
  ) {}

  /**
   * Starts `flagkeep serve` and waits until it listens. Without other options, FLAGKEEP_TEST_FRONTS is the number of
   * nodes behind a load balancer, FLAGKEEP_TEST_WORKERS the number of HTTP workers, and FLAGKEEP_TEST_QUERY_THREADS
   * the number of query threads (with two the engine uses a thread for the archive).
   *
   * @param options.directory a directory of an earlier server, which stays when this one ends.
   */
  static async start(
    options: {
      args?: readonly string[];
      directory?: { dataDir: string; initialized: Initialized };
      /** Starts the executable through another command, such as `prlimit`. */
      through?: readonly string[];
      /** Receives each line of the log. */
      onLog?: (line: Record<string, unknown>) => void;
    } = {},
  ): Promise<ServerProcess> {
    const nodeSettings = process.env.FLAGKEEP_TEST_FRONTS;
    if (nodeSettings !== undefined && Object.keys(options).length === 0)
      return await (await import("./cluster.ts")).startBehindBalancer(Number(nodeSettings));
    const directory = options.directory ?? (await initializedDirectory());
    // As on a small machine, wherever the tests run.
    const workers = process.env.FLAGKEEP_TEST_WORKERS ?? "1";
    const threads = process.env.FLAGKEEP_TEST_QUERY_THREADS ?? "1";
    const args = [
      "serve",
      "--data-dir",
      directory.dataDir,
      "--port",
      "0",
      "--log-format",
      "json",
      "--workers",
      workers,
      "--duckdb-threads",
      threads,
      ...(options.args ?? []),
    ];
    const child = Bun.spawn([...(options.through ?? []), executable, ...args], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
      env: {},
    });
    const logs: Record<string, unknown>[] = [];
    const url = await new Promise<string>((resolveUrl, reject) => {
      void child.exited.then((code) =>
        reject(new Error(`flagkeep serve ended with ${code}: ${JSON.stringify(logs)}`)),
      );
      void collectLines(child.stdout, (line) => {
        logs.push(line);
        options.onLog?.(line);
        if (line.msg === "listening") resolveUrl(line.url as string);
      });
    });
    return new ServerProcess(
      directory.dataDir,
      directory.initialized,
      url,
      child,
      logs,
      options.directory === undefined,
    );
  }

  get directory() {
    return { dataDir: this.dataDir, initialized: this.initialized };
  }

  get token(): string {
    return this.initialized.project.api_key;
  }

  /** A request with the owner's personal key. */
  async api(path: string, init: { method?: string; body?: unknown; key?: string } = {}): Promise<Response> {
    return await fetch(path.startsWith("http") ? path : `${this.url}${path}`, {
      method: init.method,
      headers: {
        Authorization: `Bearer ${init.key ?? this.initialized.personal_api_key}`,
        ...(init.body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: init.body === undefined ? undefined : JSON.stringify(init.body),
    });
  }

  /** POSTs JSON to a public route. */
  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return await fetch(`${this.url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  }

  async capture(item: Record<string, unknown>): Promise<Response> {
    return await this.post("/capture/", { api_key: this.token, ...item });
  }

  async batch(batch: unknown[], more: Record<string, unknown> = {}): Promise<Response> {
    return await this.post("/batch/", { api_key: this.token, batch, ...more });
  }

  /** Every stored event of the first project, page by page, in order of arrival unless asked otherwise. */
  async events(query = "order=seq"): Promise<StoredEvent[]> {
    const all: StoredEvent[] = [];
    let next: string | null = `/api/projects/${this.initialized.project.id}/events/?limit=10000&${query}`;
    while (next !== null) {
      const response = await this.api(next);
      if (response.status === 503) {
        await Bun.sleep(50);
        continue;
      }
      if (response.status !== 200) throw new Error(`events: ${response.status} ${await response.text()}`);
      const page = (await response.json()) as { next: string | null; results: StoredEvent[] };
      all.push(...page.results);
      next = page.next;
    }
    return all;
  }

  /** The stored events once there are as many as expected; fails when there are more. */
  async eventsWhenStored(count: number, query?: string): Promise<StoredEvent[]> {
    const events = await until(
      async () => {
        const found = await this.events(query);
        return found.length >= count && found;
      },
      `${count} events are stored`,
      50_000,
    );
    if (events.length !== count) throw new Error(`${events.length} events are stored, expected ${count}.`);
    return events;
  }

  /** The rows of a statement over the first project, once the engine answers. */
  async query(query: string): Promise<Record<string, unknown>[]> {
    return await until(async () => {
      const path = `/api/projects/${this.initialized.project.id}/query/`;
      const response = await this.api(path, { method: "POST", body: { query } });
      if (response.status === 503) return undefined;
      if (response.status !== 200) throw new Error(`query: ${response.status} ${await response.text()}`);
      return ((await response.json()) as { rows: Record<string, unknown>[] }).rows;
    }, "the query is answered");
  }

  /** The same keys at another address. @param end ends everything behind it */
  at(url: string, end: () => Promise<void>): ServerProcess {
    return new ServerProcess(this.dataDir, this.initialized, url, this.process, this.logs, false, end);
  }

  /** Process ids of the engine. */
  async enginePids(): Promise<number[]> {
    return getChildren(this.process.pid).filter((pid) => hasArgument(pid, "engine-process"));
  }

  /** Process ids of the HTTP workers. */
  async workerPids(): Promise<number[]> {
    return getChildren(this.process.pid).filter((pid) => hasArgument(pid, "worker-process"));
  }

  /** Processor time that the engine has taken so far, in seconds: it grows while queries run. */
  async engineSeconds(): Promise<number> {
    const imported = (await this.enginePids()).map((pid) => {
      // Behind the name of the program: times are the twelfth and the one after, in hundredths of a second.
      const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ");
      return (Number(fields[11]) + Number(fields[12])) / 100;
    });
    return imported.reduce((sum, seconds) => sum + seconds, 0);
  }

  /** Kills the server process, as a crash would. */
  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.process.exited;
  }

  /** Ends it in order; returns the exit status. */
  async stop(): Promise<number> {
    this.process.kill("SIGTERM");
    return await this.process.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.end !== undefined) return await this.end();
    if (this.process.exitCode === null) await this.kill();
    if (this.isOwner) rmSync(this.dataDir, { recursive: true, force: true });
  }
}

function hasArgument(pid: number, argument: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0").includes(argument);
  } catch {
    // It has exited meanwhile.
    return false;
  }
}

async function collectLines(
  stream: ReadableStream<Uint8Array>,
  onLine: (line: Record<string, unknown>) => void,
) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith("{")) onLine(JSON.parse(line));
  }
}
