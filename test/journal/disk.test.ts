/** How much of a volume the journal keeps free, and for what. */

import { expect, test } from "bun:test";
import {
  bytesNeededToAccept,
  bytesNeededToCheckpoint,
  bytesNeededToLoad,
  diskCost,
  loadableBytes,
  reservedBytes,
} from "../../src/journal/disk.ts";

const MiB = 1024 * 1024;

test("the reserve is what was set, and of a small volume a twentieth", () => {
  expect(reservedBytes(512 * MiB, 100_000 * MiB)).toBe(512 * MiB);
  expect(reservedBytes(512 * MiB, 1_000 * MiB)).toBe(50 * MiB);
});

test("loadableBytes is the inverse of bytesNeededToLoad, with a margin", () => {
  for (const bytes of [MiB, 7 * MiB, 64 * MiB]) {
    expect(loadableBytes(bytesNeededToLoad(bytes) + 2 * MiB)).toBe(bytes);
    expect(bytesNeededToLoad(2 * bytes) - bytesNeededToLoad(bytes)).toBe(2.5 * bytes);
  }
  expect(loadableBytes(9 * MiB)).toBeLessThan(0);
});

test("new entries need their own space and the space to load them", () => {
  const reserve = 100 * MiB;
  const unloaded = 20 * MiB;
  const unwritten = 30 * MiB;
  const before = bytesNeededToAccept(reserve, { unloaded, unwritten });
  expect(before).toBeGreaterThan(reserve + bytesNeededToLoad(unloaded) + unwritten);
  expect(bytesNeededToAccept(reserve, { unloaded: unloaded + MiB, unwritten }) - before).toBe(2.5 * MiB);
  expect(bytesNeededToAccept(reserve, { unloaded, unwritten: unwritten + MiB }) - before).toBe(MiB);
  expect(diskCost(MiB)).toBe(3.5 * MiB);
  expect(bytesNeededToCheckpoint(MiB)).toBe(3 * MiB);
});
