/**
 * The quick way from the lines of a file to events as they are sent: a program (`src/scan/`) reads the bytes once and copies
 * what an event has, so that no value of it is ever made.
 *
 * What is not usual it leaves to those who parse, map and check records; both ways lead to the same events.
 */

import { isUtf8 } from "node:buffer";
import { ReusedBuffers } from "../../lib/reused-buffers.ts";
import { parseInstant } from "../../lib/timestamp.ts";
import { ProgramInstance, textAt } from "../../scan/instance.ts";
import { CopiedEvent, parsedLine, type ReadRecord } from "./record.ts";

interface Program {
  beginMembers(isTimeFree: boolean): void;
  knowMember(name: number, length: number, meaning: number): boolean;
  copyRecords(
    text: number,
    end: number,
    table: number,
    linesMax: number,
    room: number,
    roomEnd: number,
    earliest: number,
    latest: number,
  ): number;
}

/** What the members of a format's records are, besides those that events have under their own names. */
export interface RecordMembers {
  /** No part of the event. */
  readonly leftOut: Iterable<string>;
  /** No part of it in records that have all marks; properties in others. */
  readonly leftOutWithMarks: Iterable<string>;
  readonly marks: readonly string[];
  /** In records with all marks every time of the past is right. */
  readonly isTimeFree: boolean;
  /** Carry something of the event in another form; records in which one has a value are parsed. */
  readonly carried: readonly string[];
  /** Has the uuid where `uuid` is not there. */
  readonly otherUuid?: string;
  /** Has the chain of the elements that were clicked; left out besides. */
  readonly chain: string;
}

/** What a member is to the event: as in `src/scan/assembly/records.ts`. */
const meanings = { event: 1, distinct_id: 2, uuid: 3, timestamp: 4, properties: 5 };
const [chain, otherUuid, carried, leftOut, leftOutWithMarks] = [6, 7, 8, 16, 32];
const [markShift, omittedShift] = [6, 10];
/** Omitted members that can be reported. */
const omittedMax = 63;

/** Places in the program's memory, in numbers of four bytes. */
const readEndAt = 96 / 4;
const outEndAt = 100 / 4;
const lineNumbers = 6;

/** Lines that are read at once. */
const linesMax = 4_096;
/** Longer blocks, which hold a line that is nearly as long, are none of ours: their room would stay. */
const blockBytesMax = 4 * 1024 * 1024;
/** Copies are kept in pieces of this size, unless a block has more. */
const pieceBytes = 1024 * 1024;
/** Of memory that waits for new copies: as much as those of a batch take. */
const spareBytesMax = 6 * pieceBytes;
/** Lists of names that are remembered. */
const omittedListsMax = 10_000;
const noNames: readonly string[] = [];
/** An event is at most as long as its record and so much more. */
const roomFor = (bytes: number) => bytes + bytes / 8 + 1_024;

export class RecordCopier {
  private readonly instance = new ProgramInstance<Program>((instance) => ({
    timeOf: (at, length) => parseInstant(instance.buffer.toString("utf8", at, at + length)) ?? Number.NaN,
    makeUuid: () => undefined,
  }));

  private readonly memory = new ReusedBuffers(spareBytesMax);
  /** With copies that are still needed, in order. */
  private readonly pieces: Buffer[] = [];
  private pieceEnd = 0;
  /** Names of omitted members, by the number of their bit. */
  private readonly omitted: string[] = [];
  /** Lists of names, by their bits: most records have the same ones. */
  private readonly omittedLists = new Map<bigint, readonly string[]>();

  /** @param times of usual records, epoch microseconds. */
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
    program.beginMembers(members.isTimeFree);
    for (const [name, meaning] of all) {
      const length = buffer.write(name, textAt);
      if (!program.knowMember(textAt, length, meaning)) throw new Error("There are too many members.");
    }
  }

  /** Whether a block of lines can be read. */
  canRead(block: Buffer): boolean {
    return block.length <= blockBytesMax && isUtf8(block);
  }

  /**
   * Reads a block of lines: records that are usual are copied, all others parsed. Read it to its end before the next one.
   *
   * @param line number of its first line.
   * @returns the number of the line behind it.
   */
  *read(block: Buffer, line: number): Generator<ReadRecord[], number> {
    const { instance, times } = this;
    const tableBytes = linesMax * lineNumbers * 4;
    const roomBytes = roomFor(block.length);
    const table = instance.put(block, tableBytes + roomBytes);
    const room = table + tableBytes;
    const end = textAt + block.length;
    for (let at = textAt; at < end; ) {
      const { program, numbers, buffer } = instance;
      const lines = program.copyRecords(at, end, table, linesMax, room, room + roomBytes, ...times);
      const copies = this.pieceFor(numbers[outEndAt]! - room);
      const shift = this.pieceEnd - room;
      this.pieceEnd += buffer.copy(copies, this.pieceEnd, room, numbers[outEndAt]!);
      at = numbers[readEndAt]!;
      const records: ReadRecord[] = [];
      const tableEnd = table / 4 + lines * lineNumbers;
      for (let place = table / 4; place < tableEnd; place += lineNumbers, line++) {
        const [from, to] = [numbers[place]! - textAt, numbers[place + 1]! - textAt];
        const start = numbers[place + 2]!;
        if (start === 0) {
          const text = block.toString("utf8", from, to);
          if (text.trim() !== "") records.push(parsedLine(text, line));
          continue;
        }
        const end = numbers[place + 3]! + shift;
        const notTaken = this.omittedNames(numbers[place + 4]!, numbers[place + 5]!);
        records.push({
          line,
          copied: new CopiedEvent(copies, start + shift, end, block, from, to, notTaken),
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

  /** Takes the memory of all events before this one back: nobody looks at them any more. */
  release({ texts }: CopiedEvent): void {
    while (this.pieces[0] !== texts) this.memory.giveBack(this.pieces.shift()!);
  }

  /** Where there is room for so many bytes more. */
  private pieceFor(bytes: number): Buffer {
    const last = this.pieces.at(-1);
    if (last !== undefined && last.length - this.pieceEnd >= bytes) return last;
    const piece = this.memory.take(Math.max(bytes, pieceBytes));
    this.pieces.push(piece);
    this.pieceEnd = 0;
    return piece;
  }
}

/** Copiers by the formats of records: a new one costs more than a small file, of which an archive may hold very many. */
export class RecordCopiers {
  private readonly made = new Map<string, RecordCopier>();

  of(format: string, ...made: ConstructorParameters<typeof RecordCopier>): RecordCopier {
    const copier = this.made.get(format) ?? new RecordCopier(...made);
    this.made.set(format, copier);
    return copier;
  }
}
