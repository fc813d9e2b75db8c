/** Streams of server-sent events: who finds a place. */

import { expect, test } from "bun:test";
import { SseBroadcaster } from "../../src/http/sse.ts";

test("one project does not use the capacity of all others", () => {
  const stopping = new AbortController();
  const streams = new SseBroadcaster<{ projectId: number }>({
    streamsMax: 20,
    unreadMax: 1,
    onSlow: "drop",
    tickMs: 60_000,
    stopping: stopping.signal,
    projectOf: ({ projectId }) => projectId,
    full: { detail: "Too many streams are open.", retryAfterSeconds: 10 },
    onTick: () => undefined,
  });
  const opened = (projectId: number, count: number) => {
    for (let n = 0; n < count; n++) {
      try {
        streams.open({ projectId }, new AbortController().signal);
      } catch (error) {
        expect(error).toMatchObject({ status: 503, code: "too_many_streams" });
        return n;
      }
    }
    return count;
  };
  try {
    expect(opened(1, 100)).toBe(20);
    expect([streams.hasCapacityFor(1), streams.hasCapacityFor(2)]).toEqual([false, true]);
    expect(opened(2, 100)).toBe(2);
    expect(streams.hasCapacityFor(3)).toBe(false);
    for (const reader of streams) if (reader.projectId === 1) streams.close(reader);
    expect(opened(2, 100)).toBe(18);
    expect(opened(3, 100)).toBe(2);
  } finally {
    stopping.abort();
  }
  expect([streams.size, streams.hasCapacityFor(4)]).toEqual([0, false]);
});
