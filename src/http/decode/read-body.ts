/** Reads request bodies without ever holding more of them than is allowed. */

import { PayloadTooLarge } from "./failures.ts";
import type { SlowBodies } from "./slow-bodies.ts";

/** Longer bodies are read piece by piece, so that their progress can be seen. */
const wholeBytesMax = 256 * 1024;

/**
 * The whole body.
 *
 * @param limitBytes most bytes that the body may have; a larger one is refused before it is read where its length
 *                   is announced, and at the limit where it is not.
 * @throws {PayloadTooLarge} the body is larger; nothing of it is kept.
 * @throws {BodyInterrupted} the client went away, or dribbles.
 */
export async function readBody(
  request: Request,
  limitBytes: number,
  slowBodies: SlowBodies,
): Promise<Uint8Array> {
  const declared = declaredBytes(request);
  if (declared !== undefined && declared > limitBytes) throw new PayloadTooLarge(limitBytes);
  // Without a look at `request.body`: that alone makes Bun build a stream, which costs more than the rest.
  if (declared !== undefined && declared <= wholeBytesMax) return slowBodies.whole(request.bytes(), declared);
  if (request.body === null) return new Uint8Array();
  const pieces: Uint8Array[] = [];
  let length = 0;
  const isWhole = await slowBodies.pieces(request.body, (piece) => {
    length += piece.length;
    pieces.push(piece);
    return length <= limitBytes;
  });
  if (!isWhole) throw new PayloadTooLarge(limitBytes);
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/**
 * Reads a body to its end and keeps nothing.
 *
 * @param limitBytes where to stop.
 * @throws {PayloadTooLarge} the body is larger.
 * @throws {BodyInterrupted} the client went away, or dribbles.
 */
export async function drainBody(request: Request, limitBytes: number, slowBodies: SlowBodies): Promise<void> {
  if (request.body === null) return;
  const isTooLarge = (declaredBytes(request) ?? 0) > limitBytes;
  let length = 0;
  const count = (piece: Uint8Array) => {
    length += piece.length;
    return length <= limitBytes;
  };
  if (isTooLarge || !(await slowBodies.pieces(request.body, count))) throw new PayloadTooLarge(limitBytes);
}

function declaredBytes(request: Request): number | undefined {
  const header = request.headers.get("content-length");
  return header === null ? undefined : Number(header);
}
