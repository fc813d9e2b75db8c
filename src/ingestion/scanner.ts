/**
 * Fast path from the bytes of a typical request to its journal lines: a WebAssembly program (`src/scan/`) reads them
 * once and copies what is stored, so that no string or value of an event is created.
 *
 * It rejects atypical requests, which take the slow path; both paths give the same result for all that both accept.
 */

import { isUtf8 } from "node:buffer";
import { eventFrame } from "../journal/entry.ts";
import { isDateOfDigits, parseInstant } from "../lib/timestamp.ts";
import { aligned, inputAddress, tailBytes, WasmInstance } from "../scan/instance.ts";
import { clockSkew } from "./event-time.ts";

interface Program {
  read(text: number, length: number, table: number, itemsMax: number): number;
  write(
    table: number,
    from: number,
    count: number,
    output: number,
    capacityEnd: number,
    ends: number,
    received: number,
    skew: number,
    isHistorical: boolean,
    isAnonymous: boolean,
  ): number;
}

/** Addresses in the program's memory, as in `src/scan/assembly/`, in units of four bytes. */
const bodyAt = 64 / 4;
const outEndAt = 96 / 4;
const partsAt = 128 / 4;
const partStringsAt = 20 * 1024;
const itemBytes = 256;

/** Many events smaller than this take the slow path: they have no name, or no distinct ID. */
const typicalItemBytes = 24;
const fewItems = 8;
/** Output buffer: lines are copied out of the program's memory in chunks of at most this size. */
const capacityBytes = 1024 * 1024;

/** The parts of each request come first: see `begin`. */
const variableParts = 4;
const { beforeName, beforeId, beforeTime, generated, sent, noChain, beforeProperties } = eventFrame;
const constantParts = [
  beforeName,
  beforeId,
  beforeTime,
  ...["full", "propertyless"].flatMap((mode) => [mode + generated, mode + sent]),
  noChain,
  beforeProperties,
];

/** Data that a request adds to the lines of all its events. */
export interface LineFacts {
  readonly beforeUuid: string;
  readonly beforeMode: string;
  /** Members of the properties, or empty. */
  readonly ip: string;
  readonly sentAt: string;
  readonly anonymizeIps: boolean;
  readonly receivedMicros: number;
  readonly sentAtMicros: number | undefined;
  readonly generateUuid: () => string;
}

/** A scanned request, and its addresses in the program's memory. */
export interface ScannedBody {
  readonly events: number;
  readonly isHistorical: boolean;
  /** The project's key; undefined without one. */
  readonly token: string | undefined;
  readonly sentAt: string | undefined;
  readonly table: number;
  readonly ends: number;
  readonly output: number;
}

export interface ScannedLines {
  /** Index of the first event without a line: the buffer is full, or the event is atypical. */
  readonly next: number;
  readonly lines: readonly Uint8Array[];
}

/** NaN for an invalid time, and for one that causes a warning. */
function unguessedTime(text: string): number {
  return isDateOfDigits(text) ? Number.NaN : (parseInstant(text) ?? Number.NaN);
}

export class Scanner {
  private readonly instance: WasmInstance<Program>;
  private generateUuid: () => string = () => "";
  private last: ScannedBody | undefined;
  private readonly variableTextsAt: number;
  private variableTexts = "";
  private lastToken = "";

  constructor() {
    this.instance = new WasmInstance<Program>((instance) => ({
      timeOf: (at, length) => unguessedTime(instance.buffer.toString("utf8", at, at + length)),
      generateUuid: (at) => void instance.buffer.write(this.generateUuid(), at, "latin1"),
    }));
    let end = partStringsAt;
    for (const [index, text] of constantParts.entries()) {
      this.instance.buffer.write(text, end, "latin1");
      end = this.recordAddress(variableParts + index, end, text.length);
    }
    this.variableTextsAt = end;
  }

