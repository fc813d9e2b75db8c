import { expect, test } from "bun:test";
import { readinessStates } from "../../src/operate/readiness.ts";

test("flags are not ready while those of another history are replaced", () => {
  const sources = {
    state: "ready",
    admission: { isOpen: true, isFailing: false, problem: null, freeBytes: 0, neededBytes: 0, totalBytes: 0 },
    engine: { up: true } as Parameters<typeof readinessStates>[0]["engine"],
    corruption: null,
  };
  const flags = (copying: { done: number; total: number } | undefined) =>
    readinessStates({ ...sources, copying }).find(({ role }) => role === "flags");
  expect(flags(undefined)).toMatchObject({ ready: true, reason: null });
  expect(flags({ done: 500, total: 12_000 })).toMatchObject({
    ready: false,
    reason: "Copying flags and keys: 500 of about 12000 rows.",
  });
});
