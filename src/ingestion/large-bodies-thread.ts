/** The thread of `large-bodies.ts`. */

import type { EntryText } from "../journal/entry.ts";
import { putThreadBehind } from "../lib/priority.ts";
import { type FromThread, type LargeBody, refusalOf, type ToThread } from "./large-bodies.ts";
import { openBody, readRequest } from "./request-lines.ts";

declare const self: Worker;

/** Entries are handed over in pieces of about this size. */
const pieceBytes = 1024 * 1024;

const say = (message: FromThread) => postMessage(message);
let onProject: ((message: ToThread) => void) | undefined;

// Others' requests go first where there is one processor for both.
putThreadBehind();
self.onmessage = async ({ data }: MessageEvent<ToThread>) => {
  if ("project" in data) return onProject?.(data);
  await take(data.open);
  // Before the next one, which needs as much again.
  Bun.gc(true);
};

async function take({ body, protocol, limitBytes, arrival, known }: LargeBody): Promise<void> {
  try {
    const request = readRequest(await openBody(body, limitBytes), protocol);
    const project = known ?? (await askProject(request.token()));
    const lines = await request.lines(project, arrival, () => Bun.randomUUIDv7());
    sayEntries(lines.entries);
    say({ done: { lane: lines.lane, results: lines.results } });
  } catch (error) {
    say({ failed: refusalOf(error) });
  }
}

function askProject(token: string) {
  return new Promise<Extract<ToThread, { project: unknown }>["project"]>((resolve) => {
    onProject = (message) => {
      onProject = undefined;
      if ("project" in message) resolve(message.project);
    };
    say({ token });
  });
}

/** Hands entries over as bytes, which change their owner without a copy. */
function sayEntries(entries: readonly EntryText[]): void {
  for (let start = 0; start < entries.length; ) {
    let size = 0;
    let end = start;
    for (; end < entries.length && (end === start || size < pieceBytes); end++)
      size += Buffer.byteLength(entries[end]!);
    sayPiece(entries.slice(start, end), size);
    start = end;
  }
}

function sayPiece(entries: readonly EntryText[], size: number): void {
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
  const message: FromThread = { piece: { bytes, ends } };
  postMessage(message, [bytes.buffer, ends.buffer]);
}
