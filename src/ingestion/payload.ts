/**
 * Parses the JSON of a request into event items, each with its position in the text.
 *
 * An invalid request is rejected here as a whole, with the position of the item: every item that passes is an object
 * whose properties, if any, are an object of bounded depth. Source: contract, ingestion 3; decision 5.
 */

import { InvalidItemError, InvalidPayloadError, PayloadTooComplexError } from "../http/decode/errors.ts";
import { JsonTooComplexError, NestingTooDeepError, parseJson, parserMessage } from "../lib/json/limits.ts";
import {
  endOfValue,
  hasName,
  type JsonCounts,
  memberSpan,
  nextMember,
  nextValueStart,
  skipSpace,
} from "../lib/json/spans.ts";
import { ItemTable, type RawItem } from "./item-table.ts";

const openBracket = 91;
const closeBracket = 93;
const openBrace = 123;

/** Per event. Bodies that could contain more are read in parts of many events, see `body-parts.ts`. */
const containersMax = 1_000_000;
/** Far beyond real events; code that reads stored events recursively must not overflow its stack. */
export const nestingMax = 500;
/** A batch has two more levels around its events. */
const jsonLimits = { levels: nestingMax + 2, containers: containersMax };

/** A parsed request. */
export interface Payload {
  readonly items: ItemTable;
  /** `api_key` or `token` next to the batch; only a batch object has one. */
  readonly batchToken: unknown;
  /** The send time in the body. */
  readonly sentAt: unknown;
  readonly isHistorical: boolean;
}

/**
 * Parses the text of a request.
 *
 * @param canBeNameless whether an object with neither `event` nor `batch` counts as one event; its name is determined
 *                      later.
 * @param firstPosition the position of its first event, if it is a part of a body; errors name positions.
 * @throws {InvalidPayloadError} not JSON, nested too deep, not an accepted shape, or without any item.
 * @throws {PayloadTooComplexError} more objects and arrays than an event may have.
 */
export function parsePayload(text: string, canBeNameless: boolean, firstPosition = 0): Payload {
  const root = parseString(text, firstPosition);
  const start = skipSpace(text, 0);
  if (Array.isArray(root)) {
    const items = new ItemTable(text, root, firstPosition);
    readItems(items, start);
    checkItems(items);
    return { items, batchToken: undefined, sentAt: undefined, isHistorical: areHistorical(items) };
  }
  if (!isObject(root))
    throw new InvalidPayloadError(`an event must be an object: the body is ${getKind(root)}`);
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
    throw new InvalidPayloadError(`\`batch\` must be an array of events, not ${getKind(root.batch)}`);
  }
  if (root.event === undefined && !canBeNameless) {
    throw new InvalidPayloadError("the body has neither a `batch` of events nor an `event`");
  }
  const items = new ItemTable(text, [root]);
  readItem(items, start);
  checkItems(items);
  return { items, batchToken: undefined, sentAt: root.sent_at, isHistorical: isHistorical ?? false };
}

/** A single event, whose text is known to be valid. */
export function parseEvent(text: string): RawItem {
  const items = new ItemTable(text, [JSON.parse(text)]);
  readItem(items, 0);
  return items.at(0);
}

/** The key in an object: `token` and `api_key` are equivalent, an empty one is ignored. */
export function presentToken(object: Readonly<Record<string, unknown>>): unknown {
  return object.token || object.api_key || (object.token ?? object.api_key ?? undefined);
}

function parseString(text: string, firstPosition: number): unknown {
  try {
    return parseJson(text, jsonLimits);
  } catch (error) {
    if (error instanceof JsonTooComplexError) throw new PayloadTooComplexError(error.limit);
    if (error instanceof NestingTooDeepError) {
      const isList = /^\s*\[/.test(text) || text.includes('"batch"');
      throw nestedTooDeep(isList ? firstPosition + error.position : 0);
    }
    throw new InvalidPayloadError(`the body is not JSON: ${parserMessage(error)}`);
  }
}

function nestedTooDeep(position: number): InvalidItemError {
  return new InvalidItemError(
    `an event may be nested ${nestingMax} levels deep: the item at position ${position} is nested deeper`,
    "nested_too_deep",
  );
}

/** A wrong type is rejected: history must not be ingested, and metered, as realtime events. */
function historicalSwitch(value: unknown, where = ""): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === undefined || value === null) return undefined;
  throw new InvalidPayloadError(
    `\`historical_migration\` must be true or false${where}, not ${getKind(value)}`,
  );
}

/**
 * Whether the events of a list are historical: a request uses one lane, so they have to agree.
 *
 * @param decided the value next to the list, which takes precedence.
 * @throws {InvalidPayloadError} they disagree, or a value is neither true nor false.
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

/** Some events of one request are historical and some are not. */
export function mixedHistory(position: number, said: boolean): InvalidPayloadError {
  return new InvalidPayloadError(
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
  const tally: JsonCounts = { members: 0, deepest: 0 };
  const items = new ItemTable(text, batch, firstPosition);
  let at = start + 1;
  while (nextMember(text, at, span)) {
    // The last of repeated names counts, as in JSON.parse: it replaces what was read before.
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

/** @throws {InvalidItemError} with the position of the first item that cannot be an event. */
function checkItems(items: ItemTable): void {
  for (let index = 0; index < items.length; index++) {
    const { properties } = items.values[index] as Record<string, unknown>;
    if (properties !== undefined && properties !== null && !isObject(properties)) {
      throw new InvalidItemError(
        `\`properties\` must be an object: in the item at position ${items.firstPosition + index} it is ${getKind(properties)}`,
        "invalid_properties",
      );
    }
    if (items.deepestOf(index) > nestingMax) throw nestedTooDeep(items.firstPosition + index);
  }
}

/**
 * Records the position of each item of the array at `start`.
 *
 * @returns the end of the array.
 */
function readItems(items: ItemTable, start: number): number {
  const { text, values } = items;
  if (values.length === 0) throw new InvalidPayloadError("request holds no event: send at least one");
  let at = nextValueStart(text, start + 1);
  while (text.charCodeAt(at) !== closeBracket) {
    const value = values[items.length];
    if (isObject(value) && text.charCodeAt(at) === openBrace) {
      at = readItem(items, at);
    } else if (isObject(value) || items.length >= values.length) {
      // An array whose name is repeated later; the values belong to the later one.
      at = endOfValue(text, at, { members: 0, deepest: 0 });
    } else {
      throw new InvalidItemError(
        `an event must be an object: the item at position ${items.firstPosition + items.length} is ${getKind(value)}`,
        "not_an_object",
      );
    }
    at = nextValueStart(text, at);
  }
  return at + 1;
}

/**
 * Records the position of the item at `start` and of its properties.
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

/** The type of a JSON value, for a message. */
function getKind(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return (
    { object: "an object", string: "a string", number: "a number" }[typeof value as string] ?? "a boolean"
  );
}
