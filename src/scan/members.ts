/**
 * Members of JSON objects, for code that reads few of them and compares the others with known strings. Typical objects
 * are never parsed into values.
 */

import { intern } from "../lib/bounded-cache.ts";
import { canonicalJson } from "../lib/json/canonical.ts";
import { formatNumber, parseExactJson } from "../lib/json/exact.ts";
import { aligned, inputAddress, tailBytes, WasmInstance } from "./instance.ts";

export type JsonKind = "string" | "number" | "boolean" | "null" | "object";

/** Members of an object by position, without duplicate names. */
export interface Members {
  /** Usually an array shared by all objects with the same names. */
  readonly names: readonly string[];
  kind(index: number): JsonKind;
  /** JSON source as `canonicalJson` writes it. */
  text(index: number): string;
  /** Whether `text(place)` equals `text`. */
  isText(index: number, text: string): boolean;
  /** While `numbers` is the same object, equal numbers mean equal name and text; 0 is unknown. */
  number(index: number): number;
  /** Undefined if all numbers are 0. */
  readonly numbers: ValueNumbers | undefined;
  /** Parses the value as `parseExactJson` does. */
  value(index: number): unknown;
  /** The value by name; undefined if absent. */
  valueOf(name: string): unknown;
  /** A copy of these members that stays valid across reads. */
  retained(): Members;
}

/** Numbered values, 1 to `valueNumbersMax`; the numbering restarts when there are too many. */
export interface ValueNumbers {
  /** `canonicalJson` of values whose text was read. */
  readonly texts: string[];
}

/** Members of a parsed object. */
export class ParsedMembers implements Members {
  readonly names: readonly string[];
  readonly numbers = undefined;

  constructor(private readonly object: Readonly<Record<string, unknown>>) {
    this.names = Object.keys(object);
  }

  kind(index: number): JsonKind {
    const value = this.value(index);
    if (value === null) return "null";
    return formatNumber(value) === undefined ? (typeof value as JsonKind) : "number";
  }

  text(index: number): string {
    return canonicalJson(this.value(index));
  }

  isText(index: number, text: string): boolean {
    return this.text(index) === text;
  }

  number(): number {
    return 0;
  }

  value(index: number): unknown {
    return this.object[this.names[index]!];
  }

  valueOf(name: string): unknown {
    return Object.hasOwn(this.object, name) ? this.object[name] : undefined;
  }

  retained(): Members {
    return this;
  }
}

interface Program {
  startNames(at: number): void;
  nameBytes(): number;
  knownNames(): number;
  namesEnd(): number;
  shapeHash(): number;
  startValues(at: number): void;
  valueBytes(): number;
  knownValues(): number;
  members(at: number, end: number, table: number, tableEnd: number): number;
}

/** Same as in `assembly/members.ts`. */
const memberBytes = 16;
const words = memberBytes / 4;
const nameWord = 0;
const startWord = 1;
const endWord = 2;
const valueWord = 3;
/** Maximum members per batch; objects that do not fit are parsed. */
const membersMax = 128 * 1024;
/** Maximum bytes per batch. */
export const scannedBytesMax = 4 * 1024 * 1024;
/** Longer strings are decoded before comparing, which is faster than comparing bytes. */
const comparedBytesMax = 64;
const nonAscii = 0x80;
/** Above these counts, known names and shapes are reset before the next batch: clients may invent names. */
const retainedNames = 6_000;
const cachedShapes = 2_000;
/** Same for numbered values. */
const cachedValues = 15_000;
/** Same as in `assembly/values.ts`. */
export const valueNumbersMax = 20_000;

/** Ordered names of an object, shared by most objects of a kind. */
interface Shape {
  readonly numbers: readonly number[];
  readonly names: readonly string[];
  readonly indexes: ReadonlyMap<string, number>;
}

