/**
 * The members of JSON objects, for those who look at a few of them and compare others with texts they know: of usual
 * objects no values are made.
 */

import { canonicalJson } from "../lib/canonical-json.ts";
import { numberText, parseExactJson } from "../lib/exact-json.ts";
import { sharedText } from "../lib/shared-texts.ts";
import { aligned, ProgramInstance, tailBytes, textAt } from "./instance.ts";

export type JsonKind = "string" | "number" | "boolean" | "null" | "object";

/** The members of an object, by place; every name once. */
export interface Members {
  /** Usually the very list that other objects with the same names have. */
  readonly names: readonly string[];
  kind(place: number): JsonKind;
  /** As `canonicalJson`. */
  text(place: number): string;
  /** Whether the text is this one. */
  isText(place: number, text: string): boolean;
  /** Members of the same number have the same name and text, for as long as `numbers` is the same; 0 says nothing. */
  number(place: number): number;
  /** Undefined where all are 0. */
  readonly numbers: ValueNumbers | undefined;
  /** A value of JSON, made anew, as `parseExactJson` does. */
  value(place: number): unknown;
  /** The value that has a name; undefined when there is none. */
  valueOf(name: string): unknown;
  /** The same members, for as long as somebody holds them. */
  kept(): Members;
}

/** Values that have numbers, from 1 to `valueNumbersMax`; they are begun anew when there are too many. */
export interface ValueNumbers {
  /** As `canonicalJson`, of those that were asked for. */
  readonly texts: string[];
}

/** Of an object that was parsed. */
export class ParsedMembers implements Members {
  readonly names: readonly string[];
  readonly numbers = undefined;

  constructor(private readonly object: Readonly<Record<string, unknown>>) {
    this.names = Object.keys(object);
  }

  kind(place: number): JsonKind {
    const value = this.value(place);
    if (value === null) return "null";
    return numberText(value) === undefined ? (typeof value as JsonKind) : "number";
  }

  text(place: number): string {
    return canonicalJson(this.value(place));
  }

  isText(place: number, text: string): boolean {
    return this.text(place) === text;
  }

  number(): number {
    return 0;
  }

  value(place: number): unknown {
    return this.object[this.names[place]!];
  }

  valueOf(name: string): unknown {
    return Object.hasOwn(this.object, name) ? this.object[name] : undefined;
  }

  kept(): Members {
    return this;
  }
}

interface Program {
  beginNames(at: number): void;
  nameBytes(): number;
  knownNames(): number;
  namesEnd(): number;
  shapeHash(): number;
  beginValues(at: number): void;
  valueBytes(): number;
  knownValues(): number;
  members(at: number, end: number, table: number, tableEnd: number): number;
}

/** As in `assembly/members.ts`. */
const memberBytes = 16;
const words = memberBytes / 4;
const [nameWord, startWord, endWord, valueWord] = [0, 1, 2, 3];
/** Texts that are read together have so many members at most; of the others, those that do not fit are parsed. */
const membersMax = 128 * 1024;
/** The same for their bytes. */
export const scannedBytesMax = 4 * 1024 * 1024;
/** Longer texts are made to be compared: that takes less time than going through the bytes. */
const comparedBytesMax = 64;
const nonAscii = 0x80;
/** So many known names or shapes, and they are forgotten before the next texts: clients may invent some. */
const namesKept = 6_000;
const shapesKept = 2_000;
/** The same for values that have numbers. */
const valuesKept = 15_000;
/** As in `assembly/values.ts`. */
export const valueNumbersMax = 20_000;

/** The names of an object in their order: most objects have the same as many others. */
interface Shape {
  readonly numbers: readonly number[];
  readonly names: readonly string[];
  readonly places: ReadonlyMap<string, number>;
}

/** Finds the members of some objects at a time; those of the last time are not there any more then. */
export class MemberScanner {
  readonly instance = new ProgramInstance<Program>();
  /** Counts the times. */
  turn = 0;
  values!: ValueNumbers;
  private names: string[] = [];
  private readonly shapes = new Map<number, Shape>();
  private readonly namesAt: number;
  private readonly valuesAt: number;
  private readonly table: number;
  private readonly tableEnd: number;
  private namesEnd = 0;

  constructor() {
    const { program } = this.instance;
    this.namesAt = aligned(textAt);
    this.valuesAt = aligned(this.namesAt + program.nameBytes());
    this.table = aligned(this.valuesAt + program.valueBytes());
    this.tableEnd = this.table + membersMax * memberBytes;
    this.instance.reserve(this.tableEnd);
    this.forgetNames();
  }

  /**
   * The members of objects, as long as nobody asks for the next ones; undefined for what is no JSON object.
   *
   * @param texts UTF-8, `scannedBytesMax` bytes together; beyond, they are parsed.
   */
  read(texts: readonly Uint8Array[]): (Members | undefined)[] {
    this.turn += 1;
    if (this.names.length > namesKept || this.shapes.size > shapesKept) this.forgetNames();
    else if (this.instance.program.knownValues() > valuesKept) this.forgetValues();
    const bytes = texts.reduce((sum, { length }) => sum + length, 0);
    if (bytes > scannedBytesMax) return texts.map(parsedMembers);
    const { instance } = this;
    instance.reserve(this.tableEnd + bytes + tailBytes);
    let end = this.tableEnd;
    for (const text of texts) {
      instance.bytes.set(text, end);
      end += text.length;
    }
    instance.bytes.fill(0, end, end + tailBytes);
    let at = this.tableEnd;
    let table = this.table;
    return texts.map((text) => {
      const start = at;
      at += text.length;
      const count = instance.program.members(start, at, table, this.tableEnd);
      if (count < 0) return parsedMembers(text);
      const found = new ScannedMembers(this, table / 4, this.shapeAt(table / 4, count));
      table += count * memberBytes;
      return found;
    });
  }

