/** Reads request bodies without ever holding more of them than is allowed. */

import { PayloadTooLarge } from "./decode/failures.ts";
import { SlowBodies } from "./decode/slow-bodies.ts";

/** Longer bodies are read piece by piece, so that their progress can be seen. */
const wholeBytesMax = 64 * 1024;
/** How long a body may go without progress worth the name. */
const patienceDefaultMs = 10_000;

export interface BodyLimits {
  /** Largest body in bytes, as sent and unpacked. */
  readonly bytesMax: number;
  /** The same for flag requests and the management API, uploads aside. */
  readonly apiBytesMax: number;
  /** How long a body may go without progress; 10 s when left out. */
  readonly patienceMs?: number;
}

export class Bodies {
  private readonly slowBodies: SlowBodies;

  constructor(readonly limits: BodyLimits) {
    this.slowBodies = new SlowBodies(limits.patienceMs ?? patienceDefaultMs);
  }

  /**
   * The whole body.
   *
   * @param bytesMax most bytes that it may have; a larger one is refused before it is read where its length is
   *                 announced, and at the limit where it is not.
   * @throws {PayloadTooLarge} the body is larger; nothing of it is kept.
   * @throws {BodyInterrupted} the client went away, or dribbles.
   */
  async read(request: Request, bytesMax: number): Promise<Uint8Array> {
    const declared = declaredBytes(request);
    if (declared !== undefined && declared > bytesMax) throw new PayloadTooLarge(bytesMax);
    // Without a look at `request.body`: that alone makes Bun build a stream, which costs more than the rest.
    if (declared !== undefined && declared <= wholeBytesMax)
      return this.slowBodies.whole(request.bytes(), declared);
    if (request.body === null) return new Uint8Array();
    const pieces: Uint8Array[] = [];
    let length = 0;
    const isWhole = await this.slowBodies.pieces(request.body, (piece) => {
      length += piece.length;
      pieces.push(piece);
      return length <= bytesMax;
    });
    if (!isWhole) throw new PayloadTooLarge(bytesMax);
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }

  /**
   * Reads a body to its end and keeps nothing.
   *
   * @param bytesMax where to stop.
   * @throws {PayloadTooLarge} the body is larger.
   * @throws {BodyInterrupted} the client went away, or dribbles.
   */
  async drain(request: Request, bytesMax: number): Promise<void> {
    if (request.body === null) return;
    const isTooLarge = (declaredBytes(request) ?? 0) > bytesMax;
    let length = 0;
    const count = (piece: Uint8Array) => {
      length += piece.length;
      return length <= bytesMax;
    };
    if (isTooLarge || !(await this.slowBodies.pieces(request.body, count)))
      throw new PayloadTooLarge(bytesMax);
  }
}

function declaredBytes(request: Request): number | undefined {
  const header = request.headers.get("content-length");
  return header === null ? undefined : Number(header);
}
