/** How soon changes of flags reach the other nodes, and how long a node that hangs delays them. */

import { afterAll, beforeAll, expect } from "bun:test";
import { canRunCluster, TestCluster, testWithCluster } from "../support/cluster.ts";
import { type ServerProcess, until } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";

const test = testWithCluster("flag changes on other nodes");
const flagsPath = "/api/projects/1/feature_flags/";

let cluster: TestCluster;
let one: ServerProcess;
let other: ServerProcess;

if (canRunCluster) {
  beforeAll(async () => {
    cluster = await TestCluster.start(2);
    [one, other] = cluster.nodes as [ServerProcess, ServerProcess];
  }, 60_000);
  afterAll(async () => await cluster[Symbol.asyncDispose]());
}

async function createFlag(key: string): Promise<string> {
  const filters = { groups: [{ properties: [], rollout_percentage: 100 }] };
  const answer = await one.api(flagsPath, { method: "POST", body: { key, filters } });
  expect(answer.status).toBe(201);
  return `${flagsPath}${((await answer.json()) as { id: number }).id}/`;
}

async function isServed(node: ServerProcess, key: string): Promise<boolean> {
  const response = await fetch(`${node.url}/flags/?v=2`, {
    method: "POST",
    body: JSON.stringify({ api_key: cluster.initialized.project.api_key, distinct_id: "kim" }),
  });
  const { flags } = (await response.json()) as { flags: Record<string, { enabled: boolean }> };
  return flags[key]?.enabled === true;
}

test("flags of another node are served within a second after the response to their change", async () => {
  const path = await createFlag("seen-soon");
  await until(() => isServed(other, "seen-soon"), "the flag is served");
  let active = true;
  for (let change = 0; change < 10; change++) {
    const [from, to] = change % 3 === 0 ? [other, one] : [one, other];
    await expectWithin(1_000, async (restartClock) => {
      active = !active;
      expect((await from.api(path, { method: "PATCH", body: { active } })).status).toBe(200);
      restartClock();
      await until(async () => (await isServed(to, "seen-soon")) === active, "the change is served");
    });
  }
}, 60_000);

test("a node that is suspended during a change delays those of others by at most five seconds", async () => {
  const path = await createFlag("delayed");
  const { pid } = one.process;
  const isLocked = async () =>
    (await cluster.ask("SELECT 1 FROM flagkeep.store WHERE name = 'metadata' FOR UPDATE SKIP LOCKED"))
      .length === 0;
  const sent: Promise<unknown>[] = [];
  // Until it is stopped between two statements of a change.
  await until(async () => {
    for (let change = 0; change < 10; change++)
      sent.push(one.api(path, { method: "PATCH", body: { name: `${change}` } }).catch(() => undefined));
    await Bun.sleep(20 * Math.random() + 10);
    process.kill(pid, "SIGSTOP");
    // Twice: the other node may have had it for a moment.
    if ((await isLocked()) && (await isLocked())) return true;
    process.kill(pid, "SIGCONT");
    await Promise.all(sent.splice(0));
    return false;
  }, "it hangs within a change");
  const start = performance.now();
  const answer = await other.api(path, { method: "PATCH", body: { name: "in time" } });
  const delay = performance.now() - start;
  process.kill(pid, "SIGCONT");
  expect(answer.status).toBe(200);
  expect(delay).toBeGreaterThan(1_000);
  expect(delay).toBeLessThan(6_000);
  await Promise.all(sent);
}, 60_000);
