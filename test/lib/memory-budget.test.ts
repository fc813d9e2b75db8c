import { describe, expect, test } from "bun:test";
import { readConfig } from "../../src/config/read.ts";
import {
  engineMemory,
  memoryBudget,
  memoryShares,
  privateBytes,
  serverPersonCacheBytes,
} from "../../src/lib/memory-budget.ts";

const MiB = 1024 * 1024;

describe("a memory budget", () => {
  test.each([256, 512, 1024, 4096])("of %i MiB is more than the sum of its parts", (size) => {
    const shares = memoryShares(size * MiB);
    const sum = Object.values(shares).reduce((all, share) => all + share, 0);
    expect(sum).toBeLessThanOrEqual((size * MiB) / 2);
    const { stepBytes, privateBytesMax: ownBytesMax, personCacheBytes } = engineMemory(size * MiB);
    expect(ownBytesMax).toBeGreaterThan(shares["duckdb-memory-limit"] + stepBytes.held + personCacheBytes);
    // What was taken in advance is in the event store's memory.
    expect(stepBytes.staged).toBeLessThan(shares["duckdb-memory-limit"]);
    expect(ownBytesMax).toBeLessThan(size * MiB);
  });

  test("bounds the cached pages of persons, which have their default size from 2 GiB on", () => {
    const caches = (size: number) => [
      engineMemory(size * MiB).personCacheBytes / MiB,
      serverPersonCacheBytes(size * MiB) / MiB,
    ];
    expect(caches(256)).toEqual([16, 4]);
    expect(caches(512)).toEqual([32, 8]);
    expect(caches(2048)).toEqual([128, 32]);
    expect(caches(8192)).toEqual([128, 32]);
  });

  test("is the configured one, else that of a small machine or container", () => {
    expect(memoryBudget(512 * MiB, 64 * 1024 * MiB)).toBe(512 * MiB);
    expect(memoryBudget(null, 512 * MiB)).toBe(512 * MiB);
    expect(memoryBudget(null, 64 * 1024 * MiB)).toBeNull();
    expect(memoryBudget(null, 0)).toBeNull();
  });

  test("decides settings that are not configured", () => {
    const flags = { memory: "512MiB" };
    expect(readConfig(flags, {})).toMatchObject(memoryShares(512 * MiB));
    const given = readConfig(
      { ...flags, "duckdb-memory-limit": "100MiB" },
      { FLAGKEEP_BODIES_IN_FLIGHT: "40MiB" },
    );
    expect(given["duckdb-memory-limit"]).toBe(100 * MiB);
    expect(given["bodies-in-flight"]).toBe(40 * MiB);
    expect(given["journal-queue"]).toBe(memoryShares(512 * MiB)["journal-queue"]);
  });

  test("is 256 MiB at least", () => {
    expect(() => readConfig({ memory: "255MiB" }, {})).toThrow("256MiB");
  });
});

test("a process reads its private memory; that of an exited process is unknown", () => {
  expect(privateBytes()).toBeGreaterThan(MiB);
  expect(privateBytes(process.pid)).toBeGreaterThan(MiB);
  expect(privateBytes(2 ** 22 + 1)).toBe(0);
});