  private forgetNames(): void {
    const { program } = this.instance;
    program.beginNames(this.namesAt);
    this.names = [];
    this.shapes.clear();
    this.namesEnd = program.namesEnd();
    this.forgetValues();
  }

  private forgetValues(): void {
    this.instance.program.beginValues(this.valuesAt);
    this.values = { texts: [] };
  }

  /** Of the object that was read last. */
  private shapeAt(table: number, count: number): Shape {
    const { numbers, program } = this.instance;
    const hash = program.shapeHash();
    const known = this.shapes.get(hash);
    if (known?.numbers.length === count) {
      let place = 0;
      while (place < count && numbers[table + place * words] === known.numbers[place]) place += 1;
      if (place === count) return known;
    }
    if (program.knownNames() !== this.names.length) this.readNames();
    const own = Array.from({ length: count }, (_, place) => numbers[table + place * words + nameWord]!);
    const names = own.map((number) => this.names[number]!);
    const shape = { numbers: own, names, places: new Map(names.map((name, place) => [name, place])) };
    this.shapes.set(hash, shape);
    return shape;
  }

  /** Reads names that are new. */
  private readNames(): void {
    const { program, buffer } = this.instance;
    const end = program.namesEnd();
    // A line break stands behind the last one, too.
    for (const name of buffer.toString("utf8", this.namesEnd, end - 1).split("\n")) this.names.push(name);
    this.namesEnd = end;
  }
}

class ScannedMembers implements Members {
  readonly numbers: ValueNumbers;
  private readonly turn: number;

  constructor(
    private readonly scanner: MemberScanner,
    private readonly table: number,
    private readonly shape: Shape,
  ) {
    this.turn = scanner.turn;
    this.numbers = scanner.values;
  }

  get names(): readonly string[] {
    return this.shape.names;
  }

  kind(place: number): JsonKind {
    const { numbers, bytes } = this.instance();
    return kinds[bytes[numbers[this.table + place * words + startWord]!]!]!;
  }

  text(place: number): string {
    const number = this.number(place);
    if (number === 0) return this.ownText(place);
    const { texts } = this.numbers;
    let text = texts[number];
    if (text === undefined) {
      text = sharedText(this.ownText(place));
      texts[number] = text;
    }
    return text;
  }

  isText(place: number, text: string): boolean {
    if (this.number(place) !== 0) return this.text(place) === text;
    if (!this.isCanonical(place)) return this.ownText(place) === text;
    const { numbers, bytes } = this.instance();
    const member = this.table + place * words;
    const start = numbers[member + startWord]!;
    const length = numbers[member + endWord]! - start;
    // With other characters than ASCII there are more bytes than characters.
    if (length < text.length) return false;
    if (length > text.length || length > comparedBytesMax) return this.written(place) === text;
    for (let index = 0; index < length; index++) {
      const byte = bytes[start + index]!;
      if (byte !== text.charCodeAt(index) || byte >= nonAscii) return false;
    }
    return true;
  }

  number(place: number): number {
    return this.instance().numbers[this.table + place * words + valueWord]! >>> 1;
  }

  value(place: number): unknown {
    return parseExactJson(this.written(place));
  }

  valueOf(name: string): unknown {
    const place = this.shape.places.get(name);
    return place === undefined ? undefined : this.value(place);
  }

  kept(): Members {
    const object: Record<string, unknown> = {};
    for (const [place, name] of this.names.entries())
      Object.defineProperty(object, name, { value: this.value(place), enumerable: true });
    return new ParsedMembers(object);
  }

  private ownText(place: number): string {
    const written = this.written(place);
    return this.isCanonical(place) ? written : canonicalJson(parseExactJson(written));
  }

  private isCanonical(place: number): boolean {
    return (this.instance().numbers[this.table + place * words + valueWord]! & 1) === 1;
  }

  private written(place: number): string {
    const { numbers, buffer } = this.instance();
    const member = this.table + place * words;
    return buffer.toString("utf8", numbers[member + startWord], numbers[member + endWord]);
  }

  private instance(): ProgramInstance<Program> {
    if (this.turn !== this.scanner.turn) throw new Error("Other objects were read meanwhile.");
    return this.scanner.instance;
  }
}

/** By the first byte of a value. */
const kinds: readonly JsonKind[] = Array.from({ length: 256 }, (_, first) => {
  switch (String.fromCharCode(first)) {
    case '"':
      return "string";
    case "{":
    case "[":
      return "object";
    case "t":
    case "f":
      return "boolean";
    case "n":
      return "null";
    default:
      return "number";
  }
});

function parsedMembers(text: Uint8Array): Members | undefined {
  try {
    const value: unknown = parseExactJson(
      Buffer.from(text.buffer, text.byteOffset, text.length).toString("utf8"),
    );
    return typeof value === "object" && value !== null
      ? new ParsedMembers(value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
