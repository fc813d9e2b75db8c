/** Memory for files that are read one after the other. */

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BufferPool } from "../../src/lib/buffer-pool.ts";
import { temporaryFolder } from "../support/server.ts";

const MiB = 1024 * 1024;

test("a file is read unchanged, also into memory that held a longer one", async () => {
  const folder = temporaryFolder();
  const buffers = new BufferPool(8 * MiB);
  const path = join(folder, "file");
  for (const text of ["x".repeat(2 * MiB), "", "short", "y".repeat(MiB)]) {
    writeFileSync(path, text);
    expect((await buffers.readFile(path)).toString()).toBe(text);
    buffers.reuse();
  }
  expect(buffers.readFile(join(folder, "absent"))).rejects.toThrow("ENOENT");
});

test("an acquired buffer is exclusive until it is released", () => {
  const buffers = new BufferPool(8 * MiB);
  const first = buffers.take(100);
  const second = buffers.take(100);
  expect(first.buffer).not.toBe(second.buffer);
  buffers.reuse();
  const again = [buffers.take(100), buffers.take(100), buffers.take(100)].map(({ buffer }) => buffer);
  expect(new Set(again).size).toBe(3);
  expect(again).toContain(first.buffer);
  expect(again).toContain(second.buffer);
});

test("no more is cached than allowed, and nothing after a release", () => {
  const buffers = new BufferPool(3 * MiB);
  const imported = [buffers.take(2 * MiB), buffers.take(2 * MiB)].map(({ buffer }) => buffer);
  buffers.reuse();
  const again = [buffers.take(2 * MiB), buffers.take(2 * MiB)].map(({ buffer }) => buffer);
  expect(again.filter((buffer) => imported.includes(buffer))).toHaveLength(1);
  buffers.release();
  buffers.reuse();
  expect([...imported, ...again]).not.toContain(buffers.take(2 * MiB).buffer);
});

test("one is released alone, as long as there is capacity", () => {
  const buffers = new BufferPool(3 * MiB);
  const first = buffers.take(2 * MiB);
  const second = buffers.take(MiB);
  const third = buffers.take(MiB);
  buffers.recycle(second);
  expect(buffers.take(MiB).buffer).toBe(second.buffer);
  for (const one of [first, third, second, first]) buffers.recycle(one);
  const again = [buffers.take(2 * MiB), buffers.take(MiB), buffers.take(MiB)].map(({ buffer }) => buffer);
  expect(again.slice(0, 2)).toEqual([first.buffer, third.buffer]);
  expect(again[2]).not.toBe(second.buffer);
});