/** Finds the members of a batch of objects; the next batch invalidates them. */
export class MemberScanner {
  readonly instance = new WasmInstance<Program>();
  /** Batch number. */
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
    this.namesAt = aligned(inputAddress);
    this.valuesAt = aligned(this.namesAt + program.nameBytes());
    this.table = aligned(this.valuesAt + program.valueBytes());
    this.tableEnd = this.table + membersMax * memberBytes;
    this.instance.reserve(this.tableEnd);
    this.forgetNames();
  }

  /**
   * Members of each object, valid until the next call; undefined for anything but a JSON object.
   * @param texts UTF-8; if larger than `scannedBytesMax` in total, they are parsed
   */
  read(texts: readonly Uint8Array[]): (Members | undefined)[] {
    this.turn += 1;
    if (this.names.length > retainedNames || this.shapes.size > cachedShapes) this.forgetNames();
    else if (this.instance.program.knownValues() > cachedValues) this.forgetValues();
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
    program.startNames(this.namesAt);
    this.names = [];
    this.shapes.clear();
    this.namesEnd = program.namesEnd();
    this.forgetValues();
  }

  private forgetValues(): void {
    this.instance.program.startValues(this.valuesAt);
    this.values = { texts: [] };
  }

  /** Shape of the object scanned last. */
  private shapeAt(table: number, count: number): Shape {
    const { numbers, program } = this.instance;
    const hash = program.shapeHash();
    const known = this.shapes.get(hash);
    if (known?.numbers.length === count) {
      let index = 0;
      while (index < count && numbers[table + index * words] === known.numbers[index]) index += 1;
      if (index === count) return known;
    }
    if (program.knownNames() !== this.names.length) this.readNames();
    const own = Array.from({ length: count }, (_, index) => numbers[table + index * words + nameWord]!);
    const names = own.map((number) => this.names[number]!);
    const shape = { numbers: own, names, indexes: new Map(names.map((name, index) => [name, index])) };
    this.shapes.set(hash, shape);
    return shape;
  }

  private readNames(): void {
    const { program, buffer } = this.instance;
    const end = program.namesEnd();
    // Each name ends with a line break; drop the last one.
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

  kind(index: number): JsonKind {
    const { numbers, bytes } = this.instance();
    return kinds[bytes[numbers[this.table + index * words + startWord]!]!]!;
  }

  text(index: number): string {
    const number = this.number(index);
    if (number === 0) return this.copyText(index);
    const { texts } = this.numbers;
    let text = texts[number];
    if (text === undefined) {
      text = intern(this.copyText(index));
      texts[number] = text;
    }
    return text;
  }

  isText(memberIndex: number, text: string): boolean {
    if (this.number(memberIndex) !== 0) return this.text(memberIndex) === text;
    if (!this.isCanonical(memberIndex)) return this.copyText(memberIndex) === text;
    const { numbers, bytes } = this.instance();
    const member = this.table + memberIndex * words;
    const start = numbers[member + startWord]!;
    const length = numbers[member + endWord]! - start;
    // Non-ASCII text has more bytes than characters, never fewer.
    if (length < text.length) return false;
    if (length > text.length || length > comparedBytesMax) return this.written(memberIndex) === text;
    for (let index = 0; index < length; index++) {
      const byte = bytes[start + index]!;
      if (byte !== text.charCodeAt(index) || byte >= nonAscii) return false;
    }
    return true;
  }

  number(index: number): number {
    return this.instance().numbers[this.table + index * words + valueWord]! >>> 1;
  }

  value(index: number): unknown {
    return parseExactJson(this.written(index));
  }

  valueOf(name: string): unknown {
    const index = this.shape.indexes.get(name);
    return index === undefined ? undefined : this.value(index);
  }

  retained(): Members {
    const object: Record<string, unknown> = {};
    for (const [index, name] of this.names.entries())
      Object.defineProperty(object, name, { value: this.value(index), enumerable: true });
    return new ParsedMembers(object);
  }

  private copyText(index: number): string {
    const written = this.written(index);
    return this.isCanonical(index) ? written : canonicalJson(parseExactJson(written));
  }

  private isCanonical(index: number): boolean {
    return (this.instance().numbers[this.table + index * words + valueWord]! & 1) === 1;
  }

  private written(index: number): string {
    const { numbers, buffer } = this.instance();
    const member = this.table + index * words;
    return buffer.toString("utf8", numbers[member + startWord], numbers[member + endWord]);
  }

  private instance(): WasmInstance<Program> {
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
