/** Clients of the journal in PostgreSQL, for tests of its numbers. */

import { type Postgres, PostgresUnreachableError } from "../../src/cluster/connection.ts";
import { JournalReader } from "../../src/cluster/journal-reader.ts";
import type { JournalBatch } from "../../src/journal/reader.ts";
import { linesIn } from "../support/segments.ts";
import { until } from "../support/server.ts";

export const entry = (text: string) => `"text":${JSON.stringify(text)}}`;

/** Stores a block as a node does, with a pause before the commit. @returns its number */
export async function append(postgres: Postgres, pauseMs: number, lane = "realtime"): Promise<number> {
  return await postgres.transaction(async (t) => {
    const [row] = await t`INSERT INTO flagkeep.journal (lane, first_seq, entries, size, body)
      VALUES (${lane}, flagkeep.take_numbers(1), 1, 0, '') RETURNING first_seq`;
    if (pauseMs > 0) await t`SELECT pg_sleep(${pauseMs / 1_000})`;
    return Number(row!.first_seq);
  });
}

interface ReadEntry {
  lane: string;
  seq: number;
  text: string;
}

/** What a loader reads until it has a number of entries. */
export async function readAll(
  postgres: Postgres,
  from: { realtime: number; historical: number },
  count: number,
): Promise<ReadEntry[]> {
  const batches: JournalBatch[] = [];
  const entries: ReadEntry[] = [];
  const reader = new JournalReader(postgres, from, {
    offer: (some) => batches.push(...some),
    waitingBytes: () => 0,
    onFailure: (error) => {
      if (!(error instanceof PostgresUnreachableError)) throw error;
    },
  });
  reader.start();
  await until(async () => {
    for (const { lane, text } of batches.splice(0))
      for (const line of linesIn((await text()).bytes)) entries.push({ lane, ...JSON.parse(line) });
    return entries.length >= count;
  }, `${count} entries are read`);
  await reader.stop();
  return entries;
}
