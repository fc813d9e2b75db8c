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
  /** The largest one of flag requests and of the management API, uploads aside. */
  readonly apiBytesMax: number;
  /** Bytes of bodies that are held at once; more wait. */
  readonly inFlightBytesMax: number;
  /** How long a body may go without progress; 10 s when left out. */
  readonly patienceMs?: number;
}

/**
 * Batches up to this size have a quarter of the budget for themselves: large bodies must not keep them out. Large ones have
 * half of it; the rest is for what reading one of them takes.
 */
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
    this.large = new BodyBudget(limits.inFlightBytesMax / 2);
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
    const room = new Room(this.usual, this.large, bytesMax);
    hold(() => room.leave());
    if (declared !== undefined) await room.take(declared);
    if (request.body === null) return new Uint8Array();
    let bytes = Buffer.allocUnsafeSlow(declared ?? wholeBytesMax);
    let length = 0;
    const keep = (piece: Uint8Array) => {
      if (length + piece.length > bytes.length) bytes = grown(bytes, length + piece.length, bytesMax);
      bytes.set(piece, length);
      length += piece.length;
      return true;
    };
    const isWhole = await this.slowBodies.pieces(request.body, (piece) => {
      const needed = length + piece.length;
      if (needed > bytesMax) return false;
      return room.has(needed) ? keep(piece) : room.grow(needed).then(() => keep(piece));
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

/**
 * What a body takes of the budgets. One whose length was not announced takes it when it turns out to need it: whole
 * families of clients announce none, and nearly all they send is small.
 */
class Room {
  private bytes = wholeBytesMax;
  private taken: (() => void) | undefined;

  constructor(
    private readonly usual: BodyBudget,
    private readonly large: BodyBudget,
    private readonly bytesMax: number,
  ) {}

  /** Whether so many bytes need nothing more than was taken. */
  has(bytes: number): boolean {
    return bytes <= this.bytes;
  }

  /** Waits for room for so many bytes, or some more. @throws {HttpFailure} 503: there is none. */
  grow(bytes: number): Promise<void> {
    return this.take(Math.min(bytes <= usualBytesMax ? usualBytesMax : this.bytesMax, this.bytesMax));
  }

  /** Waits for room for exactly so many bytes. @throws {HttpFailure} 503: there is none. */
  async take(bytes: number): Promise<void> {
    const leave = await (bytes > usualBytesMax ? this.large : this.usual).take(bytes);
    this.leave();
    this.taken = leave;
    this.bytes = bytes;
  }

  /** Gives back what was taken. */
  leave(): void {
    this.taken?.();
    this.taken = undefined;
  }
}

/** The same bytes with room for twice as many, within the limit. */
function grown(bytes: Buffer<ArrayBuffer>, needed: number, bytesMax: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(needed, bytes.length * 2)));
  larger.set(bytes);
  return larger;
}

/** The same length said more than once comes as a list; the server has refused lengths that differ, and what is none. */
function declaredBytes(request: Request): number | undefined {
  const header = request.headers.get("content-length");
  return header === null ? undefined : Number.parseInt(header, 10);
}
