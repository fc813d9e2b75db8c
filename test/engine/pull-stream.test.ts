/** Bytes that are created while they are read: failures, readers who leave, and whose time it is. */

import { expect, test } from "bun:test";
import { pullStream } from "../../src/engine/pull-stream.ts";

const bytes = (text: string) => Buffer.from(text);
const ignore = () => undefined;

test("all chunks arrive, one at a time, and then the end", async () => {
  const created: string[] = [];
  const answer = await pullStream(async (sink) => {
    for (const text of ["a", "", "b", "c"]) {
      created.push(text);
      await sink(bytes(text));
    }
  }, ignore);
  expect(created).toEqual(["a"]);
  expect((await answer.chunks.next()).value?.toString()).toBe("a");
  expect((await answer.chunks.next()).value?.toString()).toBe("b");
  expect(created).toEqual(["a", "", "b"]);
  expect((await answer.chunks.next()).value?.toString()).toBe("c");
  expect(await answer.chunks.next()).toEqual({ done: true, value: undefined });
});

test("nothing at all is an end, too", async () => {
  const answer = await pullStream(async () => undefined, ignore);
  expect(await answer.chunks.next()).toEqual({ done: true, value: undefined });
});

test("a failure before the first bytes is one of the question, a later one breaks the answer off", async () => {
  await expect(pullStream(() => Promise.reject(new Error("early")), ignore)).rejects.toThrow("early");
  const answer = await pullStream(async (sink) => {
    await sink(bytes("a"));
    throw new Error("late");
  }, ignore);
  expect((await answer.chunks.next()).value?.toString()).toBe("a");
  await expect(answer.chunks.next()).rejects.toThrow("late");
});

test("who stops reading ends the work", async () => {
  let ended: unknown;
  const answer = await pullStream(
    (sink, signal) =>
      (async () => {
        for (;;) await sink(bytes(`${signal.aborted}`));
      })().catch((error) => {
        ended = error;
        throw error;
      }),
    ignore,
  );
  await answer.chunks.next();
  await answer.chunks.return();
  expect(ended).toBeDefined();
});

test("the time of the reader is counted separately", async () => {
  let waited = 0;
  const answer = await pullStream(
    async (sink) => {
      await sink(bytes("a"));
      await sink(bytes("b"));
    },
    (ms) => {
      waited += ms;
    },
  );
  await answer.chunks.next();
  await Bun.sleep(50);
  await answer.chunks.next();
  await answer.chunks.next();
  expect(waited).toBeGreaterThan(40);
});
