/** The thread of `large-bodies.ts`. */

import { type FromThread, refusalOf, type ToThread } from "./large-bodies.ts";
import { openBody, requestLines, tokenOf } from "./request-lines.ts";

declare const self: Worker;

/** Lines are handed over in pieces that the other thread takes in about a millisecond. */
const pieceCharacters = 512 * 1024;

const say = (message: FromThread) => postMessage(message);
let onProject: ((message: ToThread) => void) | undefined;

self.onmessage = async ({ data }: MessageEvent<ToThread>) => {
  if ("project" in data) return onProject?.(data);
  const { body, protocol, limitBytes, arrival, known } = data.open;
  try {
    const opened = await openBody(body, protocol, limitBytes);
    const project = known ?? (await askProject(tokenOf(opened)));
    const lines = await requestLines(opened, protocol, project, arrival, () => Bun.randomUUIDv7());
    sayLines(lines.entries);
    say({ done: { lane: lines.lane, results: lines.results } });
  } catch (error) {
    say({ failed: refusalOf(error) });
  } finally {
    // The next one needs as much again.
    setImmediate(() => Bun.gc(true));
  }
};

function askProject(token: string) {
  return new Promise<Extract<ToThread, { project: unknown }>["project"]>((resolve) => {
    onProject = (message) => {
      onProject = undefined;
      if ("project" in message) resolve(message.project);
    };
    say({ token });
  });
}

function sayLines(entries: readonly string[]): void {
  let piece: string[] = [];
  let characters = 0;
  for (const entry of entries) {
    piece.push(entry);
    characters += entry.length;
    if (characters < pieceCharacters) continue;
    say({ entries: piece });
    [piece, characters] = [[], 0];
  }
  if (piece.length > 0) say({ entries: piece });
}