  /**
   * Reads a request.
   *
   * @returns undefined when it is atypical. Valid until the next read.
   */
  read(sent: Uint8Array): ScannedBody | undefined {
    if (!isUtf8(sent)) return undefined;
    const { length } = sent;
    const itemsMax = Math.floor(length / typicalItemBytes) + fewItems;
    const tableBytes = aligned(itemsMax * (itemBytes + 4));
    const table = this.instance.put(sent, tableBytes + capacityBytes);
    const ends = table + itemsMax * itemBytes;
    const output = table + tableBytes;
    const events = this.instance.program.read(inputAddress, length, table, itemsMax);
    if (events === 0) return undefined;
    this.last = {
      events,
      isHistorical: this.instance.numbers[bodyAt + 5] !== 0,
      token: this.token(),
      sentAt: this.textAt(bodyAt + 3),
      table,
      ends,
      output,
    };
    return this.last;
  }

  /** Prepares writing lines. @throws the request is not the last one that was read. */
  start(body: ScannedBody, facts: LineFacts): void {
    if (body !== this.last) throw new Error("Another request was read meanwhile.");
    this.generateUuid = facts.generateUuid;
    const { beforeUuid, beforeMode, ip, sentAt } = facts;
    const texts = `${beforeUuid}${beforeMode}${ip}${sentAt}`;
    // Requests of the same millisecond and sender have the same parts.
    if (texts === this.variableTexts) return;
    this.variableTexts = texts;
    // Numbers, constant names and addresses: only ASCII.
    this.instance.buffer.write(texts, this.variableTextsAt, "latin1");
    let at = this.variableTextsAt;
    at = this.recordAddress(0, at, beforeUuid.length);
    at = this.recordAddress(1, at, beforeMode.length);
    at = this.recordAddress(2, at, ip.length);
    this.recordAddress(3, at, sentAt.length);
  }

  /** Writes the lines of the events from this index on. */
  write(
    { events, isHistorical, table, ends, output }: ScannedBody,
    from: number,
    { receivedMicros, sentAtMicros, anonymizeIps }: LineFacts,
  ): ScannedLines {
    const outputEnd = output + capacityBytes - tailBytes;
    const skew = clockSkew(sentAtMicros, receivedMicros);
    // Spreading the arguments would cost more than the call.
    const { program, numbers, buffer } = this.instance;
    const next = program.write(
      table,
      from,
      events,
      output,
      outputEnd,
      ends,
      receivedMicros,
      skew,
      isHistorical,
      anonymizeIps,
    );
    const outputUsed = numbers[outEndAt]! - output;
    // allocUnsafe: slice() zero-fills first.
    const bytes = Buffer.allocUnsafeSlow(outputUsed);
    buffer.copy(bytes, 0, output, output + outputUsed);
    const lines: Uint8Array[] = [];
    let start = 0;
    for (let position = ends / 4; lines.length < next - from; position++) {
      const end = numbers[position]! - output;
      lines.push(end - start === outputUsed ? bytes : bytes.subarray(start, end));
      start = end;
    }
    return { next, lines };
  }

  /** The text of an event as sent. */
  eventText({ table }: ScannedBody, event: number): string {
    return this.textAt((table + event * itemBytes) / 4)!;
  }

  /** The project's key; the string is reused while it stays the same. */
  private token(): string | undefined {
    const { lastToken } = this;
    const { bytes, numbers } = this.instance;
    const start = numbers[bodyAt + 1]!;
    let same = numbers[bodyAt + 2]! - start === lastToken.length ? 0 : -1;
    while (same !== -1 && same < lastToken.length)
      same = bytes[start + same] === lastToken.charCodeAt(same) ? same + 1 : -1;
    if (start === 0 || same !== -1) return start === 0 ? undefined : lastToken;
    this.lastToken = this.textAt(bodyAt + 1)!;
    return this.lastToken;
  }

  /** The text at an address that the program has recorded; undefined without one. */
  private textAt(index: number): string | undefined {
    const { numbers, buffer } = this.instance;
    const start = numbers[index]!;
    return start === 0 ? undefined : buffer.toString("utf8", start, numbers[index + 1]!);
  }

  /** Records the address of a part. @returns the address after it. */
  private recordAddress(index: number, at: number, length: number): number {
    this.instance.numbers[partsAt + 2 * index] = at;
    this.instance.numbers[partsAt + 2 * index + 1] = length;
    return at + length;
  }
}
