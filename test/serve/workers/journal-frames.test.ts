/** Frames between workers and the journal: whatever the chunks, the same requests arrive, in order. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { type EntryJson, getLines } from "../../../src/journal/entry.ts";
import { JournalUnavailableError } from "../../../src/journal/lane-writer.ts";
import type { PreparedLines } from "../../../src/journal/prepared-lines.ts";
import { type Lane, lanes } from "../../../src/journal/segment.ts";
import { BufferPool } from "../../../src/lib/buffer-pool.ts";
import {
  AppendReader,
  appendFrame,
  parseReply,
  replyBytes,
  replyFrame,
} from "../../../src/serve/workers/journal-frames.ts";

const entry: fc.Arbitrary<EntryJson> = fc.oneof(
  fc.string({ unit: "binary" }).map((text) => text.toWellFormed()),
  fc.uint8Array({ maxLength: 300 }),
);
const append = fc.record({
  id: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  lane: fc.constantFrom<Lane>(...lanes),
  entries: fc.array(entry, { maxLength: 20 }),
  digits: fc.integer({ min: 1, max: 16 }),
  requests: fc.integer({ min: 1, max: 20 }),
});

const MiB = 1024 * 1024;
const newReader = (buffers = new BufferPool(MiB)) => new AppendReader(buffers);

const asBytes = (value: EntryJson) => Buffer.from(value as string).toString("hex");

/** The lines as the writer of the journal writes them. */
function written(lines: PreparedLines, first: number): string {
  const numbered = lines.numbered(first);
  const buffer = Buffer.alloc(numbered.length);
  expect(numbered.write(buffer, 0)).toBe(buffer.length);
  return buffer.toString("hex");
}

test("requests arrive whole and in order, however they are cut", () => {
  fc.assert(
    fc.property(
      fc.array(append, { minLength: 1, maxLength: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 400 })),
      fc.infiniteStream(fc.boolean()),
      (appends, sizes, releases) => {
        const bytes = Buffer.concat(appends.map(appendFrame));
        const reader = newReader();
        const read: (() => unknown)[] = [];
        for (let at = 0; at < bytes.length; ) {
          const end = at + sizes.next().value;
          reader.take(bytes.subarray(at, end), ({ id, lane, lines, release }) => {
            const get = () => ({ id, lane, requests: lines.requests, entries: lines.entries().map(asBytes) });
            // Released memory may be overwritten; other lines stay as they are until the end.
            if (!releases.next().value) read.push(get);
            else {
              const now = get();
              release();
              read.push(() => now);
            }
          });
          at = end;
        }
        const sent = appends.map(({ id, lane, requests, entries }) => ({
          id,
          lane,
          requests,
          entries: entries.map(asBytes),
        }));
        expect(read.map((get) => get())).toEqual(sent);
      },
    ),
  );
});

test("the memory of a frame is reused when it is released, or when its connection ends", () => {
  const taken: Uint8Array[] = [];
  class Counted extends BufferPool {
    override take(bytes: number): Buffer {
      const buffer = super.take(bytes);
      taken.push(buffer);
      return buffer;
    }
  }
  const buffers = new Counted(2 * MiB);
  const bytes = appendFrame({ id: 1, lane: "realtime", entries: ["a}"], digits: 1, requests: 1 });
  const releases: (() => void)[] = [];
  const send = (end: number) => {
    const reader = newReader(buffers);
    for (const part of [bytes.subarray(0, 2), bytes.subarray(2, 9), bytes.subarray(9, end)])
      reader.take(part, ({ release }) => releases.push(release));
    return reader;
  };
  send(bytes.length);
  // Not released yet.
  const unfinished = send(bytes.length - 1);
  releases.pop()!();
  unfinished.discard();
  unfinished.discard();
  send(bytes.length);
  send(bytes.length);
  const memory = taken.map(({ buffer }) => buffer);
  expect(memory).toHaveLength(4);
  expect(memory[1]).not.toBe(memory[0]);
  expect(memory[3]).not.toBe(memory[2]);
  expect(new Set(memory).size).toBe(2);
});

test("lines get their numbers, whether these have the expected digits or not", () => {
  fc.assert(
    fc.property(append, fc.integer({ min: 1, max: 2 ** 53 - 100 }), fc.boolean(), (sent, some, fits) => {
      const first = fits ? Math.max(1, some % 10 ** sent.digits) : some;
      let seen = 0;
      newReader().take(appendFrame(sent), ({ lines }) => {
        seen += 1;
        expect(written(lines, first)).toBe(getLines(first, sent.entries).toString("hex"));
      });
      expect(seen).toBe(1);
    }),
  );
  // Nine and ten: the numbers of one append have different lengths.
  const frame = appendFrame({ id: 1, lane: "realtime", entries: ["a}", "b}"], digits: 1, requests: 1 });
  newReader().take(frame, ({ lines }) =>
    expect(Buffer.from(written(lines, 9), "hex").toString()).toBe('{"seq":9,a}\n{"seq":10,b}\n'),
  );
});

test("a frame of 8 MiB in chunks of 64 KiB takes well under a second", () => {
  const entries = [new Uint8Array(8 * MiB)];
  const bytes = appendFrame({ id: 1, lane: "realtime", entries, digits: 5, requests: 1 });
  const reader = newReader();
  let count = 0;
  const start = performance.now();
  for (let at = 0; at < bytes.length; at += 65_536)
    reader.take(bytes.subarray(at, at + 65_536), ({ lines }) => {
      count += lines.entries()[0]!.length;
    });
  expect(count).toBe(8 * MiB);
  expect(performance.now() - start).toBeLessThan(1_000);
});

test.each([
  7,
  2 ** 40,
  new JournalUnavailableError("disk_full"),
  new JournalUnavailableError("overloaded"),
  new JournalUnavailableError("closed"),
])("a reply keeps its result: %p", (result) => {
  const frame = replyFrame(2 ** 32 - 1, result);
  expect(frame).toHaveLength(replyBytes);
  const read = parseReply(frame, 0);
  expect(read.id).toBe(2 ** 32 - 1);
  if (typeof result === "number") expect(read.result).toBe(result);
  else expect((read.result as JournalUnavailableError).reason).toBe(result.reason);
});

test("any other error of the journal becomes an error", () => {
  const { result } = parseReply(replyFrame(1, new TypeError("x")), 0);
  expect(result).toBeInstanceOf(Error);
  expect(result).not.toBeInstanceOf(JournalUnavailableError);
});
