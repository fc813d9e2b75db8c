/**
 * Fast path from the lines of a file to events as they are sent: a WebAssembly program (`src/scan/`) reads the bytes
 * once and copies the parts of an event, so that no value is created.
 *
 * Atypical records are left to the slow path, which parses, maps and checks them; both paths lead to the same events.
 */

import { isUtf8 } from "node:buffer";
import { BufferPool } from "../../lib/buffer-pool.ts";
import { parseInstant } from "../../lib/timestamp.ts";
import { inputAddress, WasmInstance } from "../../scan/instance.ts";
import { CopiedEvent, parsedLine, type ReadRecord } from "./record.ts";

interface Program {
  startMembers(isTimeFree: boolean): void;
  knowMember(name: number, length: number, meaning: number): boolean;
  copyRecords(
    text: number,
    end: number,
    table: number,
    linesMax: number,
    output: number,
    capacityEnd: number,
    earliest: number,
    latest: number,
  ): number;
}

/** Meaning of the members of a format's records, in addition to the names of event fields. */
export interface RecordMembers {
  /** Not part of the event. */
  readonly leftOut: Iterable<string>;
  /** Not part of it in records that have all marks; properties in others. */
  readonly leftOutWithMarks: Iterable<string>;
  readonly marks: readonly string[];
  /** In records with all marks every past time is valid. */
  readonly isTimeFree: boolean;
  /** Contain a part of the event in another form; records in which one has a value are parsed. */
  readonly carried: readonly string[];
  /** Contains the UUID if `uuid` is missing. */
  readonly otherUuid?: string;
  /** Contains the chain of the clicked elements; otherwise left out. */
  readonly chain: string;
}

/** Role of a member in the event, as in `src/scan/assembly/records.ts`. */
const meanings = { event: 1, distinct_id: 2, uuid: 3, timestamp: 4, properties: 5 };
const chain = 6;
const otherUuid = 7;
const carried = 8;
const leftOut = 16;
const leftOutWithMarks = 32;
const markShift = 6;
const omittedShift = 10;
/** Maximum number of reportable omitted members. */
const omittedMax = 63;

/** Addresses in the program's memory, in units of four bytes. */
const readEndAt = 96 / 4;
const outEndAt = 100 / 4;
const lineNumbers = 6;

/** Lines per read. */
const linesMax = 4_096;
/** Longer blocks, which contain a line of nearly that length, are not handled: their memory would stay allocated. */
const blockBytesMax = 4 * 1024 * 1024;
/** Copies are stored in chunks of this size, unless a block has more. */
const chunkBytes = 1024 * 1024;
/** Spare memory for new copies: as much as the copies of a batch take. */
const spareBytesMax = 6 * chunkBytes;
/** Maximum number of cached name lists. */
const omittedListsMax = 10_000;
const noNames: readonly string[] = [];
/** An event is at most this much longer than its record. */
const capacityFor = (bytes: number) => bytes + bytes / 8 + 1_024;

export class RecordCopier {
  private readonly instance = new WasmInstance<Program>((instance) => ({
    timeOf: (at, length) => parseInstant(instance.buffer.toString("utf8", at, at + length)) ?? Number.NaN,
    generateUuid: () => undefined,
  }));

  private readonly memory = new BufferPool(spareBytesMax);
  /** Chunks with copies that are still needed, in order. */
  private readonly chunks: Buffer[] = [];
  private chunkEnd = 0;
  /** Names of omitted members, by bit number. */
  private readonly omitted: string[] = [];
  /** Name lists by their bits: most records have the same ones. */
  private readonly omittedLists = new Map<bigint, readonly string[]>();

