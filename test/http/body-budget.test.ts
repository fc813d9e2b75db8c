/** Bytes of bodies that are held at once. */

import { expect, test } from "bun:test";
import { BodyBudget } from "../../src/http/body-budget.ts";

/** Whether a promise is settled by now. */
const isSettled = (promise: Promise<unknown>) =>
  Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

test("bodies wait in order until there is room, and a small one does not overtake", async () => {
  const budget = new BodyBudget(100);
  const first = await budget.take(60);
  const second = budget.take(50);
  const third = budget.take(10);
  expect(await isSettled(second)).toBe(false);
  expect(await isSettled(third)).toBe(false);
  first();
  const leave = await second;
  (await third)();
  leave();
  (await budget.take(100))();
});

test("one that is larger than everything has it alone", async () => {
  const budget = new BodyBudget(100);
  const leave = await budget.take(1_000);
  const next = budget.take(1);
  expect(await isSettled(next)).toBe(false);
  leave();
  (await next)();
});

test("who waits too long is asked to come again, and those behind go on", async () => {
  const budget = new BodyBudget(100, 20);
  const leave = await budget.take(90);
  const large = budget.take(50).catch((error: unknown) => error);
  expect(await large).toMatchObject({ status: 503, code: "overloaded", headers: { "Retry-After": "5" } });
  (await budget.take(10))();
  leave();
  (await budget.take(100))();
});
