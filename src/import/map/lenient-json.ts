/** Reads values in the different notations of other programs. Pure. */

import { formatNumber } from "../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { parseJsonString } from "../read/json-text.ts";

/** An ID in any notation. */
export function getId(value: Json | undefined): string | undefined {
  if ((typeof value === "string" && value !== "") || typeof value === "number") return String(value);
  return formatNumber(value);
}

/** An object, also as a JSON string; empty for other values. */
export function toObject(value: Json | undefined): JsonObject {
  const parsed = value === undefined ? undefined : toJsonString(value);
  return isJsonObject(parsed) ? parsed : {};
}

/**
 * The properties of an event, also as a JSON string: a new object that may be modified.
 *
 * @returns any other value unchanged, so that ingestion rejects the event.
 */
export function getProperties(value: Json | undefined): JsonObject | Exclude<Json, JsonObject> {
  const parsed = value === undefined || value === "" ? null : toJsonString(value);
  if (parsed === null) return {};
  return isJsonObject(parsed) ? { ...parsed } : (parsed as Exclude<Json, JsonObject>);
}

/** Tables write objects as JSON strings. */
export function toJsonString(value: Json): Json {
  if (typeof value !== "string" || !value.trimStart().startsWith("{")) return value;
  try {
    return parseJsonString(value);
  } catch {
    return value;
  }
}

/** Of Parquet. */
const escapedNul = "\\x00";

/** ClickHouse fills a FixedString with NUL bytes, which Parquet has as `\x00`. */
export function withoutFilling(text: string): string {
  let end = text.length;
  for (;;) {
    if (text.charCodeAt(end - 1) === 0) end -= 1;
    else if (text.endsWith(escapedNul, end)) end -= escapedNul.length;
    else return end === text.length ? text : text.slice(0, end);
  }
}

const numberForm = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/** The number that text contains, with all its digits; other text unchanged. */
export function toExactNumber(text: string): Json {
  return numberForm.test(text) ? parseJsonString(text) : text;
}

/** A list, also as a string or in Parquet's form; empty for other values. */
export function toList(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  if (isJsonObject(value)) return Array.isArray(value.list) ? value.list : [];
  return typeof value === "string" ? (parseListString(value) ?? []) : [];
}

/**
 * Parses a list from a string: JSON, `['a','it\\'s']` of ClickHouse, `{a,"b c"}` of Postgres. Source: contract, import
 * 1.4 T4.
 */
export function parseListString(text: string): Json[] | undefined {
  const written = text.trim();
  if (written.startsWith("{")) return listOfElements(written, postgres);
  if (!written.startsWith("[")) return undefined;
  try {
    const parsed = parseJsonString(written);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return listOfElements(written, clickHouse);
  }
}

interface ListForm {
  quote: string;
  close: string;
  /** Characters for escapes other than quote and backslash. */
  escapes: Readonly<Record<string, string>>;
  /** The value of an unquoted element; undefined if invalid. */
  bare: (text: string) => Json | undefined;
}

const postgres: ListForm = {
  quote: '"',
  close: "}",
  escapes: {},
  bare: (text) => (/^[^{}"\\]+$/.test(text) ? (text.toUpperCase() === "NULL" ? null : text) : undefined),
};
const clickHouse: ListForm = {
  quote: "'",
  close: "]",
  escapes: { t: "\t", n: "\n", r: "\r", b: "\b", f: "\f", "0": "\0" },
  bare: (text) => {
    if (text === "NULL") return null;
    if (text === "true" || text === "false") return text === "true";
    return /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text) ? parseJsonString(text) : undefined;
  },
};

function listOfElements(text: string, form: ListForm): Json[] | undefined {
  const { quote, close } = form;
  const found: Json[] = [];
  const skipSpace = (from: number) => {
    let next = from;
    while (text[next] === " " || text[next] === "\n") next += 1;
    return next;
  };
  let at = skipSpace(1);
  if (text[at] === close) return at === text.length - 1 ? [] : undefined;
  for (;;) {
    if (text[at] === quote) {
      const end = endOfElement(text, at + 1, form);
      if (end === undefined) return undefined;
      found.push(unescapedElement(text.slice(at + 1, end), form));
      at = skipSpace(end + 1);
    } else {
      const end = endOfBare(text, at, close);
      const value = form.bare(text.slice(at, end).trim());
      if (value === undefined) return undefined;
      found.push(value);
      at = end;
    }
    if (text[at] === close) return at === text.length - 1 ? found : undefined;
    if (text[at] !== ",") return undefined;
    at = skipSpace(at + 1);
  }
}

function endOfBare(text: string, from: number, close: string): number {
  for (let at = from; at < text.length; at++) if (text[at] === "," || text[at] === close) return at;
  return text.length;
}

/** Position of the quote that ends an element: the one that the next element or the end of the list follows. */
function endOfElement(text: string, from: number, { quote, close }: ListForm): number | undefined {
  let backslashes = 0;
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") {
      backslashes += 1;
      continue;
    }
    if (text[at] === quote && backslashes % 2 === 0) {
      let next = at + 1;
      while (text[next] === " " || text[next] === "\n") next += 1;
      if (text[next] === "," || (text[next] === close && next === text.length - 1)) return at;
      // Some writers escape the backslash of a quote again; in Postgres a quote ends its element.
      if (quote === '"') return undefined;
    }
    backslashes = 0;
  }
  return undefined;
}

function unescapedElement(text: string, { quote, escapes }: ListForm): string {
  if (!text.includes("\\")) return text;
  return text.replace(/(\\+)([^\\]?)/g, (_, run: string, next: string) => {
    const pairs = "\\".repeat(run.length >> 1);
    if (run.length % 2 === 1) return pairs + (escapes[next] ?? next);
    // A quote inside an element is escaped: the writer has doubled its backslash.
    return next === quote ? pairs.slice(1) + quote : pairs + next;
  });
}
