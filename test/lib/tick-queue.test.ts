import { expect, test } from "bun:test";
import { TickQueue } from "../../src/lib/concurrency.ts";

test("each tick of the event loop runs one job, and waiting jobs run in order", async () => {
  const turns = new TickQueue();
  const order: string[] = [];
  const work = (who: string, name: string) => turns.next(who).then(() => order.push(name));
  const all = Promise.all([
    ...["a1", "a2", "a3", "a4"].map((name) => work("a", name)),
    ...["b1", "b2"].map((name) => work("b", name)),
    work("c", "c1"),
  ]);
  for (let loops = 1; loops <= 7; loops++) {
    await new Promise(setImmediate);
    expect(order).toHaveLength(loops);
  }
  await all;
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
});

test("a job that arrives after many of another user is the next but one", async () => {
  const turns = new TickQueue();
  const order: string[] = [];
  const crowd = Array.from({ length: 100 }, () => turns.next("crowd").then(() => order.push("crowd")));
  await new Promise(setImmediate);
  const late = turns.next("late").then(() => order.push("late"));
  await late;
  expect(order.length).toBeLessThanOrEqual(3);
  await Promise.all(crowd);
  expect(order).toHaveLength(101);
});
