/**
 * PostgreSQL for the tests: a real one on a temporary folder, a free port of 127.0.0.1 and with its syncing on, and a
 * synchronous standby of it where one is asked for.
 */

import type { test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SQL } from "bun";
import { freePort } from "./ports.ts";
import { getChildren } from "./processes.ts";
import { until } from "./server.ts";
import { installedProgram, isAllowed, testWhen } from "./skipped.ts";

const debianFolder = "/usr/lib/postgresql";

/** The folder of the server's programs: where PATH has them, else the newest one as Debian lays them out. */
function programs(): string | undefined {
  if (!isAllowed("postgres")) return undefined;
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : [];
  const newestFirst = versions.map(Number).sort((a, b) => b - a);
  const inPath = Bun.which("initdb");
  const candidates = [
    ...(inPath === null ? [] : [dirname(inPath)]),
    ...newestFirst.map((version) => join(debianFolder, String(version), "bin")),
  ];
  const needed = ["initdb", "postgres", "pg_basebackup"];
  return candidates.find((folder) => needed.every((name) => existsSync(join(folder, name))));
}

/** The folder of the server's programs. */
export const postgresPrograms = programs();
/** It does not run as root. */
const asOther =
  process.getuid?.() === 0 ? ["--reuid=postgres", "--regid=postgres", "--init-groups"] : undefined;
export const hasPostgres = postgresPrograms !== undefined && installedProgram("setpriv") !== undefined;

/** `test`, or a skipped one where PostgreSQL is not installed. */
export const testWithPostgres = (what: string): typeof test =>
  testWhen(hasPostgres, what, "PostgreSQL is not installed");

/** Starts an empty one; a database per test is made with `create`. */
export async function startPostgres(): Promise<TestPostgres> {
  const folder = ownFolder();
  await runProgram("initdb", [
    "-D",
    folder,
    "-A",
    "trust",
    "-U",
    "postgres",
    "-E",
    "UTF8",
    "--no-locale",
    "-N",
  ]);
  return await TestPostgres.on(folder);
}

export class TestPostgres implements AsyncDisposable {
  private process: Bun.Subprocess<"ignore", "ignore", "pipe"> | undefined;

  private constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  /** Starts a server on a folder that was made for one. */
  static async on(folder: string, port = freePort()): Promise<TestPostgres> {
    const server = new TestPostgres(folder, port);
    await server.start();
    return server;
  }

  /** As a setting names it. */
  url(database: string): string {
    return `postgres://postgres@${this.host}/${database}`;
  }

  /** `host:port`, for addresses with several of them. */
  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get isRunning(): boolean {
    return this.process?.exitCode === null && this.process.signalCode === null;
  }

  /** Makes an empty database. @returns its address */
  async create(database: string): Promise<string> {
    await this.run(`CREATE DATABASE ${database}`);
    return this.url(database);
  }

  /** Runs one statement on a connection of its own. @returns its rows */
  async run<Row = Record<string, unknown>>(statement: string, database = "postgres"): Promise<Row[]> {
    const sql = new SQL(this.url(database), { max: 1, connectionTimeout: 10 });
    try {
      return [...((await sql.unsafe(statement)) as Row[])];
    } finally {
      await sql.close();
    }
  }

  /** Ends it in order, clients or not. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    this.process!.kill("SIGINT");
    await this.process!.exited;
  }

  /** Ends all its processes as a power loss would. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const children = this.hang();
    for (const child of children) signalIfThere(child, "SIGKILL");
    this.process!.kill("SIGKILL");
    await this.process!.exited;
    // As long as one is left, the next start rejects the folder.
    await until(() => !children.some(isRunning), "all its processes have ended");
  }

  /** Lets all its processes hang, connections open, until `wake`. @returns those that its first one has started */
  hang(): number[] {
    const { pid } = this.process!;
    // It first, so that it starts no further ones.
    process.kill(pid, "SIGSTOP");
    const children = this.children();
    for (const child of children) signalIfThere(child, "SIGSTOP");
    return children;
  }

