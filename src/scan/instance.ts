/** The scanner's program, ready to be called, and its memory. */

import { program } from "./program.ts";

/** What the program asks for while it writes; places and lengths in its memory. */
export interface ProgramImports {
  /** Epoch microseconds of a text; NaN when it is no time. */
  readonly timeOf: (at: number, length: number) => number;
  /** Writes a new uuid. */
  readonly makeUuid: (at: number) => void;
}

/** For those who only read. */
const noImports: ProgramImports = { timeOf: () => Number.NaN, makeUuid: () => {} };
/** Below it the program has places of its own. */
export const textAt = 80 * 1024;
/** Zeros behind a text, which end everything. */
export const tailBytes = 64;
const pageBytes = 64 * 1024;

/** One instance with memory of its own, which grows with the longest text. */
export class ProgramInstance<Exports> {
  readonly program: Exports & { readonly memory: WebAssembly.Memory };
  bytes!: Uint8Array<ArrayBuffer>;
  buffer!: Buffer;
  /** Numbers of four bytes. */
  numbers!: Uint32Array;

  constructor(imports: (instance: ProgramInstance<Exports>) => ProgramImports = () => noImports) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(program()), {
      host: { ...imports(this) },
    });
    this.program = exports as unknown as typeof this.program;
    this.look();
  }

  /** Puts a text at `textAt`, with room for so many bytes behind its tail. @returns where that room begins */
  put(text: Uint8Array, roomBytes: number): number {
    const end = textAt + text.length;
    const room = aligned(end + tailBytes);
    this.reserve(room + roomBytes);
    this.bytes.set(text, textAt);
    this.bytes.fill(0, end, end + tailBytes);
    return room;
  }

  /** Makes the memory at least so large. */
  reserve(bytes: number): void {
    const missing = bytes - this.bytes.length;
    if (missing <= 0) return;
    this.program.memory.grow(Math.ceil(missing / pageBytes));
    this.look();
  }

  private look(): void {
    const { buffer } = this.program.memory;
    this.bytes = new Uint8Array(buffer);
    this.buffer = Buffer.from(buffer);
    this.numbers = new Uint32Array(buffer);
  }
}

/** The next place that is good for 16 bytes. */
export function aligned(at: number): number {
  return Math.ceil(at / 16) * 16;
}
