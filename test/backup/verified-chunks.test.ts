/** Which pieces of earlier backups are read again, and which are not counted on. */

import { describe, expect, test } from "bun:test";
import { zstdCompressSync } from "node:zlib";
import type { IndexedChunk } from "../../src/backup/chunk-index.ts";
import { VerifiedChunks, writtenChunk } from "../../src/backup/chunks.ts";
import { chunkKey, type Destination } from "../../src/backup/destination.ts";
import { BackupNotFoundError, DestinationError } from "../../src/backup/errors.ts";
import { BackupKeys } from "../../src/backup/keys.ts";

const chunk = Buffer.from("what the piece holds ".repeat(100));
const stored = zstdCompressSync(chunk);
const name = `${"a".repeat(64)}.zst`;
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
const yesterday = daysAgo(1);
const part = (more: Partial<IndexedChunk> = {}): IndexedChunk => ({
  ...writtenChunk(name, stored),
  ...more,
});

/** A place with one piece and the indexes of backups that name it. */
function place(isLocal: boolean, bytes: Uint8Array | Error, ...indexed: IndexedChunk[]) {
  const read: string[] = [];
  const indexes = indexed.map((one, n) => ({
    name: `flagkeep-${n}.index.json`,
    format: 1,
    flagkeep: "1",
    created_at: "",
    pieces: [one],
    content: { encrypted: "" },
  }));
  const getSource = (of: string, bytes: Uint8Array) => ({
    name: of,
    bytes: bytes.length,
    sibling: () => Promise.reject(new BackupNotFoundError(of)),
    async *stream() {
      yield bytes;
    },
  });
  const destination: Destination = {
    name: "place",
    isLocal,
    list: async () => indexes.map((index) => index.name),
    async open(path) {
      const index = indexes.find((one) => one.name === path);
      if (index !== undefined) return getSource(path, Buffer.from(JSON.stringify(index)));
      read.push(path);
      if (bytes instanceof Error) throw bytes;
      return getSource(path, bytes);
    },
    put: () => Promise.reject(new Error("not asked for")),
    putChunk: () => Promise.reject(new Error("not asked for")),
    remove: () => Promise.reject(new Error("not asked for")),
    chunks: async () => new Map([[name, { bytes: stored.length, modifiedAt: 0 }]]),
  };
  return { destination, read };
}

async function check(isLocal: boolean, bytes: Uint8Array | Error, ...indexed: IndexedChunk[]) {
  const { destination, read } = place(isLocal, bytes, ...indexed);
  const chunks = await VerifiedChunks.open(destination, BackupKeys.none);
  const found = await chunks.sound(name, chunk);
  return { found, corrupt: chunks.corrupt, isRead: read.includes(chunkKey(name)) };
}

const changed = Buffer.from(stored);
changed[20]! ^= 1;

describe("chunks of earlier backups", () => {
  for (const [what, isLocal, bytes, indexed, expected] of [
    ["in a folder, sound", true, stored, [part()], "read"],
    ["in a folder, changed", true, changed, [part()], "damaged"],
    ["named without a hash, sound", true, stored, [part({ sha256: undefined })], "read"],
    ["named without a hash, changed", true, changed, [part({ sha256: undefined })], "damaged"],
    ["other content under the name", true, zstdCompressSync("x"), [part({ sha256: undefined })], "damaged"],
    ["that cannot be read", true, new Error("EIO"), [part()], "damaged"],
    ["of another length than its index says", true, stored, [part({ bytes: 1 })], "not there"],
    ["that no index names", true, stored, [], "not there"],
    ["in a bucket, read yesterday", false, changed, [part({ checked_at: yesterday })], "trusted"],
    ["in a bucket, read eight days ago", false, stored, [part({ checked_at: daysAgo(8) })], "read"],
    ["in a bucket, changed, eight days ago", false, changed, [part({ checked_at: daysAgo(8) })], "damaged"],
    ["in a bucket, never read", false, stored, [part({ checked_at: undefined })], "read"],
    ["in a bucket, read tomorrow", false, stored, [part({ checked_at: daysAgo(-1) })], "read"],
    ["in a bucket, no date", false, stored, [part({ checked_at: "soon" })], "read"],
    [
      "in a bucket, read by the second of three backups",
      false,
      changed,
      [daysAgo(8), yesterday, daysAgo(9)].map((checked_at) => part({ checked_at })),
      "trusted",
    ] as const,
  ] as const)
    test(`${what}: ${expected}`, async () => {
      const { found, corrupt, isRead } = await check(isLocal, bytes, ...indexed);
      expect(corrupt).toBe(expected === "damaged" ? 1 : 0);
      expect(found !== undefined).toBe(expected === "read" || expected === "trusted");
      expect(isRead).toBe(expected === "read" || expected === "damaged");
      if (expected === "read") expect(Date.now() - Date.parse(found!.checked_at!)).toBeLessThan(60_000);
      if (expected === "trusted") expect(found!.checked_at).toBe(yesterday);
    });

  test("an unavailable destination is not corruption: the backup fails", async () => {
    expect(check(true, new DestinationError("No answer."), part())).rejects.toThrow("No answer.");
  });
});