  wake(): void {
    for (const pid of [...this.children(), this.process!.pid]) signalIfThere(pid, "SIGCONT");
  }

  private children(): number[] {
    return getChildren(this.process!.pid);
  }

  /** Starts it again on the same port and folder, after a kill if it still runs. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /**
   * Makes a standby; from now on a commit returns when the standby has it on its disk, too.
   *
   * @param port of a server that is dead, whose place it takes; left out: a free one.
   */
  async standby(port?: number): Promise<TestPostgres> {
    const folder = ownFolder();
    await runProgram("pg_basebackup", [
      "-h",
      "127.0.0.1",
      "-p",
      String(this.port),
      "-U",
      "postgres",
      "-D",
      folder,
      "-R",
      "-C",
      "-S",
      "s1",
      "-X",
      "stream",
      "--checkpoint=fast",
      "--no-sync",
    ]);
    const standby = await TestPostgres.on(folder, port);
    await this.run("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await this.run("SELECT pg_reload_conf()");
    await until(
      async () => (await this.run("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")).length > 0,
      "the standby is synchronous",
    );
    return standby;
  }

  /** Makes a standby the primary; returns when it takes writes. */
  async promote(): Promise<void> {
    const [row] = await this.run<{ done: boolean }>("SELECT pg_promote() AS done");
    if (row?.done !== true) throw new Error("The standby was not promoted.");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(dirname(this.folder), { recursive: true, force: true });
  }

  private async start(): Promise<void> {
    const options = [`port=${this.port}`, "listen_addresses=127.0.0.1", "unix_socket_directories="];
    // It ends with the process that started it, whichever way that ends.
    const child = Bun.spawn(
      command("postgres", ["-D", this.folder, ...options.flatMap((option) => ["-c", option])], "QUIT"),
      { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
    );
    this.process = child;
    const complaints = new Response(child.stderr).text();
    await until(async () => {
      if (!this.isRunning) throw new Error(`PostgreSQL did not start: ${await complaints}`);
      return isReady(this.folder, child.pid);
    }, "PostgreSQL has started");
  }
}

/** A new folder that the server's user may fill, in one that is its too. */
export function ownFolder(): string {
  const parent = mkdtempSync(join(tmpdir(), "flagkeep-test-postgres-"));
  const folder = join(parent, "data");
  mkdirSync(folder, { mode: 0o700 });
  if (asOther !== undefined) Bun.spawnSync(["chown", "-R", "postgres:postgres", parent]);
  return folder;
}

/** What a server writes into its folder once it answers: its process, and at the end whether it is ready. */
export function isReady(folder: string, pid: number): boolean {
  const path = join(folder, "postmaster.pid");
  const lines = existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
  return lines[0] === String(pid) && ["ready", "standby"].includes(lines.at(-1)?.trim() ?? "");
}

function command(program: string, args: readonly string[], deathSignal: "QUIT" | "KILL"): string[] {
  if (postgresPrograms === undefined) throw new Error("PostgreSQL is not installed.");
  return asServerUser([join(postgresPrograms, program), ...args], deathSignal);
}

/** A command as it is run by the server's user. @param deathSignal what it gets when the process that started it ends */
export function asServerUser(words: readonly string[], deathSignal: "QUIT" | "KILL"): string[] {
  return ["setpriv", `--pdeathsig=${deathSignal}`, ...(asOther ?? []), ...words];
}

/** Runs one of the server's programs to its end. */
export async function runProgram(program: string, args: readonly string[]): Promise<void> {
  const child = Bun.spawn(command(program, args, "KILL"), {
    cwd: tmpdir(),
    stdout: "ignore",
    stderr: "pipe",
    env: { PATH: process.env.PATH, LC_ALL: "C" },
  });
  const complaints = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${program}: ${complaints}`);
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself meanwhile.
  }
}

/** Whether a process is there that is not dead already. */
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat[stat.lastIndexOf(")") + 2] !== "Z";
  } catch {
    return false;
  }
}
