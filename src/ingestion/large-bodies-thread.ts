/** The thread of `large-bodies.ts`. */

import { isUtf8 } from "node:buffer";
import { type EntryJson, EntryWriter } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { lowerThreadPriority } from "../lib/operating-system.ts";
import { splitBody } from "./body-parts.ts";
import { NoteCount } from "./entry-list.ts";
import { type FromThread, type LargeBody, type ToThread, toRejection } from "./large-bodies.ts";
import { mixedHistory } from "./payload.ts";
import {
  type CaptureBody,
  getResults,
  getToken,
  type ReadRequest,
  readCaptureBody,
  readRequest,
} from "./request-entries.ts";
import { agreedToken } from "./token.ts";

declare const self: Worker;

/** Approximate size of the chunks in which entries are passed on. */
const chunkBytes = 1024 * 1024;

const send = (message: FromThread) => postMessage(message);
let onAnswer: ((message: ToThread) => void) | undefined;

// Requests of other clients have priority when both share a processor.
lowerThreadPriority();
self.onmessage = async ({ data }: MessageEvent<ToThread>) => {
  if (!("open" in data)) return onAnswer?.(data);
  await take(data.open);
  // Before the next body, which needs as much memory again.
  Bun.gc(true);
};

/** A part of a body, parsed on every call: only one part is in memory at a time. */
type Part = () => ReadRequest;

async function take({ body, protocol, limitBytes, arrival, known }: LargeBody): Promise<void> {
  try {
    const opened = await readCaptureBody(body, limitBytes);
    const parts = getParts(opened, protocol);
    // Entries are passed on only after the whole body is validated.
    const { lane, claim } = checked(parts);
    const project = known ?? (await getProject(getToken(opened, claim())));
    const shared = { notes: new NoteCount(), results: getResults(protocol) };
    for (const part of parts) {
      const { entries } = await part().lines(project, arrival, () => Bun.randomUUIDv7(), undefined, shared);
      await handOver(lane, entries);
    }
    const writer = new EntryWriter(project.id, arrival.receivedMicros, lane === "historical");
    await handOver(lane, shared.notes.end(writer));
    send({ done: { results: shared.results?.text() } });
  } catch (error) {
    send({ failed: toRejection(error) });
  }
}

function getParts(opened: CaptureBody, protocol: LargeBody["protocol"]): readonly Part[] {
  const { content } = opened;
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const split = isUtf8(bytes) ? splitBody(bytes) : undefined;
  if (split === undefined) {
    const whole = readRequest(opened, protocol);
    return [() => whole];
  }
  return split.map(
    ({ content, firstPosition }) =>
      () =>
        readRequest({ ...opened, content: content() }, protocol, firstPosition),
  );
}

/**
 * Validates all parts of a body.
 *
 * @returns its lane, and a function that returns its key or throws for several keys: errors of its shape come first.
 * @throws {InvalidPayloadError} @throws {PayloadTooComplexError}
 */
function checked(parts: readonly Part[]): { lane: Lane; claim: () => unknown } {
  let lane: Lane | undefined;
  let found: unknown;
  let rejection: unknown;
  for (const part of parts) {
    const request = part();
    lane ??= request.lane;
    if (request.lane !== lane) throw mixedHistory(request.firstPosition, request.lane === "historical");
    try {
      const claim = request.claim();
      if (claim !== undefined) found = agreedToken(found, claim);
    } catch (error) {
      rejection ??= error;
    }
  }
  const claim = () => {
    if (rejection !== undefined) throw rejection;
    return found;
  };
  return { lane: lane!, claim };
}

/** Posts a message, and resolves with the reply. */
function ask(message: FromThread, transfer: ArrayBuffer[] = []): Promise<ToThread> {
  return new Promise((resolve) => {
    onAnswer = (answer) => {
      onAnswer = undefined;
      resolve(answer);
    };
    postMessage(message, transfer);
  });
}

async function getProject(token: string) {
  const answer = await ask({ token });
  if (!("project" in answer)) throw new Error("Another answer was expected.");
  return answer.project;
}

/** Passes entries on as bytes, chunk by chunk, each after the previous one is on disk. */
async function handOver(lane: Lane, entries: readonly EntryJson[]): Promise<void> {
  for (let start = 0; start < entries.length; ) {
    let size = 0;
    let end = start;
    for (; end < entries.length && (end === start || size < chunkBytes); end++)
      size += Buffer.byteLength(entries[end]!);
    await sendBlock(lane, entries.slice(start, end), size);
    start = end;
  }
}

async function sendBlock(lane: Lane, entries: readonly EntryJson[], size: number): Promise<void> {
  const bytes = Buffer.allocUnsafeSlow(size);
  const ends = new Uint32Array(entries.length);
  let end = 0;
  for (const [index, entry] of entries.entries()) {
    if (typeof entry === "string") end += bytes.write(entry, end);
    else {
      bytes.set(entry, end);
      end += entry.length;
    }
    ends[index] = end;
  }
  await ask({ block: { bytes, ends }, lane }, [bytes.buffer, ends.buffer]);
}
