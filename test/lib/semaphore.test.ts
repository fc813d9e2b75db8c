import { expect, test } from "bun:test";
import fc from "fast-check";
import { CapacityExceededError, Semaphore } from "../../src/lib/concurrency.ts";

test("never exceeds its limits, serves every caller, and runs exclusive callers alone", async () => {
  const work = fc.record({
    key: fc.integer({ min: 1, max: 4 }),
    isAlone: fc.boolean(),
    turns: fc.integer({ min: 0, max: 5 }),
    isAborted: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(work, { maxLength: 40 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 3 }),
      async (works, total, perKey) => {
        const semaphore = new Semaphore({ total, perKey, waiting: 100 });
        const running: { key: number; isAlone: boolean }[] = [];
        let done = 0;
        await Promise.all(
          works.map(async ({ key, isAlone, turns, isAborted }) => {
            const controller = new AbortController();
            if (isAborted) setImmediate(() => controller.abort("gone"));
            let leave: () => void;
            try {
              leave = await semaphore.enter(key, { signal: controller.signal, isAlone });
            } catch (reason) {
              expect(reason).toBe("gone");
              done += 1;
              return;
            }
            const mine = { key, isAlone };
            running.push(mine);
            expect(running.length).toBeLessThanOrEqual(total);
            expect(running.filter((one) => one.key === key).length).toBeLessThanOrEqual(perKey);
            if (running.some((one) => one.isAlone)) expect(running).toHaveLength(1);
            for (let turn = 0; turn < turns; turn++) await Promise.resolve();
            running.splice(running.indexOf(mine), 1);
            leave();
            leave();
            done += 1;
          }),
        );
        expect(done).toBe(works.length);
        // Everything is free again.
        (await semaphore.enter(1, { isAlone: true }))();
      },
    ),
    { numRuns: 200 },
  );
});

test("a key that has its share does not hold up the others; the queue is bounded", async () => {
  const semaphore = new Semaphore({ total: 2, perKey: 1, waiting: 2 });
  const first = await semaphore.enter(1);
  let isThird = false;
  const third = semaphore.enter(1).then((leave) => {
    isThird = true;
    return leave;
  });
  const other = await semaphore.enter(2);
  expect(isThird).toBe(false);
  const fourth = semaphore.enter(2);
  await expect(semaphore.enter(3)).rejects.toBeInstanceOf(CapacityExceededError);
  first();
  (await third)();
  other();
  (await fourth)();
});
