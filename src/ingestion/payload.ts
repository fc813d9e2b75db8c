/**
 * Takes the JSON text of a request apart into event items, each with the place of its raw text.
 *
 * What is not of the shape of a request is refused here, whole and with the position of the item: behind this file
 * every item is an object whose properties, if any, are an object of bounded depth.
 * Source: contract, ingestion 3; decision 5.
 */

import { InvalidItem, InvalidPayload, PayloadTooDense } from "../http/decode/failures.ts";
import { NestedTooDeep, parseJson, parserWords, TooManyContainers } from "../http/json.ts";
import { ItemTable, type RawItem } from "./item-table.ts";
import {
  endOfValue,
  hasName,
  memberSpan,
  nextMember,
  nextValueStart,
  skipSpace,
  type Tally,
} from "./json-spans.ts";

const openBracket = 91;
const closeBracket = 93;
const openBrace = 123;

/** Of an event. Bodies that could hold more are read in parts of many events, see `body-parts.ts`. */
const containersMax = 1_000_000;
/** Far beyond real events; whatever reads stored events recursively must not run out of stack. */
export const nestingMax = 500;
/** Around the events of a batch stand two more levels. */
const jsonLimits = { levels: nestingMax + 2, containers: containersMax };

/** A request, taken apart. */
export interface Payload {
  readonly items: ItemTable;
  /** `api_key` or `token` beside the batch; only a batch object has one. */
  readonly batchToken: unknown;
  /** What the body says about when it was sent. */
  readonly sentAt: unknown;
  readonly isHistorical: boolean;
}

/**
 * Parses the text of a request.
 *
 * @param canBeNameless whether an object with neither `event` nor `batch` counts as one event; its name is looked
 *                      for later.
 * @param firstPosition  the position of its first event, where it is a part of a body; errors name positions.
 * @throws {InvalidPayload} not JSON, nested too deep, of no accepted shape, or without any item.
 * @throws {PayloadTooDense} more objects and arrays than an event may have.
 */
export function parsePayload(text: string, canBeNameless: boolean, firstPosition = 0): Payload {
  const root = parseText(text, firstPosition);
  const start = skipSpace(text, 0);
  if (Array.isArray(root)) {
    const items = new ItemTable(text, root, firstPosition);
    readItems(items, start);
    checkItems(items);
    return { items, batchToken: undefined, sentAt: undefined, isHistorical: areHistorical(items) };
  }
  if (!isObject(root)) throw new InvalidPayload(`an event must be an object: the body is ${kindOf(root)}`);
  const isHistorical = historicalSwitch(root.historical_migration);
  if (Array.isArray(root.batch)) {
    const items = batchItems(text, start, root.batch, firstPosition);
    const areAllHistorical = areHistorical(items, isHistorical);
    return {
      items,
      batchToken: presentToken(root),
      sentAt: root.sent_at,
      isHistorical: isHistorical ?? areAllHistorical,
    };
  }
  if (root.event === undefined && root.batch !== undefined) {
    throw new InvalidPayload(`\`batch\` must be an array of events, not ${kindOf(root.batch)}`);
  }
  if (root.event === undefined && !canBeNameless) {
    throw new InvalidPayload("the body has neither a `batch` of events nor an `event`");
  }
  const items = new ItemTable(text, [root]);
  readItem(items, start);
  checkItems(items);
  return { items, batchToken: undefined, sentAt: root.sent_at, isHistorical: isHistorical ?? false };
}

/** An event by itself, whose text is known to be fit for one. */
export function parseEvent(text: string): RawItem {
  const items = new ItemTable(text, [JSON.parse(text)]);
  readItem(items, 0);
  return items.at(0);
}

/** The key in an object: `token` and `api_key` have equal standing, an empty one gives way to the other. */
export function presentToken(object: Readonly<Record<string, unknown>>): unknown {
  return object.token || object.api_key || (object.token ?? object.api_key ?? undefined);
}

function parseText(text: string, firstPosition: number): unknown {
  try {
    return parseJson(text, jsonLimits);
  } catch (error) {
    if (error instanceof TooManyContainers) throw new PayloadTooDense(error.limit);
    if (error instanceof NestedTooDeep) {
      const isList = /^\s*\[/.test(text) || text.includes('"batch"');
      throw nestedTooDeep(isList ? firstPosition + error.position : 0);
    }
    throw new InvalidPayload(`the body is not JSON: ${parserWords(error)}`);
  }
}

function nestedTooDeep(position: number): InvalidItem {
  return new InvalidItem(
    `an event may be nested ${nestingMax} levels deep: the item at position ${position} is nested deeper`,
    "nested_too_deep",
  );
}

/** A wrong type is refused: data that was meant to be history must not be taken, and metered, as live. */
function historicalSwitch(value: unknown, where = ""): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === undefined || value === null) return undefined;
  throw new InvalidPayload(`\`historical_migration\` must be true or false${where}, not ${kindOf(value)}`);
}

