/**
 * Journal lines that another process has written, with space for the sequence numbers: the writer of the journal copies
 * them as one block and fills in the numbers.
 *
 *   {"seq":0000000,"project_id":1,"uuid":…}       in a block for numbers of seven digits
 */

import { type EntryJson, entryStart, Lines } from "./entry.ts";

const newline = 0x0a;
const zero = 0x30;
/** The most digits of a safe integer. */
const digitsMax = 16;

/** Start of a line up to the entry, by number of digits. */
const starts = Array.from({ length: digitsMax + 1 }, (_, digits) =>
  Buffer.from(`${entryStart}${"0".repeat(digits)},`),
);

/** Number of digits of a sequence number. */
export function digitCount(seq: number): number {
  return String(seq).length;
}

/** Size of the lines of entries with a total size. */
export function preparedSize(digits: number, count: number, entryBytes: number): number {
  return count * (starts[digits]!.length + 1) + entryBytes;
}

/** Writes one line at an offset. @returns the end offset */
export function writePrepared(buffer: Buffer, at: number, digits: number, entry: EntryJson): number {
  const start = starts[digits]!;
  buffer.set(start, at);
  let end = at + start.length;
  if (typeof entry === "string") end += buffer.write(entry, end);
  else {
    buffer.set(entry, end);
    end += entry.length;
  }
  buffer[end] = newline;
  return end + 1;
}

/** Lines of entries without their sequence numbers. */
export class PreparedLines {
  /**
   * @param block lines as `writePrepared` writes them
   * @param sizes bytes of each line
   * @param digits of the numbers for which there is space
   * @param requests of clients that the lines are of
   */
  constructor(
    private readonly block: Uint8Array,
    private readonly sizes: readonly number[],
    private readonly digits: number,
    readonly requests: number,
  ) {}

  /** Number of entries. */
  get count(): number {
    return this.sizes.length;
  }

  /** Approximate size in bytes. */
  get length(): number {
    return this.block.length;
  }

  /** The entries, without their numbers. */
  entries(): Uint8Array[] {
    const start = starts[this.digits]!.length;
    let at = 0;
    return this.sizes.map((size) => {
      const entry = this.block.subarray(at + start, at + size - 1);
      at += size;
      return entry;
    });
  }

  /** The lines, numbered from `first`. */
  numbered(first: number): Pick<Lines, "length" | "write"> {
    const { block, sizes, digits } = this;
    const fits = digitCount(first) === digits && digitCount(first + sizes.length - 1) === digits;
    if (!fits) return new Lines(first, this.entries());
    return { length: block.length, write: (buffer, at) => this.write(buffer, at, first) };
  }

  private write(buffer: Buffer, at: number, first: number): number {
    const { block, sizes, digits } = this;
    buffer.set(block, at);
    let start = at + entryStart.length;
    for (let index = 0; index < sizes.length; index++) {
      let rest = first + index;
      for (let position = start + digits - 1; position >= start; position--) {
        const upper = Math.floor(rest / 10);
        buffer[position] = zero + rest - 10 * upper;
        rest = upper;
      }
      start += sizes[index]!;
    }
    return at + block.length;
  }
}
