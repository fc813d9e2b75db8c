/** The thread of `large-bodies.ts`. */

import { isUtf8 } from "node:buffer";
import { type EntryText, EntryWriter } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { putThreadBehind } from "../lib/priority.ts";
import { splitBody } from "./body-parts.ts";
import { NoteCount } from "./entry-list.ts";
import { type FromThread, type LargeBody, refusalOf, type ToThread } from "./large-bodies.ts";
import { mixedHistory } from "./payload.ts";
import {
  type CaptureBody,
  type ReadRequest,
  readCaptureBody,
  readRequest,
  resultsOf,
  tokenOf,
} from "./request-entries.ts";
import { agreedToken } from "./token.ts";

declare const self: Worker;

/** Entries are handed over in pieces of about this size. */
const pieceBytes = 1024 * 1024;

const say = (message: FromThread) => postMessage(message);
let onAnswer: ((message: ToThread) => void) | undefined;

// Others' requests go first where there is one processor for both.
putThreadBehind();
self.onmessage = async ({ data }: MessageEvent<ToThread>) => {
  if (!("open" in data)) return onAnswer?.(data);
  await take(data.open);
  // Before the next one, which needs as much again.
  Bun.gc(true);
};

/** A part of a body, read again whenever it is asked for: what is held at a time is one part. */
type Part = () => ReadRequest;

async function take({ body, protocol, limitBytes, arrival, known }: LargeBody): Promise<void> {
  try {
    const opened = await readCaptureBody(body, limitBytes);
    const parts = partsOf(opened, protocol);
    // Nothing is handed over before all of it is known to be right.
    const { lane, claim } = checked(parts);
    const project = known ?? (await projectOf(tokenOf(opened, claim())));
    const shared = { notes: new NoteCount(), results: resultsOf(protocol) };
    for (const part of parts) {
      const { entries } = await part().lines(project, arrival, () => Bun.randomUUIDv7(), undefined, shared);
      await handOver(lane, entries);
    }
    const writer = new EntryWriter(project.id, arrival.receivedMicros, lane === "historical");
    await handOver(lane, shared.notes.end(writer));
    say({ done: { results: shared.results?.text() } });
  } catch (error) {
    say({ failed: refusalOf(error) });
  }
}

function partsOf(opened: CaptureBody, protocol: LargeBody["protocol"]): readonly Part[] {
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
 * Reads all parts of a body.
 *
 * @returns its lane, and what gives its key or throws that there are several: errors of its shape come first.
 * @throws {InvalidPayload} @throws {PayloadTooDense}
 */
function checked(parts: readonly Part[]): { lane: Lane; claim: () => unknown } {
  let lane: Lane | undefined;
  let found: unknown;
  let refusal: unknown;
  for (const part of parts) {
    const request = part();
    lane ??= request.lane;
    if (request.lane !== lane) throw mixedHistory(request.firstPosition, request.lane === "historical");
    try {
      const claim = request.claim();
      if (claim !== undefined) found = agreedToken(found, claim);
    } catch (error) {
      refusal ??= error;
    }
  }
  const claim = () => {
    if (refusal !== undefined) throw refusal;
    return found;
  };
  return { lane: lane!, claim };
}

/** Says something, and resolves with what is said to it. */
function ask(message: FromThread, transfer: ArrayBuffer[] = []): Promise<ToThread> {
  return new Promise((resolve) => {
    onAnswer = (answer) => {
      onAnswer = undefined;
      resolve(answer);
    };
    postMessage(message, transfer);
  });
}

async function projectOf(token: string) {
  const answer = await ask({ token });
  if (!("project" in answer)) throw new Error("Another answer was expected.");
  return answer.project;
}

/** Hands entries over as bytes, piece by piece, each when the one before is on the disk. */
async function handOver(lane: Lane, entries: readonly EntryText[]): Promise<void> {
  for (let start = 0; start < entries.length; ) {
    let size = 0;
    let end = start;
    for (; end < entries.length && (end === start || size < pieceBytes); end++)
      size += Buffer.byteLength(entries[end]!);
    await handOverPiece(lane, entries.slice(start, end), size);
    start = end;
  }
}

async function handOverPiece(lane: Lane, entries: readonly EntryText[], size: number): Promise<void> {
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
  await ask({ piece: { bytes, ends }, lane }, [bytes.buffer, ends.buffer]);
}
