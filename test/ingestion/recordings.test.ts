/** Replays what real client libraries sent, byte for byte, and looks for every event of it in the journal. */

import { describe, expect, test } from "bun:test";
import { parseInstant } from "../../src/lib/timestamp.ts";
import browser from "../fixtures/recordings/capture-posthog-js.json";
import node from "../fixtures/recordings/capture-posthog-node.json";
import python from "../fixtures/recordings/capture-posthog-python.json";
import { recordedToken, startCapture } from "./support.ts";

interface Recording {
  sdk: string;
  scenario: string;
  url: string;
  headers: Record<string, string>;
  rawBase64: string;
  /** What was in the bytes, decoded by the recorder. */
  body: RecordedBody | RecordedEvent[];
}
interface RecordedBody {
  batch: RecordedEvent[];
  sent_at?: string;
  historical_migration?: boolean;
}
interface RecordedEvent {
  event: string;
  uuid: string;
  distinct_id?: string;
  timestamp: string;
  session_id?: string;
  options?: { process_person_profile?: boolean };
  properties: Record<string, unknown>;
  $set?: Record<string, unknown>;
  $set_once?: Record<string, unknown>;
}

const recordings = [browser, node, python].flat() as unknown as Recording[];
const now = parseInstant("2026-11-21T00:40:00Z")!;
/** What has a column of its own, or is taken away or added on purpose. */
const handled = [
  "$set",
  "$set_once",
  "$elements",
  "$elements_chain",
  "$process_person_profile",
  "$sent_at",
  "$ip",
];

function without(properties: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => !handled.includes(name)));
}

function checkEvent(sent: RecordedEvent, retained: Record<string, unknown>, skew: number) {
  const properties = retained.properties as Record<string, unknown>;
  const isAnonymous =
    (sent.options?.process_person_profile ?? sent.properties.$process_person_profile) === false;
  expect(retained).toMatchObject({
    project_id: 4,
    uuid: sent.uuid,
    event: sent.event,
    distinct_id: String(sent.distinct_id ?? sent.properties.distinct_id),
    time: parseInstant(sent.timestamp)! - skew,
    received: now,
    mode: isAnonymous ? "propertyless" : "full",
    made_uuid: false,
  });
  // One kind of event still sends a list of elements.
  if (Array.isArray(sent.properties.$elements)) expect(retained.elements_chain).toStartWith("button.c1.c2:");
  else expect(retained.elements_chain).toBe(sent.properties.$elements_chain ?? null);
  expect(without(properties)).toMatchObject(without(sent.properties));
  for (const name of ["$set", "$set_once"] as const) {
    const inside = sent.properties[name] as object | undefined;
    const expected = isAnonymous || (!inside && !sent[name]) ? undefined : { ...inside, ...sent[name] };
    expect(properties[name]).toEqual(expected);
  }
}

describe("recorded requests", () => {
  recordings.forEach((recording, index) => {
    test(`${index + 1}: ${recording.sdk}, ${recording.scenario}, ${recording.url}`, async () => {
      const { journal, send, unexpected } = startCapture({ nowMicros: () => now });
      const { url, headers, body } = recording;
      const response = await send(url, { body: Buffer.from(recording.rawBase64, "base64"), headers });
      expect(response.status).toBe(200);
      expect(response.headers.get("access-control-allow-origin")).toBe(headers.origin ?? null);
      expect(unexpected).toEqual([]);
      if (url.startsWith("/s/")) {
        expect(journal.appends).toEqual([]);
        return;
      }
      const batch = body as RecordedBody;
      const sentAt = batch.sent_at ?? headers["posthog-request-timestamp"];
      // A historical event's own time is its time, and so is any that was sent within a minute.
      const difference = parseInstant(sentAt!)! - now;
      const skew = batch.historical_migration || Math.abs(difference) <= 60_000_000 ? 0 : difference;
      expect(journal.notes).toEqual([]);
      expect(journal.appends.map(({ lane }) => lane)).toEqual([
        batch.historical_migration ? "historical" : "realtime",
      ]);
      expect(journal.events).toHaveLength(batch.batch.length);
      for (const [at, sent] of batch.batch.entries()) checkEvent(sent, journal.events[at]!, skew);
      if (url.startsWith("/i/v1/")) {
        const results = Object.fromEntries(batch.batch.map(({ uuid }) => [uuid, { result: "ok" }]));
        expect(await response.json()).toEqual({ results });
        expect(journal.events[0]!.properties).toMatchObject({
          $lib: "posthog-python",
          $lib_version: "7.53.0",
        });
      }
    });
  });

  test("are rejected for a project that does not exist", async () => {
    for (const recording of recordings.filter(({ url }) => !url.startsWith("/s/"))) {
      const { journal, send } = startCapture({ projects: { findByToken: () => undefined } });
      const body = Buffer.from(recording.rawBase64, "base64");
      expect((await send(recording.url, { body, headers: recording.headers })).status).toBe(401);
      expect(journal.appends).toEqual([]);
    }
  });

  test("carry the key that the tests know", () => {
    expect(recordings.length).toBeGreaterThan(70);
    expect(JSON.stringify(recordings)).toContain(recordedToken);
  });
});
