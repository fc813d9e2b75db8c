/** Senders over several nodes that write down what was acknowledged, and the judgement on what is stored at the end. */

import { expect } from "bun:test";
import { getDigest } from "../kill-test/adapter.ts";
import { described, isClean, judge, type Sent, type Stored } from "../kill-test/checker.ts";
import type { TestCluster } from "./cluster.ts";
import { until } from "./server.ts";

const name = "load";
const batchMax = 40;
const textMax = 600;
const people = 30;
/** A share of the batches goes to two nodes at once; another one is sent again when it was acknowledged. */
const shareTwice = 0.05;
const patienceMs = 15_000;
/** Between the batches of a sender, so that there are not more events than can be looked at. */
const pauseMs = 40;

interface LoadEvent {
  id: string;
  number: number;
  text: string;
}

interface Sender {
  name: string;
  /** API key of its project. */
  token: string;
}

export class ClusterLoad {
  /** What the senders know, in the order in which they came to know it. */
  readonly log: Sent[] = [];
  private isOver = false;
  private readonly senders: Promise<void>[];

  /** Begins at once. @param random chooses nodes, sizes and what is sent twice */
  constructor(
    private readonly cluster: TestCluster,
    private readonly random: () => number,
    {
      senders = 4,
      historical = 2,
      /** API keys of projects, assigned to the senders in rotation. */
      tokens = [cluster.initialized.project.api_key] as readonly string[],
    } = {},
  ) {
    this.senders = Array.from({ length: senders + historical }, (_, index) =>
      this.send(
        {
          name: `sender-${cluster.initialized.project.api_key.length}-${index}-${Bun.randomUUIDv7()}`,
          token: tokens[index % tokens.length]!,
        },
        index >= senders,
      ),
    );
  }

  get acknowledged(): number {
    return this.log.reduce(
      (sum, { outcome, events }) => sum + (outcome === "acknowledged" ? events.length : 0),
      0,
    );
  }

  /** Waits until this many further events are acknowledged. */
  async further(count: number): Promise<void> {
    const before = this.acknowledged;
    await until(() => this.acknowledged >= before + count, `${count} further events are acknowledged`);
  }

  /** Ends it when everything that is on its way is acknowledged. */
  async stop(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.senders);
  }

  private async send(sender: Sender, historical: boolean): Promise<void> {
    for (let number = 0; !this.isOver; ) {
      const events = Array.from({ length: 1 + Math.floor(this.random() * batchMax) }, (): LoadEvent => {
        number += 1;
        return {
          id: Bun.randomUUIDv7(),
          number,
          text: "é".repeat(Math.floor(this.random() * textMax)) + number,
        };
      });
      const chance = this.random();
      const isAcknowledged =
        chance < shareTwice
          ? (await Promise.all([0, 1].map(() => this.deliver(sender, events, historical)))).includes(true)
          : await this.deliver(sender, events, historical);
      if (chance > 1 - shareTwice) await this.deliver(sender, events, historical);
      this.log.push({
        sender: sender.name,
        historical,
        outcome: isAcknowledged ? "acknowledged" : "unknown",
        events: events.map(({ id, number: its, text }) => ({ id, number: its, digest: getDigest(text) })),
      });
      await Bun.sleep(pauseMs);
    }
  }

  /** Tries one node after the other, as SDKs behind a balancer do. @returns whether one of them has taken it */
  private async deliver(
    { name: sender, token }: Sender,
    events: readonly LoadEvent[],
    historical: boolean,
  ): Promise<boolean> {
    const body = JSON.stringify({
      api_key: token,
      historical_migration: historical,
      batch: events.map(({ id, number, text }) => ({
        event: name,
        uuid: id,
        distinct_id: `person-${number % people}`,
        timestamp: new Date().toISOString(),
        properties: { sender, number, text, $set: { number } },
      })),
    });
    for (const end = performance.now() + 4 * patienceMs; performance.now() < end; ) {
      const running = this.cluster.nodes;
      const node = running[Math.floor(this.random() * running.length)];
      const response = await fetch(`${node?.url ?? "http://127.0.0.1:1"}/batch/`, {
        method: "POST",
        body,
        signal: AbortSignal.timeout(patienceMs),
      }).catch(() => undefined);
      if (response?.status === 200) return true;
      if (response !== undefined && response.status !== 503)
        throw new Error(`/batch/ answered ${response.status}: ${await response.text()}`);
      await Bun.sleep(20);
    }
    return false;
  }
}

