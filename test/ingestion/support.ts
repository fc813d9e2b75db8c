/** What the tests of ingestion share: a journal and a directory of projects in memory, and ways to build items. */

import { expect } from "bun:test";
import { createApp } from "../../src/http/app.ts";
import type { BodyLimits } from "../../src/http/body.ts";
import { TrustedProxies } from "../../src/http/trusted-proxies.ts";
import type { RawItem } from "../../src/ingestion/item-table.ts";
import { normalize, type RequestFacts, requestFacts } from "../../src/ingestion/normalize.ts";
import type { Outcome } from "../../src/ingestion/outcome.ts";
import { parsePayload } from "../../src/ingestion/payload.ts";
import type { CaptureDeps, JournalSink, ProjectDirectory } from "../../src/ingestion/ports.ts";
import { captureRoutes } from "../../src/ingestion/routes.ts";
import type { CanonicalEvent, EntryJson } from "../../src/journal/entry.ts";
import type { Lane } from "../../src/journal/segment.ts";

export const anyToken = "phc_test";
export const otherToken = "phc_other";
export const quietToken = "phc_anonymizing";
/** The key in the recorded requests of the SDKs. */
export const recordedToken = "phc_recordingprojecttoken";
/** 2026-11-21T12:00:00Z */
export const noon = Date.UTC(2026, 10, 21, 12) * 1_000;
export const generatedUuid = "00000000-0000-7000-8000-000000000000";

export const anyEvent = { event: "e", distinct_id: "d" };
/** A request with one event. */
export const eventBody = (more: Record<string, unknown> = {}) =>
  JSON.stringify({ api_key: anyToken, ...anyEvent, ...more });
export const batch = (items: unknown, more: Record<string, unknown> = {}) =>
  JSON.stringify({ api_key: anyToken, batch: items, ...more });

/** What a rejection says. */
export async function envelope(response: Response) {
  expect(response.headers.get("content-type")).toStartWith("application/json");
  return (await response.json()) as { type: string; code: string; detail: string; attr: null };
}

/** Keeps what it is given, or rejects as a journal does that cannot write. */
export class FakeJournal implements JournalSink {
  readonly appends: { lane: Lane; entries: readonly string[] }[] = [];
  rejection: Error | undefined;

  async append(lane: Lane, written: readonly EntryJson[]): Promise<number> {
    if (this.rejection) throw this.rejection;
    const entries = written.map((entry) => Buffer.from(entry as string).toString());
    this.appends.push({ lane, entries });
    return this.appends.length;
  }

  /** Everything that was appended, as the journal's reader would give it. */
  get lines(): Record<string, unknown>[] {
    return this.appends.flatMap(({ entries }) =>
      entries.map((entry, index) => {
        if (/[\r\n]/.test(entry)) throw new Error(`A journal line with a line break: ${entry}`);
        return JSON.parse(`{"seq":${index + 1},${entry}`);
      }),
    );
  }

  get events(): Record<string, unknown>[] {
    return this.lines.filter((line) => line.note === undefined);
  }

  /** `drop missing_event_name` and the like. */
  get notes(): string[] {
    return this.lines.filter((line) => line.note !== undefined).map((line) => `${line.note} ${line.type}`);
  }
}

export class JournalUnavailableError extends Error {
  readonly code = "journal_unavailable";
}

export const projects: ProjectDirectory = {
  findByToken: (token) =>
    ({
      [anyToken]: { id: 1, anonymizeIps: false },
      [otherToken]: { id: 2, anonymizeIps: false },
      [quietToken]: { id: 3, anonymizeIps: true },
      [recordedToken]: { id: 4, anonymizeIps: false },
    })[token],
};

const mib = 1024 * 1024;

/** The capture routes over a fake journal, without a socket. */
export function startCapture({
  limits = {},
  trustedProxies = [],
  ...overrides
}: Partial<CaptureDeps> & { limits?: Partial<BodyLimits>; trustedProxies?: readonly string[] } = {}) {
  const journal = new FakeJournal();
  /** What was logged as a defect. */
  const unexpected: unknown[] = [];
  const app = createApp({
    // Nothing here asks who a user is.
    guard: undefined as never,
    log: { error: ({ error }) => unexpected.push(error) },
    routes: captureRoutes({ journal, projects, nowMicros: () => noon, ...overrides }),
    origins: new TrustedProxies(trustedProxies),
    limits: { bytesMax: 20 * mib, apiBytesMax: mib, inFlightBytesMax: 256 * mib, ...limits },
  });
  const send = (path: string, init: RequestInit = {}) =>
    app.handle(new Request(`http://localhost${path}`, { method: "POST", ...init }));
  return { app, journal, unexpected, send };
}

/** One event item out of its JSON text. */
export function itemFromText(json: string): RawItem {
  return parsePayload(`[${json}]`, true).items.at(0);
}

export function item(value: Record<string, unknown>): RawItem {
  return itemFromText(JSON.stringify(value));
}

export function facts(overrides: Partial<Parameters<typeof requestFacts>[0]> = {}): RequestFacts {
  return requestFacts({
    receivedMicros: noon,
    sentAtMicros: undefined,
    isHistorical: false,
    clientIp: undefined,
    anonymizeIps: false,
    generateUuid: () => generatedUuid,
    ...overrides,
  });
}

/** What becomes of an item that is meant to be stored. */
export function stored(outcome: Outcome): CanonicalEvent {
  if (outcome.kind !== "event") throw new Error(`The event was not stored: ${JSON.stringify(outcome)}`);
  return outcome.event;
}

export function normalizedText(json: string, overrides: Parameters<typeof facts>[0] = {}): CanonicalEvent {
  return stored(normalize(itemFromText(json), facts(overrides)));
}

/** The warnings or the reason of an outcome, in order. */
export function warningTypes(outcome: Outcome): string[] {
  if (outcome.kind === "event") return outcome.warnings.map(({ type }) => type);
  return [outcome.kind === "dropped" ? outcome.reason.type : outcome.warning.type];
}