  /** @param times range of typical records, epoch microseconds. */
  constructor(
    members: RecordMembers,
    private readonly times: readonly [earliest: number, latest: number],
  ) {
    const all = new Map<string, number>(Object.entries(meanings));
    const add = (name: string, meaning: number) => all.set(name, (all.get(name) ?? 0) | meaning);
    for (const name of members.carried) add(name, carried);
    for (const name of members.leftOut) add(name, leftOut);
    for (const name of members.leftOutWithMarks) add(name, leftOutWithMarks);
    for (const [index, name] of members.marks.entries()) add(name, 1 << (markShift + index));
    const reported = [...members.leftOut, ...members.leftOutWithMarks].filter(
      (name) => name !== members.chain,
    );
    if (reported.length > omittedMax) throw new Error("Too many omitted members.");
    for (const [index, name] of reported.entries()) {
      this.omitted[index + 1] = name;
      add(name, (index + 1) << omittedShift);
    }
    if (members.otherUuid !== undefined) add(members.otherUuid, otherUuid);
    add(members.chain, chain);
    const { program, buffer } = this.instance;
    program.startMembers(members.isTimeFree);
    for (const [name, meaning] of all) {
      const length = buffer.write(name, inputAddress);
      if (!program.knowMember(inputAddress, length, meaning)) throw new Error("There are too many members.");
    }
  }

  /** Whether a block of lines can be read. */
  canRead(block: Buffer): boolean {
    return block.length <= blockBytesMax && isUtf8(block);
  }

  /**
   * Reads a block of lines: typical records are copied, all others parsed. Read it to its end before the next one.
   *
   * @param line number of its first line.
   * @returns the number of the line after it.
   */
  *read(block: Buffer, line: number): Generator<ReadRecord[], number> {
    const { instance, times } = this;
    const tableBytes = linesMax * lineNumbers * 4;
    const capacityBytes = capacityFor(block.length);
    const table = instance.put(block, tableBytes + capacityBytes);
    const output = table + tableBytes;
    const end = inputAddress + block.length;
    for (let at = inputAddress; at < end; ) {
      const { program, numbers, buffer } = instance;
      const lines = program.copyRecords(at, end, table, linesMax, output, output + capacityBytes, ...times);
      const copies = this.chunkFor(numbers[outEndAt]! - output);
      const shift = this.chunkEnd - output;
      this.chunkEnd += buffer.copy(copies, this.chunkEnd, output, numbers[outEndAt]!);
      at = numbers[readEndAt]!;
      const records: ReadRecord[] = [];
      const tableEnd = table / 4 + lines * lineNumbers;
      for (let position = table / 4; position < tableEnd; position += lineNumbers, line++) {
        const from = numbers[position]! - inputAddress;
        const to = numbers[position + 1]! - inputAddress;
        const start = numbers[position + 2]!;
        if (start === 0) {
          const text = block.toString("utf8", from, to);
          if (text.trim() !== "") records.push(parsedLine(text, line));
          continue;
        }
        const end = numbers[position + 3]! + shift;
        const omitted = this.omittedNames(numbers[position + 4]!, numbers[position + 5]!);
        records.push({
          line,
          copied: new CopiedEvent(copies, start + shift, end, block, from, to, omitted),
        });
      }
      yield records;
    }
    return line;
  }

  private omittedNames(low: number, high: number): readonly string[] {
    if (low === 0 && high === 0) return noNames;
    const bits = (BigInt(high) << 32n) | BigInt(low);
    let names = this.omittedLists.get(bits);
    if (names === undefined) {
      names = this.omitted.filter((_, number) => ((bits >> BigInt(number)) & 1n) === 1n);
      if (this.omittedLists.size < omittedListsMax) this.omittedLists.set(bits, names);
    }
    return names;
  }

  /** Reclaims the memory of all events before this one, which are no longer read. */
  release({ texts }: CopiedEvent): void {
    while (this.chunks[0] !== texts) this.memory.recycle(this.chunks.shift()!);
  }

  /** A chunk with space for this many more bytes. */
  private chunkFor(bytes: number): Buffer {
    const last = this.chunks.at(-1);
    if (last !== undefined && last.length - this.chunkEnd >= bytes) return last;
    const chunk = this.memory.take(Math.max(bytes, chunkBytes));
    this.chunks.push(chunk);
    this.chunkEnd = 0;
    return chunk;
  }
}

/**
 * Copiers by record format: creating one costs more than reading a small file, of which an archive may contain very
 * many.
 */
export class RecordCopiers {
  private readonly copiers = new Map<string, RecordCopier>();

  get(format: string, ...options: ConstructorParameters<typeof RecordCopier>): RecordCopier {
    const copier = this.copiers.get(format) ?? new RecordCopier(...options);
    this.copiers.set(format, copier);
    return copier;
  }
}
