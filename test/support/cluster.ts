/** Several nodes of the compiled executable on one PostgreSQL and one ClickHouse, as users run them. */

import { Database } from "bun:sqlite";
import type { test } from "bun:test";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Server } from "bun";
import { hasClickHouse, TestClickHouse } from "./clickhouse.ts";
import { hasPostgres, startPostgres, type TestPostgres } from "./postgres.ts";
import { flagkeep, type Initialized, ServerProcess, temporaryFolder, until } from "./server.ts";
import { testWhen } from "./skipped.ts";

/** Whether everything that they need is installed. */
export const canRunCluster = hasPostgres && hasClickHouse;

/** `test`, or a skipped one where PostgreSQL or the ClickHouse engine is not installed. */
export const testWithCluster = (what: string): typeof test =>
  testWhen(canRunCluster, what, "PostgreSQL or the ClickHouse engine is not installed");

const database = "flagkeep";

/** A successor waits for the lease and for the deadline of the last insert, and a full machine is slow to start it. */
export const takeoverMs = 120_000;

/** What the nodes share, and those that run. */
export class TestCluster implements AsyncDisposable {
  /** Keys for all of them; whole once the first one runs. */
  readonly initialized = { project: { id: 1, api_key: "phc_severalFronts" } } as Initialized;
  standby: TestPostgres | undefined;
  readonly running = new Map<number, ServerProcess>();
  private readonly folders = new Map<number, string>();

  private constructor(
    /** The primary. */
    public postgres: TestPostgres,
    readonly clickhouse: TestClickHouse,
    private readonly args: readonly string[],
  ) {}

  /** Starts the databases, without nodes. @param args further settings of every node */
  static async prepare({ standby = false, args = [] as readonly string[] } = {}): Promise<TestCluster> {
    const [postgres, clickhouse] = await Promise.all([startPostgres(), TestClickHouse.start()]);
    const cluster = new TestCluster(postgres, clickhouse, args);
    await Promise.all([postgres.create(database), clickhouse.run(`CREATE DATABASE ${database}`)]);
    if (standby) cluster.standby = await postgres.standby();
    return cluster;
  }

  /** Nodes are started on an existing cluster; they need the key of its project. */
  static over(postgres: TestPostgres, clickhouse: TestClickHouse): TestCluster {
    return new TestCluster(postgres, clickhouse, []);
  }

