/**
 * Strings in DuckDB's vector format, `duckdb_string_t` in `duckdb.h`: four 32-bit words with the length in bytes, then
 * up to twelve bytes inline, or a four-byte prefix and an address. One call passes a column and copies each string
 * once; a call per string would dominate the cost of an event.
 */

import { ptr } from "bun:ffi";

/** Undocumented methods of the runtime's buffers, without the argument checks that take longer than the work itself. */
export type FastBuffer = Buffer & {
  utf8Write(text: string, at: number): number;
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
};

/** Longer strings are not inline. */
const inlineMax = 12;
/** Strings are encoded into memory chunks of this size; a long one gets a separate chunk. */
const chunkBytes = 64 * 1024;
/** Maximum bytes of UTF-8 per UTF-16 code unit. */
const bytesPerUnit = 3;
const two32 = 2 ** 32;

const newChunk = () => Buffer.allocUnsafeSlow(chunkBytes) as FastBuffer;

export class StringVector {
  private readonly all: Uint32Array<ArrayBuffer>;
  private readonly bytes: Uint8Array;
  private count = 0;
  private chunk = newChunk();
  private chunkAt = 0;
  /** Memory that addresses refer to, retained until DuckDB has copied it. */
  private held: unknown[] = [];

  /** @param countMax maximum number of strings per column */
  constructor(countMax: number) {
    this.all = new Uint32Array(4 * countMax);
    this.bytes = new Uint8Array(this.all.buffer);
  }

  /** Starts a column of empty strings. */
  start(count: number): void {
    this.count = count;
    this.all.fill(0, 0, 4 * count);
  }

  /** The strings set since `begin`, valid until the next `begin`; addresses are valid until `release`. */
  get words(): Uint32Array<ArrayBuffer> {
    return this.all.subarray(0, 4 * this.count);
  }

  /** @param text bytes must be well-formed UTF-8, which is not validated */
  set(index: number, text: string | Uint8Array): void {
    if (typeof text === "string") this.setText(index, text);
    else this.setBytes(index, text, 0, text.length);
  }

  /** Releases the memory that addresses refer to, once DuckDB has copied it. */
  release(): void {
    this.held = [];
    this.chunkAt = 0;
  }

  private setText(index: number, text: string): void {
    const { length } = text;
    const capacityBytes = length * bytesPerUnit;
    if (capacityBytes > chunkBytes) {
      const own = Buffer.from(text);
      this.setBytes(index, own, 0, own.length);
      return;
    }
    if (this.chunkAt + capacityBytes > chunkBytes) {
      this.held.push(this.chunk);
      this.chunk = newChunk();
      this.chunkAt = 0;
    }
    const written = this.chunk.utf8Write(text, this.chunkAt);
    this.setBytes(index, this.chunk, this.chunkAt, written);
    if (written > inlineMax) this.chunkAt += written;
  }

  private setBytes(index: number, source: Uint8Array, at: number, length: number): void {
    const { all, bytes } = this;
    const word = 4 * index;
    all[word] = length;
    const first = 4 * (word + 1);
    const copied = length <= inlineMax ? length : 4;
    for (let position = 0; position < copied; position++) bytes[first + position] = source[at + position]!;
    if (length <= inlineMax) return;
    if (source !== this.chunk) this.held.push(source);
    const address = ptr(source) + at;
    const upper = Math.floor(address / two32);
    all[word + 2] = address - upper * two32;
    all[word + 3] = upper;
  }
}
