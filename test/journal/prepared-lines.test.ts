/** Lines that another process has prepared: numbered and stored like entries, and rejected per request. */

import { expect, test } from "bun:test";
import { Journal } from "../../src/journal/journal.ts";
import { PreparedLines, preparedSize, writePrepared } from "../../src/journal/prepared-lines.ts";
import { temporaryFolder } from "../support/server.ts";
import { entry, openJournal, options, toStrings } from "./support.ts";

function prepared(texts: readonly string[], digits: number, requests = 1): PreparedLines {
  const entries = texts.map(entry);
  const bytes = entries.reduce((sum, one) => sum + Buffer.byteLength(one), 0);
  const block = Buffer.alloc(preparedSize(digits, entries.length, bytes));
  let at = 0;
  const sizes = entries.map((one) => {
    const start = at;
    at = writePrepared(block, at, digits, one);
    return at - start;
  });
  expect(at).toBe(block.length);
  return new PreparedLines(block, sizes, digits, requests);
}

const texts = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `Köln ${from + index}`);

test("lines are stored in order, also when numbers get more digits or segments are full", async () => {
  const { journal, sealed } = await openJournal(temporaryFolder(), { segmentEntriesMax: 50 });
  const firsts = await Promise.all([
    journal.append("realtime", prepared(texts(1, 8), 1)),
    journal.append("realtime", prepared(texts(9, 12), 1)),
    journal.append("realtime", texts(13, 13).map(entry)),
    journal.append("realtime", prepared(texts(14, 40), 2)),
    // More than a segment takes.
    journal.append("realtime", prepared(texts(41, 160), 3)),
  ]);
  expect(firsts).toEqual([1, 9, 13, 14, 41]);
  await journal.close();
  const stored = await toStrings(sealed);
  expect(stored.map(({ seq }) => seq)).toEqual(texts(1, 160).map((_, index) => index + 1));
  expect(stored.map(({ text }) => text)).toEqual(texts(1, 160));
});

test("a rejection counts every request of the lines", async () => {
  const rejected: string[] = [];
  const { journal } = await Journal.open(
    temporaryFolder(),
    { realtime: 0, historical: 0 },
    { ...options, queueBytesMax: 0 },
    {
      onSealed: () => undefined,
      onFailure: () => undefined,
      onRejected: (reason, lane) => rejected.push(`${lane} ${reason}`),
    },
  );
  const first = journal.append("realtime", prepared(["a"], 1));
  await expect(journal.append("realtime", prepared(["b", "c"], 1, 2))).rejects.toThrow("queued for fsync");
  expect(rejected).toEqual(["realtime overloaded", "realtime overloaded"]);
  await first;
  await journal.close();
});