  /** Starts nodes on new data directories, the first of them alone. */
  static async start(
    count: number,
    options: { standby?: boolean; args?: readonly string[] } = {},
  ): Promise<TestCluster> {
    const cluster = await TestCluster.prepare(options);
    try {
      await cluster.startNode(0);
      await Promise.all(Array.from({ length: count - 1 }, (_, index) => cluster.startNode(index + 1)));
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** As `--postgres-url` names it: always the same servers, whichever of them is the primary. */
  get postgresUrl(): string {
    const servers = [this.postgres, ...(this.standby === undefined ? [] : [this.standby])];
    const hosts = servers.map(({ host }) => host).sort();
    return `postgres://postgres@${hosts.join(",")}/${database}`;
  }

  /** What every node is started with. */
  get settings(): string[] {
    return ["--postgres-url", this.postgresUrl, "--events-url", this.clickhouse.url(database), ...this.args];
  }

  /** The nodes that run, in their order. */
  get nodes(): ServerProcess[] {
    return [...this.running].sort(([one], [other]) => one - other).map(([, node]) => node);
  }

  /** Starts a node, again on the same data directory after it ended. @param onLog receives each line of its log */
  async startNode(number: number, onLog?: (line: Record<string, unknown>) => void): Promise<ServerProcess> {
    const dataDir = this.folders.get(number) ?? join(temporaryFolder(), "data");
    this.folders.set(number, dataDir);
    const node = await ServerProcess.start({
      onLog,
      args: [...this.settings, "--project-api-key", this.initialized.project.api_key],
      directory: { dataDir, initialized: this.initialized },
    });
    this.running.set(number, node);
    if (this.initialized.personal_api_key === undefined) await this.makeKey(dataDir);
    return node;
  }

  /** Creates projects until there are as many, known to all nodes. @returns their API keys, the first project's first */
  async createProjects(count: number): Promise<string[]> {
    const tokens = [this.initialized.project.api_key];
    while (tokens.length < count) {
      const body = { name: `project ${tokens.length}` };
      const created = await this.nodes[0]!.api("/api/projects/", { method: "POST", body });
      if (created.status !== 201) throw new Error(`projects: ${created.status} ${await created.text()}`);
      tokens.push(((await created.json()) as { api_token: string }).api_token);
    }
    const isKnown = async (node: ServerProcess, api_key: string) =>
      (await node.post("/flags/?v=2", { api_key, distinct_id: "kim" })).status === 200;
    for (const node of this.nodes)
      for (const token of tokens) await until(() => isKnown(node, token), "the node knows the key");
    return tokens;
  }

  /** Ends a node as a crash would, its engine after it. */
  async kill(number: number): Promise<void> {
    const node = this.running.get(number);
    this.running.delete(number);
    await node?.kill();
  }

  /** Runs a statement in PostgreSQL. */
  async ask<Row = Record<string, unknown>>(statement: string): Promise<Row[]> {
    return await this.postgres.run<Row>(statement, database);
  }

  /** Queries a running node's replica of the person store; that of the loader is the newest. */
  async askPeople<Row = Record<string, unknown>>(statement: string): Promise<Row[]> {
    return this.askPersonsOf(this.running.get(await this.leader())!, statement);
  }

  /** The same on a given node. */
  askPersonsOf<Row = Record<string, unknown>>(node: ServerProcess, statement: string): Row[] {
    const people = new Database(join(node.dataDir, "people.sqlite"), { readonly: true });
    try {
      return people.query<Row, []>(statement).all();
    } finally {
      people.close();
    }
  }

  /** Waits until one of the running nodes' engines loads events. @returns its number */
  async leader(): Promise<number> {
    return await until(async () => {
      const [row] = await this.ask<{ name: string }>(
        "SELECT name FROM flagkeep.lease JOIN flagkeep.front ON front.id = lease.front WHERE holder IS NOT NULL AND beat_at > clock_timestamp() - interval '6 seconds'",
      );
      const isLeader = ({ url }: ServerProcess) => row?.name.endsWith(` ${url}`);
      return [...this.running].find(([, node]) => isLeader(node))?.[0];
    }, "a front loads events");
  }

  /** Ends a node and its engine at the same moment, so that the engine cannot hand over. */
  async killWithEngine(number: number): Promise<void> {
    const node = this.running.get(number)!;
    this.running.delete(number);
    for (const pid of [...(await node.enginePids()), node.process.pid]) process.kill(pid, "SIGKILL");
    await node.process.exited;
  }

  /** Kills a node with its engine and starts it again. */
  async restart(number: number): Promise<void> {
    await this.killWithEngine(number);
    await this.startNode(number);
  }

  /** Suspends a node and its engine; until it resumes, it is not one of the running ones. @returns resumes it */
  async suspend(number: number): Promise<() => void> {
    const node = this.running.get(number)!;
    const pids = [node.process.pid, ...(await node.enginePids())];
    this.running.delete(number);
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    return () => {
      for (const pid of pids) process.kill(pid, "SIGCONT");
      this.running.set(number, node);
    };
  }

  /** Runs `flagkeep cluster`. @returns its output @throws if it fails or warns */
  async command(...words: string[]): Promise<string> {
    const args = ["cluster", ...words, "--postgres-url", this.postgresUrl];
    const { stdout, stderr, code } = await flagkeep(args);
    if (code !== 0 || stderr !== "") throw new Error(`cluster ${words.join(" ")}: ${code} ${stderr}`);
    return stdout;
  }

  /** Kills the primary and promotes the standby, which gets one itself in the place of the dead one. */
  async failOver(): Promise<void> {
    const dead = this.postgres;
    await dead.kill();
    await this.standby!.promote();
    this.postgres = this.standby!;
    this.standby = await this.postgres.standby(dead.port);
    await dead[Symbol.asyncDispose]();
  }

  /** Waits until nothing is left in the journal, as long as some of it is loaded now and then. */
  async everythingIsLoaded(): Promise<void> {
    for (let before = ""; ; ) {
      const state = await until(
        async () => {
          const rows = await this.ask<{ lane: string; entries: number; first: number }>(
            "SELECT lane, sum(entries)::int AS entries, min(first_seq)::float8 AS first FROM flagkeep.journal GROUP BY lane",
          );
          const seen = JSON.stringify(rows);
          return seen !== before && seen;
        },
        `more is loaded than of ${before}`,
        60_000,
      );
      if (state === "[]") return;
      before = state;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const number of [...this.running.keys()]) await this.kill(number);
    await this.clickhouse[Symbol.asyncDispose]();
    await this.standby?.[Symbol.asyncDispose]();
    await this.postgres[Symbol.asyncDispose]();
    for (const folder of this.folders.values()) rmSync(dirname(folder), { recursive: true, force: true });
  }

  private async makeKey(dataDir: string): Promise<void> {
    const place = ["--data-dir", dataDir, "--postgres-url", this.postgresUrl];
    const args = ["keys", "create", "--scope", "*", "--label", "tests", "--json", ...place];
    const { stdout, stderr, code } = await flagkeep(args);
    if (code !== 0) throw new Error(`flagkeep keys create failed: ${stderr}`);
    this.initialized.personal_api_key = (JSON.parse(stdout) as { value: string }).value;
    const project = (await (await this.nodes[0]!.api("/api/projects/1/")).json()) as {
      secret_api_token: string;
    };
    this.initialized.project.secret_api_key = project.secret_api_token;
  }
}

/** Forwards each request unchanged to the next node. */
export function startBalancer(nodes: readonly ServerProcess[]): Server<undefined> {
  let turn = 0;
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    fetch(request) {
      turn += 1;
      const { pathname, search } = new URL(request.url);
      const { method, headers, body } = request;
      return fetch(`${nodes[turn % nodes.length]!.url}${pathname}${search}`, {
        method,
        headers,
        body,
        redirect: "manual",
        decompress: false,
      } as RequestInit);
    },
  });
}

/** Nodes behind one address. */
export async function startBehindBalancer(count: number): Promise<ServerProcess> {
  const cluster = await TestCluster.start(count);
  const balancer = startBalancer(cluster.nodes);
  return cluster.nodes[0]!.at(balancer.url.href.replace(/\/$/, ""), async () => {
    balancer.stop(true);
    await cluster[Symbol.asyncDispose]();
  });
}
