/** Encodes rows in ClickHouse's RowBinary format: consecutive values without names, strings without escapes. */

const firstBytes = 64 * 1024;
const two32 = 2 ** 32;

export class RowBinary {
  private buffer = Buffer.allocUnsafe(firstBytes);
  private used = 0;

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.used);
  }

  get length(): number {
    return this.used;
  }

  boolean(value: boolean): void {
    this.reserve(1);
    this.buffer[this.used++] = value ? 1 : 0;
  }

  int32(value: number): void {
    this.reserve(4);
    this.used = this.buffer.writeInt32LE(value, this.used);
  }

  /** @param value a safe integer */
  int64(value: number): void {
    this.reserve(8);
    const upper = Math.floor(value / two32);
    this.used = this.buffer.writeUInt32LE(value - upper * two32, this.used);
    this.used = this.buffer.writeInt32LE(upper, this.used);
  }

  /** For a nullable column. */
  int64OrNull(value: number | null): void {
    this.boolean(value === null);
    if (value !== null) this.int64(value);
  }

  /** @param value hyphenated; encoded as two 64-bit numbers, upper half first */
  uuid(value: string): void {
    this.reserve(16);
    for (const [upper, lower] of [
      [value.slice(0, 8), value.slice(9, 13) + value.slice(14, 18)],
      [value.slice(19, 23) + value.slice(24, 28), value.slice(28, 36)],
    ]) {
      this.used = this.buffer.writeUInt32LE(Number.parseInt(lower!, 16), this.used);
      this.used = this.buffer.writeUInt32LE(Number.parseInt(upper!, 16), this.used);
    }
  }

  text(value: string | Uint8Array): void {
    const length = typeof value === "string" ? Buffer.byteLength(value) : value.length;
    this.reserve(length + 5);
    this.size(length);
    if (typeof value === "string") this.used += this.buffer.write(value, this.used);
    else {
      this.buffer.set(value, this.used);
      this.used += length;
    }
  }

  /** For a nullable column. */
  textOrNull(value: string | null): void {
    this.boolean(value === null);
    if (value !== null) this.text(value);
  }

  /** LEB128: seven bits per byte, lowest first. */
  private size(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.buffer[this.used++] = (rest % 0x80) | 0x80;
    this.buffer[this.used++] = rest;
  }

  private reserve(bytes: number): void {
    const needed = this.used + bytes;
    if (needed <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(larger, 0, 0, this.used);
    this.buffer = larger;
  }
}
