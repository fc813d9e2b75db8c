/** Webhooks of a cluster: one node sends, whichever of them made the change, and another one after its death. */

import { expect } from "bun:test";
import { isSigned, Receiver } from "../operate/webhooks/support.ts";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { until } from "../support/server.ts";

const test = testWithCluster("webhooks of a cluster");

test("each change is delivered once, and pending ones by another node after the sender died", async () => {
  using receiver = new Receiver();
  await using cluster = await TestCluster.start(2, { args: ["--webhook-allowed-networks", "127.0.0.1"] });
  const [one, other] = cluster.nodes as [(typeof cluster.nodes)[0], (typeof cluster.nodes)[0]];
  const post = async (node: typeof one, path: string, body: object) => {
    const answer = await node.api(`/api/projects/1/${path}/`, { method: "POST", body });
    expect(answer.status).toBe(201);
    return (await answer.json()) as { id: number; secret: string };
  };
  const { secret } = await post(one, "webhooks", { url: `${receiver.url}/hook` });
  for (const [key, node] of [
    ["a", one],
    ["b", other],
    ["c", one],
    ["d", other],
  ] as const)
    await post(node, "feature_flags", { key, _should_create_usage_dashboard: false });
  const keys = () => receiver.received.map(({ body }) => body.data.flag.key);
  await until(() => keys().length >= 4, "every change was delivered");
  expect(keys().sort()).toEqual(["a", "b", "c", "d"]);
  expect(receiver.received.every((request) => isSigned(request, secret))).toBe(true);
  const states = async (node: typeof one) => {
    const answer = await node.api("/api/projects/1/webhooks/1/deliveries/");
    return ((await answer.json()) as { results: { state: string }[] }).results.map(({ state }) => state);
  };
  for (const node of [one, other])
    await until(async () => !(await states(node)).includes("pending"), "both nodes list the results");

  receiver.answer = () => new Promise<Response>(() => undefined);
  const leader = await cluster.leader();
  const survivor = cluster.running.get(1 - leader)!;
  await post(survivor, "feature_flags", { key: "e", _should_create_usage_dashboard: false });
  await until(() => keys().length === 5, "the request is under way");
  receiver.answer = () => new Response("ok");
  await cluster.kill(leader);
  await until(async () => (await states(survivor))[0] === "delivered", "the other node delivers it", 90_000);
  expect(keys().slice(4)).toEqual(["e", "e"]);
}, 180_000);
