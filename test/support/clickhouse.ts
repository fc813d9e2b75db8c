/** ClickHouse for the tests: `clickhouse/server.ts` as a process of its own, on a folder that outlives it. */

import type { test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./server.ts";
import { isAllowed, testWhen } from "./skipped.ts";

const script = join(import.meta.dir, "clickhouse", "server.ts");
export const hasClickHouse =
  isAllowed("clickhouse") && existsSync(join(import.meta.dir, "clickhouse", "node_modules", "chdb"));

/** `test`, or a skipped one where the engine is not installed. */
export const testWithClickHouse = (what: string): typeof test =>
  testWhen(hasClickHouse, what, "the ClickHouse engine is not installed; run `make clickhouse`");

export type ClickHouseFault =
  | "refuse-insert"
  | "cut-before-insert"
  | "cut-after-insert"
  | "cut-query"
  | "die-before-insert"
  | "die-after-insert"
  | "stall-before-insert"
  | "stall-after-insert"
  | "hold-before-insert"
  | "hold-after-insert";

export interface HeldInserts {
  isHolding: boolean;
  /** Of the insert that was held last. */
  heldName: string | null;
  inserted: number;
  refused: number;
}

export class TestClickHouse implements AsyncDisposable {
  static readonly user = "flagkeep";
  static readonly password = "s3cret/p@ss word";

  private constructor(
    readonly folder: string,
    readonly port: number,
    private process: Process,
  ) {}

  /** @param folder a copy of what another one had. */
  static async start(folder = temporaryFolder()): Promise<TestClickHouse> {
    const { process, port } = await startProcess(folder, 0);
    return new TestClickHouse(folder, port, process);
  }

  /** As a setting names it. */
  url(database: string): string {
    const { user, password } = TestClickHouse;
    return `clickhouse://${user}:${encodeURIComponent(password)}@127.0.0.1:${this.port}/${database}`;
  }

  /** Makes the next inserts or queries fail, or take a second; `die-…` ends the process, `restart` brings it back. */
  async breakNext(kind: ClickHouseFault, times = 1): Promise<void> {
    await fetch(`http://127.0.0.1:${this.port}/.fault?kind=${kind}&times=${times}`, { method: "POST" });
  }

  /**
   * Holds the next insert of events, or its answer, back until `release`.
   * @param isUnnamed inserts have no names until then @param isUndated and no deadlines until the next fault
   */
  async holdInsert(moment: "before" | "after", { isUnnamed = false, isUndated = false } = {}): Promise<void> {
    const fault = `kind=hold-${moment}-insert${isUnnamed ? "&unnamed" : ""}${isUndated ? "&undated" : ""}`;
    await fetch(`http://127.0.0.1:${this.port}/.fault?${fault}`, { method: "POST" });
  }

  async release({ isUndated = false } = {}): Promise<void> {
    const fault = `times=0${isUndated ? "&undated" : ""}`;
    await fetch(`http://127.0.0.1:${this.port}/.fault?${fault}`, { method: "POST" });
  }

  /** Whether an insert is held, its name, and how many inserts of events were done, or rejected by the engine. */
  async inserts(): Promise<HeldInserts> {
    const answer = await fetch(`http://127.0.0.1:${this.port}/.held`);
    return (await answer.json()) as HeldInserts;
  }

  /** Sends a statement as a client does. @returns the answer's lines, parsed */
  async run(sql: string): Promise<unknown[][]> {
    const { user, password } = TestClickHouse;
    const answer = await fetch(`http://127.0.0.1:${this.port}/?default_format=JSONCompactEachRow`, {
      method: "POST",
      headers: { "X-ClickHouse-User": user, "X-ClickHouse-Key": password },
      body: sql,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as unknown[]]));
  }

  get isRunning(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** Ends it in the middle of whatever it does. */
  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.process.exited;
  }

  /** Starts it again on the same port and folder. @param password another one than clients know */
  async restart(password?: string): Promise<void> {
    if (this.isRunning) await this.kill();
    this.process = (await startProcess(this.folder, this.port, password)).process;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

type Process = Bun.Subprocess<"pipe", "pipe", "pipe">;

async function startProcess(
  folder: string,
  port: number,
  password = TestClickHouse.password,
): Promise<{ process: Process; port: number }> {
  const { user } = TestClickHouse;
  const child = Bun.spawn([process.execPath, script, folder, String(port), user, password], {
    // It ends when this process does, whichever way.
    stdin: "pipe",
    stdout: "pipe",
    // It says there what was broken on purpose.
    stderr: "pipe",
  });
  const complaints = new Response(child.stderr).text();
  let text = "";
  for await (const chunk of child.stdout as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const found = /listening (\d+)/.exec(text);
    if (found !== null) return { process: child, port: Number(found[1]) };
  }
  throw new Error(`ClickHouse for the tests did not start: ${await complaints}`);
}
