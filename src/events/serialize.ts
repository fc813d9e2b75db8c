/** Serializes a page of events as JSON; properties are passed through as received. */

import { parseExactJson } from "../lib/json/exact.ts";
import { isoFromMicros } from "../lib/time.ts";
import { getGroups } from "../persons/identity/operations.ts";
import type { StoredEvent } from "./columns.ts";

export interface Element {
  tag_name: string | null;
  text: string | null;
  href: string | null;
  attr_class: string[] | null;
  attr_id: string | null;
  nth_child: number | null;
  nth_of_type: number | null;
  /** Only the page's own attributes, named `attr__…`. */
  attributes: Record<string, string>;
  order: number;
}

/** Deeper than any real page is nested. */
export const elementsMax = 500;
/** The rest is ignored: clients may send a chain of any length. */
const chainLengthMax = 1024 * 1024;

const quote = 34;
const semicolon = 59;
const backslash = 92;

/**
 * Parses `a.button:attr__href="/x"text="Go"nth-child="1";div:…`, with `\"` for a quote in a value. Linear time for any
 * input, because chains are not validated at ingestion. @returns the first elements, at most `elementsMax`
 */
export function parseElementsChain(chain: string): Element[] {
  const read = chain.length > chainLengthMax ? chain.slice(0, chainLengthMax).toWellFormed() : chain;
  return split(read).map(parseElement);
}

/** Splits at semicolons outside of quotes. */
function split(chain: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at <= chain.length && parts.length < elementsMax; at++) {
    if (chain.charCodeAt(at) === quote) at = endOfValue(chain, at + 1);
    if (at < chain.length && chain.charCodeAt(at) !== semicolon) continue;
    if (at > start) parts.push(chain.slice(start, at));
    start = at + 1;
  }
  return parts;
}

/** Index of the quote that ends the value, otherwise the end of the string. */
function endOfValue(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return Math.min(at, text.length);
}

function parseElement(text: string, order: number): Element {
  const end = text.search(/[:"]/);
  const names = end === -1 ? text : text.slice(0, end);
  const [tag = "", ...classes] = names.split(".");
  const attributes = getAttributes(text.slice(names.length));
  const number = (name: string) => (attributes.has(name) ? Number(attributes.get(name)) : null);
  const preserved = [...attributes].filter(([name]) => name.startsWith("attr__"));
  return {
    tag_name: tag === "" ? null : tag,
    text: attributes.get("text") ?? null,
    href: attributes.get("href") ?? attributes.get("attr__href") ?? null,
    attr_class: classes.length > 0 ? classes : null,
    attr_id: attributes.get("attr_id") ?? attributes.get("attr__id") ?? null,
    nth_child: number("nth-child"),
    nth_of_type: number("nth-of-type"),
    attributes: Object.fromEntries(preserved),
    order,
  };
}

/** `:name="value"name="value"`. */
function getAttributes(text: string): Map<string, string> {
  const attributes = new Map<string, string>();
  let at = text.startsWith(":") ? 1 : 0;
  for (let open = text.indexOf('="', at); open !== -1; open = text.indexOf('="', at)) {
    const before = text.slice(at, open);
    const name = before.slice(Math.max(before.lastIndexOf("="), before.lastIndexOf('"')) + 1);
    at = open + 2;
    if (name === "") continue;
    const end = endOfValue(text, at);
    if (end === text.length) break;
    attributes.set(name, text.slice(at, end).replace(/\\(["\\])/g, "$1"));
    at = end + 1;
  }
  return attributes;
}

/** Data of a page in addition to the events. */
export interface PageContext {
  /** JSON of the person by distinct ID, if any. */
  personTexts: ReadonlyMap<string, string>;
  /** Indexes of the project's group types by name. */
  groupTypeIndexes: ReadonlyMap<string, number>;
}

/** Maximum length of a page with persons; further events are on the next page. */
const textLengthMax = 64 * 1024 * 1024;

/**
 * @returns a JSON array of the first events, at least one, and their number. Source: contract, sdk-compat 4.10; the
 * members `uuid`, `seq` and `historical` are ours.
 */
export function serializeEvents(
  events: readonly StoredEvent[],
  context: PageContext,
): { text: string; count: number } {
  const texts: string[] = [];
  let length = 0;
  for (const event of events) {
    if (length > textLengthMax) break;
    const text = serializeEvent(event, context);
    length += text.length;
    texts.push(text);
  }
  return { text: `[${texts.join(",")}]`, count: texts.length };
}

/** The members of `listedMembers`. A single template: a loop over the members takes twice as long. */
function serializeEvent(event: StoredEvent, { personTexts, groupTypeIndexes }: PageContext): string {
  const { uuid, distinct_id: distinctId, elements_chain: chain } = event;
  const person = personTexts.get(distinctId) ?? "null";
  const properties = withGroupColumns(event.properties, groupTypeIndexes);
  const elements = chain === "" ? "[]" : JSON.stringify(parseElementsChain(chain));
  return (
    `{"id":"${uuid}","uuid":"${uuid}","event":${JSON.stringify(event.event)},` +
    `"distinct_id":${JSON.stringify(distinctId)},"timestamp":"${isoFromMicros(event.timestamp)}",` +
    `"properties":${properties},"person":${person},"elements":${elements},` +
    `"elements_chain":${JSON.stringify(chain)},"seq":${event.seq},"historical":${event.historical}}`
  );
}

/**
 * Adds `$group_0`, `$group_1`, …: an event's groups by type index, in addition to `$groups`. Added on read, because the
 * index, which is permanent, is unknown when the event is stored. Source: contract, ingestion 14.2; decision 6.
 * @param properties JSON of the stored properties; members are appended
 * @param typeIndexes indexes of the project's group types by name
 */
export function withGroupColumns(properties: string, typeIndexes: ReadonlyMap<string, number>): string {
  if (typeIndexes.size === 0 || !properties.includes('"$groups"')) return properties;
  const parsed = parseExactJson(properties) as Record<string, unknown>;
  if (parsed.$process_person_profile === false) return properties;
  let members = "";
  for (const { type, key } of getGroups(parsed.$groups)) {
    const name = `$group_${typeIndexes.get(type)}`;
    if (!typeIndexes.has(type) || Object.hasOwn(parsed, name)) continue;
    members += `,"${name}":${JSON.stringify(key)}`;
  }
  const end = properties.lastIndexOf("}");
  return properties.slice(0, end) + members + properties.slice(end);
}
