import { rmSync } from "node:fs";
import { Journal, type JournalOptions } from "../../src/journal/journal.ts";
import { getBatch } from "../../src/journal/reader.ts";
import type { SealedSegment } from "../../src/journal/segment.ts";
import { temporaryFolder } from "../support/server.ts";
import { type JournalUnderTest, journalConformance } from "./journal-conformance.ts";

const options: JournalOptions = {
  segmentBytesMax: 1e6,
  segmentEntriesMax: 1_000,
  sealIntervalMs: 3_600_000,
  flushIntervalMs: 0,
  queueBytesMax: 64e6,
  reserveBytes: 0,
};

async function openIn(folder: string): Promise<JournalUnderTest> {
  const sealed: SealedSegment[] = [];
  const { journal, segments } = await Journal.open(folder, { realtime: 0, historical: 0 }, options, {
    onSealed: (segment) => sealed.push(segment),
    onFailure: (error) => {
      throw error;
    },
  });
  return {
    journal,
    async batches(lane) {
      await journal.seal();
      return [...segments, ...sealed].filter((segment) => segment.lane === lane).map(getBatch);
    },
    async reopen() {
      await journal.close();
      return await openIn(folder);
    },
    async close() {
      await journal.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

journalConformance("the journal of files", () => openIn(temporaryFolder()));
