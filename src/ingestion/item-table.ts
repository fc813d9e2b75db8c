/** Records the positions of a request's items in its text. */

import { type JsonCounts, memberSpan } from "../lib/json/spans.ts";

/** One event as sent: its parsed value, and its position in the text of the request. */
export interface RawItem {
  readonly value: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Position of the `properties` value; -1 without one. */
  readonly propertiesStart: number;
  readonly propertiesEnd: number;
  /** Members written inside `properties`, at every depth: more than in the parsed value when names are repeated. */
  readonly propertyMembers: number;
  readonly hasUnicodeEscape: boolean;
  readonly hasLineBreak: boolean;
}

const numbersPerItem = 7;
const fewItems = 8;
const unicodeEscapeBit = 1;
const lineBreakBit = 2;

/**
 * The items of a request: parsed values, and positions as plain numbers, because a body of 20 MiB can contain millions
 * of items.
 */
export class ItemTable {
  length = 0;
  /** For the reader of the items; here, so that it is created once per request. */
  readonly span = memberSpan();
  readonly tally: JsonCounts = { members: 0, deepest: 0 };
  private readonly slowPathItems: SlowPathItems;
  private numbers: Int32Array;

  constructor(
    readonly text: string,
    readonly values: readonly unknown[],
    /** The position of the first item in the whole body, of which this may be a part. */
    readonly firstPosition = 0,
  ) {
    this.slowPathItems = new SlowPathItems(text);
    this.numbers = new Int32Array(Math.min(values.length, fewItems) * numbersPerItem);
  }

  /** The item at an index below `length`. */
  at(index: number): RawItem {
    const { numbers } = this;
    const first = index * numbersPerItem;
    const flags = numbers[first + 6]!;
    return {
      value: this.values[index] as Record<string, unknown>,
      text: this.text,
      start: numbers[first]!,
      end: numbers[first + 1]!,
      propertiesStart: numbers[first + 2]!,
      propertiesEnd: numbers[first + 3]!,
      propertyMembers: numbers[first + 4]!,
      hasUnicodeEscape: (flags & unicodeEscapeBit) !== 0,
      hasLineBreak: (flags & lineBreakBit) !== 0,
    };
  }

  /** Deepest nesting inside the item at an index below `length`. */
  deepestOf(index: number): number {
    return this.numbers[index * numbersPerItem + 5]!;
  }

  /** @param deepest deepest nesting of objects and arrays, 1 for an item of plain values. */
  push(
    start: number,
    end: number,
    propertiesStart: number,
    propertiesEnd: number,
    propertyMembers: number,
    deepest: number,
  ): void {
    const first = this.length * numbersPerItem;
    if (first === this.numbers.length) {
      const larger = new Int32Array(Math.max(first, numbersPerItem) * 2);
      larger.set(this.numbers);
      this.numbers = larger;
    }
    const { numbers, slowPathItems } = this;
    numbers[first] = start;
    numbers[first + 1] = end;
    numbers[first + 2] = propertiesStart;
    numbers[first + 3] = propertiesEnd;
    numbers[first + 4] = propertyMembers;
    numbers[first + 5] = deepest;
    numbers[first + 6] =
      (slowPathItems.hasUnicodeEscape(start, end) ? unicodeEscapeBit : 0) |
      (slowPathItems.hasLineBreak(start, end) ? lineBreakBit : 0);
    this.length++;
  }

  clear(): void {
    this.length = 0;
  }
}

/** Finds items that cannot be copied verbatim. Called with rising positions, it reads the text only once. */
class SlowPathItems {
  private readonly escapes: Occurrences;
  private readonly lineFeeds: Occurrences;
  private readonly carriageReturns: Occurrences;
  /** Text that does not come from UTF-8 can contain lone surrogates. */
  private readonly isMalformed: boolean;

  constructor(text: string) {
    this.escapes = new Occurrences(text, "\\u");
    this.lineFeeds = new Occurrences(text, "\n");
    this.carriageReturns = new Occurrences(text, "\r");
    this.isMalformed = !text.isWellFormed();
  }

  hasUnicodeEscape(start: number, end: number): boolean {
    return this.isMalformed || this.escapes.isBetween(start, end);
  }

  hasLineBreak(start: number, end: number): boolean {
    return this.lineFeeds.isBetween(start, end) || this.carriageReturns.isBetween(start, end);
  }
}

class Occurrences {
  private next: number;

  constructor(
    private readonly text: string,
    private readonly searched: string,
  ) {
    // Searching one character is many times faster than two, and most texts do not contain it.
    this.next = text.includes(searched.charAt(0)) ? text.indexOf(searched) : -1;
  }

  isBetween(start: number, end: number): boolean {
    if (this.next !== -1 && this.next < start) this.next = this.text.indexOf(this.searched, start);
    return this.next !== -1 && this.next < end;
  }
}
