/** What the engine and its front say to each other, line by line. */

import { expect, test } from "bun:test";
import { readMessages } from "../../src/engine/messages.ts";
import { expectWithin } from "../support/times.ts";

const inChunks = (bytes: Uint8Array, size: number) => {
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.subarray(at, at + size));
      at += size;
    },
  });
};

async function read(text: string, size: number): Promise<unknown[]> {
  const found: unknown[] = [];
  await readMessages(inChunks(Buffer.from(text), size), (message) => found.push(message));
  return found;
}

test("messages are reassembled from any chunks of the pipe; other lines are ignored", async () => {
  const messages = [{ a: "größe 😀" }, { b: [1, 2] }, {}, { c: "x".repeat(100) }];
  const text = `\nnot one\n${messages.map((one) => `${JSON.stringify(one)}\n`).join("")}{"begun":`;
  for (const size of [1, 2, 3, 7, 64, 10_000]) expect(await read(text, size)).toEqual(messages);
});

test("time grows linearly with length", async () => {
  const message = { text: "x".repeat(10_000_000) };
  const text = `${JSON.stringify(message)}\n`;
  await expectWithin(1_000, async () => expect(await read(text, 4_096)).toEqual([message]));
});
