/** Bytes of bodies that are held at once. */

import { expect, test } from "bun:test";
import { BodyBudget, BodyReader } from "../../src/http/body.ts";
import { IncompleteBodyError } from "../../src/http/decode/errors.ts";

/** Whether a promise is settled by now. */
const isSettled = (promise: Promise<unknown>) =>
  Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

test("bodies wait in order for capacity, and a small one does not overtake", async () => {
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

test("a body that waits too long gets Retry-After; later ones continue", async () => {
  const budget = new BodyBudget(100, 20);
  const leave = await budget.take(90);
  const large = budget.take(50).catch((error: unknown) => error);
  expect(await large).toMatchObject({ status: 503, code: "overloaded", headers: { "Retry-After": "5" } });
  (await budget.take(10))();
  leave();
  (await budget.take(100))();
});

const kib = 1024;
const mib = 1024 * kib;

/** A body whose length is not announced, as it comes in. */
class Growing {
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  private readonly body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.controller = controller;
    },
  });
  /** When the request is over. */
  release = () => {};

  read(bodies: BodyReader): Promise<Uint8Array> {
    const request = new Request("http://localhost/batch/", { method: "POST", body: this.body });
    return bodies.read(request, 20 * mib, (release) => {
      this.release = release;
    });
  }

  send(bytes: number): this {
    this.controller.enqueue(new Uint8Array(bytes));
    return this;
  }

  end(): this {
    this.controller.close();
    return this;
  }
}

const limits = { bytesMax: 20 * mib, apiBytesMax: mib, inFlightBytesMax: 4 * mib };

test("bodies without a length need no capacity while they are small", async () => {
  const bodies = new BodyReader(limits);
  const unfinished = Array.from({ length: 30 }, () => new Growing());
  const reads = unfinished.map((one) => one.send(kib).read(bodies));
  const whole = await new Growing().send(kib).send(kib).end().read(bodies);
  expect(whole.length).toBe(2 * kib);
  for (const one of unfinished) one.end();
  expect((await Promise.all(reads)).map(({ length }) => length)).toEqual(Array(30).fill(kib));
});

test("those that grow wait for capacity, and are not timed out for it", async () => {
  const bodies = new BodyReader({ ...limits, patienceMs: 50 });
  const first = new Growing().send(100 * kib).end();
  expect((await first.read(bodies)).length).toBe(100 * kib);
  const second = new Growing()
    .send(kib)
    .send(100 * kib)
    .end();
  const waiting = second.read(bodies);
  // A large one does not take the room of the usual ones, nor they its.
  const large = new Growing()
    .send(2 * mib)
    .send(2 * mib)
    .end();
  expect((await large.read(bodies)).length).toBe(4 * mib);
  await expect(new Growing().send(kib).read(bodies)).rejects.toBeInstanceOf(IncompleteBodyError);
  expect(await isSettled(waiting)).toBe(false);
  first.release();
  expect((await waiting).length).toBe(101 * kib);
  second.release();
  large.release();
  expect(
    (
      await new Growing()
        .send(3 * mib)
        .end()
        .read(bodies)
    ).length,
  ).toBe(3 * mib);
});

test("one that would be too large is rejected where that shows", async () => {
  const bodies = new BodyReader({ ...limits, inFlightBytesMax: 64 * mib });
  const growing = new Growing().send(19 * mib).send(2 * mib);
  expect(await growing.read(bodies).catch((error: unknown) => error)).toMatchObject({ status: 413 });
});