/**
 * Whether the events of a list say that they are history: a request goes through one lane, so they have to agree.
 *
 * @param decided what is said beside the list, which settles it.
 * @throws {InvalidPayload} they do not agree, or one says something else than true or false.
 */
function areHistorical({ values, firstPosition }: ItemTable, decided?: boolean): boolean {
  let first: boolean | undefined;
  for (const [index, value] of values.entries()) {
    const { historical_migration } = value as Record<string, unknown>;
    const position = firstPosition + index;
    const said = historicalSwitch(historical_migration, ` in the item at position ${position}`) ?? false;
    first ??= said;
    if (decided === undefined && said !== first) throw mixedHistory(position, said);
  }
  return first ?? false;
}

/** Events of one request of which some are history and some are not. */
export function mixedHistory(position: number, said: boolean): InvalidPayload {
  return new InvalidPayload(
    `\`historical_migration\` must be the same for all events of a request: in the item at position ${position} it is ${said}`,
  );
}

function batchItems(
  text: string,
  start: number,
  batch: readonly unknown[],
  firstPosition: number,
): ItemTable {
  const span = memberSpan();
  const tally: Tally = { members: 0, deepest: 0 };
  const items = new ItemTable(text, batch, firstPosition);
  let at = start + 1;
  while (nextMember(text, at, span)) {
    // Of a repeated name the last one counts, as in JSON.parse: it replaces what was read before.
    if (hasName(text, span, "batch") && text.charCodeAt(span.valueStart) === openBracket) {
      items.clear();
      at = readItems(items, span.valueStart);
    } else {
      at = endOfValue(text, span.valueStart, tally);
    }
  }
  checkItems(items);
  return items;
}

/** @throws {InvalidItem} with the position of the first item that can be no event. */
function checkItems(items: ItemTable): void {
  for (let index = 0; index < items.length; index++) {
    const { properties } = items.values[index] as Record<string, unknown>;
    if (properties !== undefined && properties !== null && !isObject(properties)) {
      throw new InvalidItem(
        `\`properties\` must be an object: in the item at position ${items.firstPosition + index} it is ${kindOf(properties)}`,
        "invalid_properties",
      );
    }
    if (items.deepestOf(index) > nestingMax) throw nestedTooDeep(items.firstPosition + index);
  }
}

/**
 * Finds the place of each item of the array at `start`.
 *
 * @returns the end of the array.
 */
function readItems(items: ItemTable, start: number): number {
  const { text, values } = items;
  if (values.length === 0) throw new InvalidPayload("request holds no event: send at least one");
  let at = nextValueStart(text, start + 1);
  while (text.charCodeAt(at) !== closeBracket) {
    const value = values[items.length];
    if (isObject(value) && text.charCodeAt(at) === openBrace) {
      at = readItem(items, at);
    } else if (isObject(value) || items.length >= values.length) {
      // An array whose name is repeated later; the values belong to the later one.
      at = endOfValue(text, at, { members: 0, deepest: 0 });
    } else {
      throw new InvalidItem(
        `an event must be an object: the item at position ${items.firstPosition + items.length} is ${kindOf(value)}`,
        "not_an_object",
      );
    }
    at = nextValueStart(text, at);
  }
  return at + 1;
}

/**
 * Finds the place of the item at `start` and of its properties.
 *
 * @returns the end of the item.
 */
function readItem(items: ItemTable, start: number): number {
  const { text, span, tally } = items;
  let propertiesStart = -1;
  let propertiesEnd = -1;
  let propertyMembers = 0;
  tally.deepest = 0;
  let at = start + 1;
  while (nextMember(text, at, span)) {
    tally.members = 0;
    at = endOfValue(text, span.valueStart, tally);
    if (hasName(text, span, "properties")) {
      propertiesStart = span.valueStart;
      propertiesEnd = at;
      propertyMembers = tally.members;
    }
  }
  items.push(start, span.objectEnd, propertiesStart, propertiesEnd, propertyMembers, tally.deepest + 1);
  return span.objectEnd;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON value's kind, for a sentence. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return (
    { object: "an object", string: "a string", number: "a number" }[typeof value as string] ?? "a boolean"
  );
}