/** Merges would remove duplicate rows before a test could see them. */
export async function stopMerges({ clickhouse }: TestCluster): Promise<void> {
  await until(
    () =>
      clickhouse.run("SYSTEM STOP MERGES flagkeep.events").then(
        () => true,
        () => false,
      ),
    "the table of events is there",
  );
}

/** ClickHouse dies after its next insert and is started again. */
export async function crashClickHouse(cluster: TestCluster): Promise<void> {
  const { clickhouse } = cluster;
  await clickhouse.breakNext("die-after-insert");
  await until(() => !clickhouse.isRunning, "the server has died");
  await clickhouse.restart();
  await stopMerges(cluster);
}

/** Every node's queries count what is stored, in all projects together. */
async function expectQueriesCount({ nodes }: TestCluster, stored: number): Promise<void> {
  const answer = await nodes[0]!.api("/api/projects/?limit=100");
  const projects = ((await answer.json()) as { results: { id: number }[] }).results;
  const query = { kind: "TrendsQuery", series: [{ event: name }], dateRange: { date_from: "all" } };
  const body = { refresh: "force_blocking", query };
  for (const node of nodes) {
    let counted = 0;
    for (const { id } of projects)
      counted += await until(async () => {
        const response = await node.api(`/api/projects/${id}/query/`, { method: "POST", body });
        if (response.status === 503) return undefined;
        if (response.status !== 200) throw new Error(`query: ${response.status} ${await response.text()}`);
        return ((await response.json()) as { results: { count: number }[] }).results[0]?.count ?? 0;
      }, "the query is answered");
    expect(counted).toBe(stored);
  }
}

/** Everything acknowledged is stored once, counted once, by queries too, and in order; and the journal is empty. */
export async function expectAllOnce(cluster: TestCluster, log: readonly Sent[]): Promise<void> {
  await cluster.everythingIsLoaded();
  const rows = await cluster.clickhouse.run(
    `SELECT toString(uuid), JSONExtractString(properties, 'sender'), JSONExtractInt(properties, 'number'),
       JSONExtractString(properties, 'text') FROM flagkeep.events WHERE event = '${name}' ORDER BY historical, seq`,
  );
  const stored = rows.map(
    ([id, sender, number, text]): Stored => ({
      id: String(id),
      sender: String(sender),
      number: Number(number),
      digest: getDigest(String(text)),
    }),
  );
  const report = judge(log, stored);
  expect({ isClean: isClean(report), report: described(report) }).toEqual({
    isClean: true,
    report: expect.any(String),
  });
  expect(report.acknowledged).toBeGreaterThan(100);
  await expectQueriesCount(cluster, report.stored);
  const [all] = await cluster.clickhouse.run("SELECT count() FROM flagkeep.events");
  const count = "SELECT sum(identified + anonymous + historical) AS events FROM usage_day";
  const [counted] = await cluster.askPeople<{ events: number }>(count);
  // What all nodes know tells where it went wrong.
  const copies = cluster.nodes.map((node) => [
    ...cluster.askPersonsOf(node, count),
    ...cluster.askPersonsOf(node, "SELECT lane, seq FROM lane_cursor"),
    ...cluster.askPersonsOf(node, "SELECT revision, commit_id FROM copy_state"),
  ]);
  expect({ counted: counted!.events, copies }).toEqual({
    counted: Number(all![0]),
    copies: expect.anything(),
  });
}
