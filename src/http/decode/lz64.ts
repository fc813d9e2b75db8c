/**
 * Reads text that old browser libraries compressed with lz-string's `compressToBase64`.
 *
 * A reader of our own because the size of the result must be bounded while it grows: a few hundred kilobytes can
 * stand for gigabytes. Each dictionary entry is a stretch of what has been written so far, so none is stored.
 */

import { InvalidPayload, PayloadTooLarge } from "./failures.ts";

const literal8Bits = 0;
const literal16Bits = 1;
const end = 2;
const firstFreeCode = 3;
const firstCodeBits = 2;
/** More than a result of 32 MiB can need; keeps the bit buffer within 31 bits. */
const codeBitsMax = 25;

/**
 * Decompresses base64 text of lz-string.
 *
 * @param limitBytes most bytes that the result may have in UTF-8.
 * @throws {InvalidPayload} the text is not lz-string's.
 * @throws {PayloadTooLarge} the result would be larger than the limit.
 */
export function decompressLz64(base64: Uint8Array, limitBytes: number): string {
  const bits = new BitReader(base64);
  const output = new GrowingText(limitBytes);
  const dictionary = new Dictionary();
  // The first code follows nothing, so it does not make an entry out of the stretch before it.
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
      // The entry that is about to be made: the stretch before, and its own first character once more.
      output.repeat(previousStart, previousLength + 1);
    } else {
      throw notLz64();
    }
    if (previousLength > 0) dictionary.add(previousStart, previousLength + 1);
    previousStart = start;
    previousLength = output.length - start;
    if (dictionary.codeBits > codeBitsMax) throw new PayloadTooLarge(limitBytes);
  }
}

function notLz64(): InvalidPayload {
  return new InvalidPayload("failed to decode request: not valid lz64 data");
}

/** Where the stretch behind each code begins in the output, and how long it is. */
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
/** Six bits per character, last bit first, because a code's lowest bit comes first in the stream. */
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

class GrowingText {
  length = 0;
  private units = new Uint16Array(4096);

  constructor(private readonly limitBytes: number) {}

  push(unit: number): void {
    this.makeRoom(1);
    this.units[this.length++] = unit;
  }

  /** Copies forwards one by one: the stretch may reach into what is being written. */
  repeat(start: number, length: number): void {
    this.makeRoom(length);
    const units = this.units;
    for (let from = start; from < start + length; from++) units[this.length++] = units[from]!;
  }

  text(): string {
    const text = Buffer.from(this.units.buffer, 0, this.length * 2).toString("utf16le");
    if (Buffer.byteLength(text) > this.limitBytes) throw new PayloadTooLarge(this.limitBytes);
    return text;
  }

  private makeRoom(count: number): void {
    const needed = this.length + count;
    if (needed > this.limitBytes) throw new PayloadTooLarge(this.limitBytes);
    if (needed <= this.units.length) return;
    const larger = new Uint16Array(Math.max(needed, this.units.length * 2));
    larger.set(this.units);
    this.units = larger;
  }
}
