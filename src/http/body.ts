/** Reads request bodies without ever holding more of them than is allowed. */

import { BodyBudget } from "./body-budget.ts";
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
  /** Bytes of bodies that are held at once; more wait. */
  readonly inFlightBytesMax: number;
  /** How long a body may go without progress; 10 s when left out. */
  readonly patienceMs?: number;
}

/** Usual batches have a quarter of the room for themselves: large bodies must not keep them out. */
const usualBytesMax = 1024 * 1024;

/** Gives back, when the request is over, what was taken for it. */
export type Hold = (release: () => void) => void;

export class Bodies {
  private readonly slowBodies: SlowBodies;
  private readonly usual: BodyBudget;
  private readonly large: BodyBudget;

  constructor(readonly limits: BodyLimits) {
    this.slowBodies = new SlowBodies(limits.patienceMs ?? patienceDefaultMs);
    this.usual = new BodyBudget(limits.inFlightBytesMax / 4);
    this.large = new BodyBudget((limits.inFlightBytesMax * 3) / 4);
  }

  /**
   * The whole body.
   *
   * @param bytesMax most bytes that it may have; a larger one is refused before it is read where its length is
   *                 announced, and at the limit where it is not.
   * @param hold gets what gives the body's room back.
   * @throws {PayloadTooLarge} the body is larger; nothing of it is kept.
   * @throws {BodyInterrupted} the client went away, or dribbles.
   * @throws {HttpFailure} 503: there is no room for so many bodies at once.
   */
  async read(request: Request, bytesMax: number, hold: Hold): Promise<Uint8Array> {
    const declared = declaredBytes(request);
    if (declared !== undefined && declared > bytesMax) throw new PayloadTooLarge(bytesMax);
    // Without a look at `request.body`: that alone makes Bun build a stream, which costs more than the rest.
    if (declared !== undefined && declared <= wholeBytesMax)
      return this.slowBodies.whole(request.bytes(), declared);
    const expected = declared ?? bytesMax;
    hold(await (expected > usualBytesMax ? this.large : this.usual).take(expected));
    if (request.body === null) return new Uint8Array();
    let bytes = Buffer.allocUnsafeSlow(declared ?? wholeBytesMax);
    let length = 0;
    const isWhole = await this.slowBodies.pieces(request.body, (piece) => {
      if (length + piece.length > bytesMax) return false;
      if (length + piece.length > bytes.length) bytes = grown(bytes, length + piece.length, bytesMax);
      bytes.set(piece, length);
      length += piece.length;
      return true;
    });
    if (!isWhole) throw new PayloadTooLarge(bytesMax);
    return length === bytes.length ? bytes : bytes.subarray(0, length);
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

/** The same bytes with room for twice as many, within the limit. */
function grown(bytes: Buffer<ArrayBuffer>, needed: number, bytesMax: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(needed, bytes.length * 2)));
  larger.set(bytes);
  return larger;
}

function declaredBytes(request: Request): number | undefined {
  const header = request.headers.get("content-length");
  return header === null ? undefined : Number(header);
}
