/** Several fronts of the compiled executable on one PostgreSQL and one ClickHouse, as users run them. */

import type { test } from "bun:test";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { flagkeep, type Initialised, TestAppliance, temporaryFolder, until } from "./appliance.ts";
import { hasClickHouse, TestClickHouse } from "./clickhouse.ts";
import { hasPostgres, startPostgres, type TestPostgres } from "./postgres.ts";
import { testWhen } from "./skipped.ts";

/** `test`, or a skipped one where PostgreSQL or the ClickHouse engine is not installed. */
export const testWithFronts = (what: string): typeof test =>
  testWhen(hasPostgres && hasClickHouse, what, "PostgreSQL or the ClickHouse engine is not installed");

const database = "flagkeep";

/** What the fronts share, and those that run. */
export class TestFronts implements AsyncDisposable {
  /** Keys for all of them; whole once the first one runs. */
  readonly made = { project: { id: 1, api_key: "phc_severalFronts" } } as Initialised;
  standby: TestPostgres | undefined;
  readonly running = new Map<number, TestAppliance>();
  private readonly folders = new Map<number, string>();

  private constructor(
    readonly postgres: TestPostgres,
    readonly clickhouse: TestClickHouse,
    private readonly args: readonly string[],
  ) {}

  /** Starts the databases, without fronts. @param args further settings of every front */
  static async prepare({ standby = false, args = [] as readonly string[] } = {}): Promise<TestFronts> {
    const [postgres, clickhouse] = await Promise.all([startPostgres(), TestClickHouse.start()]);
    const fronts = new TestFronts(postgres, clickhouse, args);
    await Promise.all([postgres.create(database), clickhouse.run(`CREATE DATABASE ${database}`)]);
    if (standby) fronts.standby = await postgres.standby();
    return fronts;
  }

  /** Starts so many fronts on new data directories, the first of them alone. */
  static async start(
    count: number,
    options: { standby?: boolean; args?: readonly string[] } = {},
  ): Promise<TestFronts> {
    const fronts = await TestFronts.prepare(options);
    await fronts.startFront(0);
    await Promise.all(Array.from({ length: count - 1 }, (_, index) => fronts.startFront(index + 1)));
    return fronts;
  }

  /** As `--postgres-url` names it: all servers, the primary of the start first. */
  get postgresUrl(): string {
    const hosts = [this.postgres, ...(this.standby === undefined ? [] : [this.standby])].map(
      ({ host }) => host,
    );
    return `postgres://postgres@${hosts.join(",")}/${database}`;
  }

  /** The server that takes writes, asked at its own address. */
  get primary(): TestPostgres {
    return this.postgres.isRunning || this.standby === undefined ? this.postgres : this.standby;
  }

  /** What every front is started with. */
  get settings(): string[] {
    return [
      ...["--postgres-url", this.postgresUrl, "--events-url", this.clickhouse.url(database)],
      ...this.args,
    ];
  }

  /** The fronts that run, in their order. */
  get fronts(): TestAppliance[] {
    return [...this.running].sort(([one], [other]) => one - other).map(([, front]) => front);
  }

  /** Starts one, again on the same data directory after an end. */
  async startFront(number: number): Promise<TestAppliance> {
    const dataDir = this.folders.get(number) ?? join(temporaryFolder(), "data");
    this.folders.set(number, dataDir);
    const front = await TestAppliance.start({
      args: [...this.settings, "--project-api-key", this.made.project.api_key],
      directory: { dataDir, made: this.made },
    });
    this.running.set(number, front);
    if (this.made.personal_api_key === undefined) await this.makeKey(dataDir);
    return front;
  }

  /** Ends a front as a crash would, its engine after it. */
  async kill(number: number): Promise<void> {
    const front = this.running.get(number);
    this.running.delete(number);
    await front?.kill();
  }

  /** Runs a statement in PostgreSQL. */
  async ask<Row = Record<string, unknown>>(statement: string): Promise<Row[]> {
    return await this.primary.run<Row>(statement, database);
  }

  /** Which of the fronts' engines loads events. */
  async leader(): Promise<number> {
    return await until(async () => {
      for (const [number, front] of this.running) {
        const answer = await front.api("/api/instance/status/").catch(() => undefined);
        if (answer?.status !== 200) continue;
        const { shared } = (await answer.json()) as {
          shared: { fronts: { is_this: boolean; loads_events: boolean }[] };
        };
        if (shared.fronts.some((each) => each.is_this && each.loads_events)) return number;
      }
      return undefined;
    }, "a front loads events");
  }

  /** Waits until nothing is left in the journal. */
  async everythingIsLoaded(): Promise<void> {
    await until(
      async () => {
        const [row] = await this.ask<{ left: number }>("SELECT count(*)::int AS left FROM flagkeep.journal");
        return row!.left === 0;
      },
      "the journal is empty",
      60_000,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const number of [...this.running.keys()]) await this.kill(number);
    await this.clickhouse[Symbol.asyncDispose]();
    await this.standby?.[Symbol.asyncDispose]();
    await this.postgres[Symbol.asyncDispose]();
    for (const folder of this.folders.values()) rmSync(dirname(folder), { recursive: true, force: true });
  }

  private async makeKey(dataDir: string): Promise<void> {
    const args = ["keys", "create", "--scope", "*", "--label", "tests", "--json", "--data-dir", dataDir];
    const { stdout, stderr, code } = await flagkeep(args);
    if (code !== 0) throw new Error(`flagkeep keys create failed: ${stderr}`);
    this.made.personal_api_key = (JSON.parse(stdout) as { value: string }).value;
  }
}
