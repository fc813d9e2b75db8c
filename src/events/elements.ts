/** Reads the text form of a clicked element and its parents, as events keep it. */

export interface Element {
  tag_name: string | null;
  text: string | null;
  href: string | null;
  attr_class: string[] | null;
  attr_id: string | null;
  nth_child: number | null;
  nth_of_type: number | null;
  /** Only the attributes of the page's own element, named `attr__…`. */
  attributes: Record<string, string>;
  order: number;
}

/** More elements than any page has above each other. */
export const elementsMax = 500;
/** What lies behind it is not looked at: clients may send a chain of any length. */
const chainLengthMax = 1024 * 1024;

const quote = 34;
const semicolon = 59;
const backslash = 92;

/**
 * `a.button:attr__href="/x"text="Go"nth-child="1";div:…` with `\"` for a quote inside a value.
 *
 * Looks at every character once, whatever the chain is: nobody checked it when it came.
 *
 * @returns the first elements, `elementsMax` at the most.
 */
export function parseElementsChain(chain: string): Element[] {
  const read = chain.length > chainLengthMax ? chain.slice(0, chainLengthMax).toWellFormed() : chain;
  return split(read).map(parseElement);
}

/** Cuts at semicolons that are not inside quotes. */
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

/** Place of the quote that ends the value which begins here, else the end of the text. */
function endOfValue(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return Math.min(at, text.length);
}

function parseElement(text: string, order: number): Element {
  const end = text.search(/[:"]/);
  const names = end === -1 ? text : text.slice(0, end);
  const [tag = "", ...classes] = names.split(".");
  const attributes = attributesOf(text.slice(names.length));
  const number = (name: string) => (attributes.has(name) ? Number(attributes.get(name)) : null);
  const kept = [...attributes].filter(([name]) => name.startsWith("attr__"));
  return {
    tag_name: tag === "" ? null : tag,
    text: attributes.get("text") ?? null,
    href: attributes.get("href") ?? attributes.get("attr__href") ?? null,
    attr_class: classes.length > 0 ? classes : null,
    attr_id: attributes.get("attr_id") ?? attributes.get("attr__id") ?? null,
    nth_child: number("nth-child"),
    nth_of_type: number("nth-of-type"),
    attributes: Object.fromEntries(kept),
    order,
  };
}

/** `:name="value"name="value"`. */
function attributesOf(text: string): Map<string, string> {
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
