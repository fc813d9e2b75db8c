import { expect, test } from "bun:test";
import {
  historySampleSeconds,
  historySamplesMax,
  StatusHistory,
  type StatusReading,
} from "../../src/operate/status-history.ts";

test("a sample has the rate since the one before; the oldest of more than 24 hours is discarded", async () => {
  const reading: StatusReading = {
    events: 0,
    lagEntries: 3,
    isEngineUp: true,
    diskBytes: 1_000,
    lastBackupAt: null,
  };
  const history = new StatusHistory(
    async () => reading,
    (error) => {
      throw error;
    },
  );
  const at = (index: number) => new Date(Date.UTC(2026, 2, 4) + index * historySampleSeconds * 1_000);
  await history.sample(at(0));
  expect(history.list()).toEqual([
    {
      at: "2026-03-04T00:00:00.000000Z",
      events_per_second: 0,
      lag_entries: 3,
      engine_up: true,
      disk_bytes: 1_000,
      last_backup_at: null,
    },
  ]);
  reading.events = 2 * historySampleSeconds;
  await history.sample(at(1));
  expect(history.list().map(({ events_per_second: rate }) => rate)).toEqual([0, 2]);
  for (let index = 2; index <= historySamplesMax; index++) await history.sample(at(index));
  expect(history.list()).toHaveLength(historySamplesMax);
  expect(history.list()[0]!.at).toBe("2026-03-04T00:05:00.000000Z");
  expect(historySamplesMax * historySampleSeconds).toBe(86_400);
});
