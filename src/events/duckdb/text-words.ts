/**
 * Texts as DuckDB keeps them in a vector: four words of 32 bits each.
 *
 * The first word is the length in bytes. Up to twelve bytes stand in the other three; of a longer text its first four bytes
 * do, and then the address of all of it. So a column is handed over with one call and DuckDB copies each text once, from
 * where it is; a call for each text costs more than all else that is done with an event.
 *
 * Source: `duckdb_string_t` in DuckDB's `duckdb.h`.
 */

import { ptr } from "bun:ffi";
import type { QuickBuffer } from "../../lib/quick-buffer.ts";

/** Longer texts are not copied into their words. */
const inlineMax = 12;
/** Texts that are no bytes yet get their place in pieces of memory of this size; a long one gets a piece of its own. */
const pieceBytes = 64 * 1024;
/** UTF-8 takes as many bytes at the most for a unit of a text. */
const bytesPerUnit = 3;
const two32 = 2 ** 32;

const newPiece = () => Buffer.allocUnsafeSlow(pieceBytes) as QuickBuffer;

export class TextWords {
  private readonly all: Uint32Array<ArrayBuffer>;
  private readonly bytes: Uint8Array;
  private count = 0;
  private piece = newPiece();
  private pieceAt = 0;
  /** What addresses point to must stay until DuckDB has copied it. */
  private held: unknown[] = [];

  /** @param countMax of texts at a time. */
  constructor(countMax: number) {
    this.all = new Uint32Array(4 * countMax);
    this.bytes = new Uint8Array(this.all.buffer);
  }

  /** Begins a column: all of its texts are empty. */
  begin(count: number): void {
    this.count = count;
    this.all.fill(0, 0, 4 * count);
  }

  /** What was set since `begin`; good until the next one. Its addresses are good until `release`. */
  get words(): Uint32Array<ArrayBuffer> {
    return this.all.subarray(0, 4 * this.count);
  }

  /** @param text well-formed UTF-8, when it is bytes; nobody checks. */
  set(index: number, text: string | Uint8Array): void {
    if (typeof text === "string") this.setText(index, text);
    else this.setBytes(index, text, 0, text.length);
  }

  /** Forgets what addresses point to: DuckDB has copied it. */
  release(): void {
    this.held = [];
    this.pieceAt = 0;
  }

  private setText(index: number, text: string): void {
    const { length } = text;
    const capacityBytes = length * bytesPerUnit;
    if (capacityBytes > pieceBytes) {
      const own = Buffer.from(text);
      this.setBytes(index, own, 0, own.length);
      return;
    }
    if (this.pieceAt + capacityBytes > pieceBytes) {
      this.held.push(this.piece);
      this.piece = newPiece();
      this.pieceAt = 0;
    }
    const written = this.piece.utf8Write(text, this.pieceAt);
    this.setBytes(index, this.piece, this.pieceAt, written);
    if (written > inlineMax) this.pieceAt += written;
  }

  private setBytes(index: number, source: Uint8Array, at: number, length: number): void {
    const { all, bytes } = this;
    const word = 4 * index;
    all[word] = length;
    const first = 4 * (word + 1);
    const copied = length <= inlineMax ? length : 4;
    for (let place = 0; place < copied; place++) bytes[first + place] = source[at + place]!;
    if (length <= inlineMax) return;
    if (source !== this.piece) this.held.push(source);
    const address = ptr(source) + at;
    const upper = Math.floor(address / two32);
    all[word + 2] = address - upper * two32;
    all[word + 3] = upper;
  }
}
