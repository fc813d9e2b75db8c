/**
 * Decompresses text that old browser libraries compressed with lz-string's `compressToBase64`.
 *
 * A separate implementation, because the result must be bounded while it grows: a few hundred kilobytes can expand to
 * gigabytes. Each dictionary entry is a range of the output so far, so none is stored.
 */

import { InvalidPayloadError, PayloadTooLargeError } from "./errors.ts";

const literal8Bits = 0;
const literal16Bits = 1;
const end = 2;
const firstFreeCode = 3;
const firstCodeBits = 2;
/** More than a result of 32 MiB can need; keeps the bit buffer within 31 bits. */
const codeBitsMax = 25;

/**
 * Decompresses lz-string's base64 text.
 *
 * @param limitBytes maximum size of the result in UTF-8.
 * @throws {InvalidPayloadError} the text is not lz-string's.
 * @throws {PayloadTooLargeError} the result would be larger than the limit.
 */
export function decompressLz64(base64: Uint8Array, limitBytes: number): string {
  const bits = new BitReader(base64);
  const output = new StringBuilder(limitBytes);
  const dictionary = new Dictionary();
  // The first code has no predecessor, so it creates no entry.
  let previousStart = 0;
  let previousLength = 0;
  for (;;) {
    const code = bits.read(dictionary.codeBits);
    if (code === end) return output.text();
    const start = output.length;
    const entry = code - firstFreeCode;
    if (code === literal8Bits || code === literal16Bits) {
      output.push(bits.read(code === literal8Bits ? 8 : 16));
      dictionary.add(start, 1);
    } else if (entry < dictionary.size) {
      output.repeat(dictionary.startOf(entry), dictionary.lengthOf(entry));
    } else if (entry === dictionary.size && previousLength > 0) {
      // The entry that is created next: the previous range followed by its own first character.
      output.repeat(previousStart, previousLength + 1);
    } else {
      throw notLz64();
    }
    if (previousLength > 0) dictionary.add(previousStart, previousLength + 1);
    previousStart = start;
    previousLength = output.length - start;
    if (dictionary.codeBits > codeBitsMax) throw new PayloadTooLargeError(limitBytes);
  }
}

function notLz64(): InvalidPayloadError {
  return new InvalidPayloadError("failed to decode request: not valid lz64 data");
}

/** Start and length of each code's range in the output. */
class Dictionary {
  size = 0;
  /** Length of the next code; grows when the codes of this length are used up. */
  codeBits = firstCodeBits;
  private entriesUntilLonger = 1;
  private stretches = new Uint32Array(1024);

  add(start: number, length: number): void {
    if (this.size * 2 === this.stretches.length) {
      const larger = new Uint32Array(this.stretches.length * 2);
      larger.set(this.stretches);
      this.stretches = larger;
    }
    this.stretches[this.size * 2] = start;
    this.stretches[this.size * 2 + 1] = length;
    this.size++;
    if (--this.entriesUntilLonger === 0) {
      this.entriesUntilLonger = 2 ** this.codeBits;
      this.codeBits++;
    }
  }

  startOf(entry: number): number {
    return this.stretches[entry * 2]!;
  }

  lengthOf(entry: number): number {
    return this.stretches[entry * 2 + 1]!;
  }
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const notADigit = 255;
/** Six bits per character in reverse order, because a code's lowest bit comes first in the stream. */
const reversedSixes = new Uint8Array(256).fill(notADigit);
for (let value = 0; value < 64; value++) {
  let reversed = 0;
  for (let bit = 0; bit < 6; bit++) if (value & (1 << bit)) reversed |= 32 >> bit;
  reversedSixes[alphabet.charCodeAt(value)] = reversed;
}

class BitReader {
  private at = 0;
  private buffer = 0;
  private bufferedBits = 0;

  constructor(private readonly base64: Uint8Array) {}

  read(bits: number): number {
    while (this.bufferedBits < bits) {
      const six = reversedSixes[this.base64[this.at++] ?? 0]!;
      if (six === notADigit) throw notLz64();
      this.buffer |= six << this.bufferedBits;
      this.bufferedBits += 6;
    }
    const value = this.buffer & (2 ** bits - 1);
    this.buffer >>>= bits;
    this.bufferedBits -= bits;
    return value;
  }
}

class StringBuilder {
  length = 0;
  private units = new Uint16Array(4096);

  constructor(private readonly limitBytes: number) {}

  push(unit: number): void {
    this.ensureCapacity(1);
    this.units[this.length++] = unit;
  }

  /** Copies forward one by one: the range may overlap the output. */
  repeat(start: number, length: number): void {
    this.ensureCapacity(length);
    const units = this.units;
    for (let from = start; from < start + length; from++) units[this.length++] = units[from]!;
  }

  text(): string {
    const text = Buffer.from(this.units.buffer, 0, this.length * 2).toString("utf16le");
    if (Buffer.byteLength(text) > this.limitBytes) throw new PayloadTooLargeError(this.limitBytes);
    return text;
  }

  private ensureCapacity(count: number): void {
    const needed = this.length + count;
    if (needed > this.limitBytes) throw new PayloadTooLargeError(this.limitBytes);
    if (needed <= this.units.length) return;
    const larger = new Uint16Array(Math.max(needed, this.units.length * 2));
    larger.set(this.units);
    this.units = larger;
  }
}
