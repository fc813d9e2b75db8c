/** Reads values that other programs have written in one way or another. Pure. */

import { numberText } from "../../lib/exact-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { parseJsonText } from "../read/json-text.ts";

/** An id, however it is written. */
export function idOf(value: Json | undefined): string | undefined {
  if ((typeof value === "string" && value !== "") || typeof value === "number") return String(value);
  return numberText(value);
}

/** An object, also one that is text; empty when it is none. */
export function objectOf(value: Json | undefined): JsonObject {
  const parsed = value === undefined ? undefined : jsonText(value);
  return isJsonObject(parsed) ? parsed : {};
}

/**
 * The properties of an event, also as text: an object of its own, which may be changed.
 *
 * @returns what stands there when it is something else, by which ingestion refuses the event.
 */
export function propertiesOf(value: Json | undefined): JsonObject | Exclude<Json, JsonObject> {
  const parsed = value === undefined || value === "" ? null : jsonText(value);
  if (parsed === null) return {};
  return isJsonObject(parsed) ? { ...parsed } : (parsed as Exclude<Json, JsonObject>);
}

/** Tables hold objects as JSON text. */
export function jsonText(value: Json): Json {
  if (typeof value !== "string" || !value.trimStart().startsWith("{")) return value;
  try {
    return parseJsonText(value);
  } catch {
    return value;
  }
}

/** A list, also one that is text, or as Parquet holds it; empty when it is none. */
export function listOf(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  if (isJsonObject(value)) return Array.isArray(value.list) ? value.list : [];
  return typeof value === "string" ? (listInText(value) ?? []) : [];
}

/** A list that is text: of JSON, `['a','it\\'s']` of ClickHouse, `{a,"b c"}` of Postgres. Source: contract, import 1.4 T4. */
export function listInText(text: string): Json[] | undefined {
  const written = text.trim();
  if (written.startsWith("{")) return listOfElements(written, postgres);
  if (!written.startsWith("[")) return undefined;
  try {
    const parsed = parseJsonText(written);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return listOfElements(written, clickHouse);
  }
}

interface ListForm {
  quote: string;
  close: string;
  /** What escapes other than of quote and backslash stand for. */
  escapes: Readonly<Record<string, string>>;
  /** The value of an element without quotes; undefined if there is none. */
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
    return /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text) ? parseJsonText(text) : undefined;
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

/** Where the quote is that ends an element: the one behind which the list goes on or ends. */
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
      // Some writers escape the backslash of a quote once more; a quote of Postgres ends its element.
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
    // A quote inside of an element is escaped: the writer has doubled its backslash.
    return next === quote ? pairs.slice(1) + quote : pairs + next;
  });
}
