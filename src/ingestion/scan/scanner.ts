/**
 * The quick way from the bytes of a usual request to the lines of its events: a program (`src/scan/`) reads them once and
 * copies what is stored, so that no text and no value of an event is ever made.
 *
 * What is not usual it refuses, and the request goes the slow road, which answers the same for all that both can take.
 */

import { isUtf8 } from "node:buffer";
import { eventFrame } from "../../journal/entry.ts";
import { isDateOfDigits, parseInstant } from "../../lib/timestamp.ts";
import { aligned, ProgramInstance, tailBytes, textAt } from "../../scan/instance.ts";
import { clockSkew } from "../event-time.ts";

interface Program {
  read(text: number, length: number, table: number, itemsMax: number): number;
  write(
    table: number,
    from: number,
    count: number,
    room: number,
    roomEnd: number,
    ends: number,
    received: number,
    skew: number,
    isHistorical: boolean,
    isAnonymous: boolean,
  ): number;
}

/** Places in the program's memory: as in `src/scan/assembly/`. Numbers of four bytes are counted in these. */
const bodyAt = 64 / 4;
const outEndAt = 96 / 4;
const piecesAt = 128 / 4;
const pieceTextsAt = 20 * 1024;
const itemBytes = 256;

/** Smaller events than of this size, if there are many, go the slow road: they have no name, or no distinct ID. */
const usualItemBytes = 24;
const fewItems = 8;
/** Lines are taken out of the program's memory in pieces of this size at the most. */
const roomBytes = 1024 * 1024;

/** Those of each request come first: see `begin`. */
const variablePieces = 4;
const { beforeName, beforeId, beforeTime, made, sent, noChain, beforeProperties } = eventFrame;
const constantPieces = [
  ...[beforeName, beforeId, beforeTime],
  ...["full", "propertyless"].flatMap((mode) => [mode + made, mode + sent]),
  ...[noChain, beforeProperties],
];

/** What a request adds to the lines of all its events. */
export interface LineFacts {
  readonly beforeUuid: string;
  readonly beforeMode: string;
  /** Members of the properties, or empty. */
  readonly ip: string;
  readonly sentAt: string;
  readonly anonymizeIps: boolean;
  readonly receivedMicros: number;
  readonly sentAtMicros: number | undefined;
  readonly makeUuid: () => string;
}

/** A request that was read, and where in the program's memory. */
export interface ScannedBody {
  readonly events: number;
  readonly isHistorical: boolean;
  /** The project's key; undefined when there is none. */
  readonly token: string | undefined;
  readonly sentAt: string | undefined;
  readonly table: number;
  readonly ends: number;
  readonly room: number;
}

/** Some lines. */
export interface ScannedLines {
  /** Number of the first event that has none: there was no room for more, or it is not usual. */
  readonly next: number;
  readonly lines: readonly Uint8Array[];
}

/** NaN for what is no time, and for one that is to be warned of. */
function unguessedTime(text: string): number {
  return isDateOfDigits(text) ? Number.NaN : (parseInstant(text) ?? Number.NaN);
}

export class Scanner {
  private readonly instance: ProgramInstance<Program>;
  private makeUuid: () => string = () => "";
  private last: ScannedBody | undefined;
  private readonly variableTextsAt: number;
  private variableTexts = "";
  private lastToken = "";

  constructor() {
    this.instance = new ProgramInstance<Program>((instance) => ({
      timeOf: (at, length) => unguessedTime(instance.buffer.toString("utf8", at, at + length)),
      makeUuid: (at) => void instance.buffer.write(this.makeUuid(), at, "latin1"),
    }));
    let end = pieceTextsAt;
    for (const [index, text] of constantPieces.entries()) {
      this.instance.buffer.write(text, end, "latin1");
      end = this.place(variablePieces + index, end, text.length);
    }
    this.variableTextsAt = end;
  }

  /**
   * Reads a request.
   *
   * @returns undefined when it is not usual. It can be used until the next one is read.
   */
  read(sent: Uint8Array): ScannedBody | undefined {
    if (!isUtf8(sent)) return undefined;
    const { length } = sent;
    const itemsMax = Math.floor(length / usualItemBytes) + fewItems;
    const tableBytes = aligned(itemsMax * (itemBytes + 4));
    const table = this.instance.put(sent, tableBytes + roomBytes);
    const ends = table + itemsMax * itemBytes;
    const room = table + tableBytes;
    const events = this.instance.program.read(textAt, length, table, itemsMax);
    if (events === 0) return undefined;
    this.last = {
      events,
      isHistorical: this.instance.numbers[bodyAt + 5] !== 0,
      token: this.token(),
      sentAt: this.textAt(bodyAt + 3),
      ...{ table, ends, room },
    };
    return this.last;
  }

  /** Makes ready for writing lines. @throws the request is not the last one that was read. */
  begin(body: ScannedBody, facts: LineFacts): void {
    if (body !== this.last) throw new Error("Another request was read meanwhile.");
    this.makeUuid = facts.makeUuid;
    const { beforeUuid, beforeMode, ip, sentAt } = facts;
    const texts = `${beforeUuid}${beforeMode}${ip}${sentAt}`;
    // Requests of the same millisecond and sender have the same.
    if (texts === this.variableTexts) return;
    this.variableTexts = texts;
    // Numbers, names of ours and addresses: nothing but ASCII.
    this.instance.buffer.write(texts, this.variableTextsAt, "latin1");
    let at = this.variableTextsAt;
    at = this.place(0, at, beforeUuid.length);
    at = this.place(1, at, beforeMode.length);
    at = this.place(2, at, ip.length);
    this.place(3, at, sentAt.length);
  }

  /** Writes the lines of the events from one on. */
  write(
    { events, isHistorical, table, ends, room }: ScannedBody,
    from: number,
    { receivedMicros, sentAtMicros, anonymizeIps }: LineFacts,
  ): ScannedLines {
    const roomEnd = room + roomBytes - tailBytes;
    const skew = clockSkew(sentAtMicros, receivedMicros);
    // Spread, the arguments would cost more than the call.
    const { program, numbers, buffer } = this.instance;
    const next = program.write(
      table,
      from,
      events,
      room,
      roomEnd,
      ends,
      receivedMicros,
      skew,
      isHistorical,
      anonymizeIps,
    );
    const roomUsed = numbers[outEndAt]! - room;
    // A slice would be filled with zeros before.
    const bytes = Buffer.allocUnsafeSlow(roomUsed);
    buffer.copy(bytes, 0, room, room + roomUsed);
    const lines: Uint8Array[] = [];
    let start = 0;
    for (let place = ends / 4; lines.length < next - from; place++) {
      const end = numbers[place]! - room;
      lines.push(end - start === roomUsed ? bytes : bytes.subarray(start, end));
      start = end;
    }
    return { next, lines };
  }

  /** The text of an event, as it was sent. */
  eventText({ table }: ScannedBody, event: number): string {
    return this.textAt((table + event * itemBytes) / 4)!;
  }

  /** The project's key, made anew only when it is another one. */
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

  /** The text whose place the program has noted; undefined when there is none. */
  private textAt(place: number): string | undefined {
    const { numbers, buffer } = this.instance;
    const start = numbers[place]!;
    return start === 0 ? undefined : buffer.toString("utf8", start, numbers[place + 1]!);
  }

  /** Notes where a piece stands. @returns the place behind it. */
  private place(index: number, at: number, length: number): number {
    this.instance.numbers[piecesAt + 2 * index] = at;
    this.instance.numbers[piecesAt + 2 * index + 1] = length;
    return at + length;
  }
}
