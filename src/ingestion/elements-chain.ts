/**
 * Converts the clicked element and its parents, which older browser libraries send in `$elements`, to the one-line form
 * of newer ones: `a.button:attr__href="/x"text="Go"nth-child="1"nth-of-type="2";div:…`.
 */

import { sanitizeString } from "../lib/json/canonical.ts";

const textLengthMax = 400;
const hrefLengthMax = 2048;

type Sent = Readonly<Record<string, unknown>>;

/** The clicked elements of an event: newer libraries send the chain itself, older ones a list. */
export function sentChain(sent: Sent): string | null {
  if (typeof sent.$elements_chain === "string" && sent.$elements_chain !== "") {
    return sanitizeString(sent.$elements_chain);
  }
  const chain = Array.isArray(sent.$elements) ? sanitizeString(elementsChain(sent.$elements)) : "";
  return chain === "" ? null : chain;
}

/** Adds the names of the properties that the chain replaces. */
export function addNamesOfElements(sent: Sent, names: string[]): void {
  if (Array.isArray(sent.$elements)) names.push("$elements");
  if (typeof sent.$elements_chain === "string") names.push("$elements_chain");
}

/** The chain of a parsed `$elements` array, innermost element first; entries that are not objects are skipped. */
export function elementsChain(elements: readonly unknown[]): string {
  const parts: string[] = [];
  for (const element of elements) {
    if (typeof element === "object" && element !== null && !Array.isArray(element)) {
      parts.push(serializeElement(element as Record<string, unknown>));
    }
  }
  return parts.join(";");
}

function serializeElement(element: Record<string, unknown>): string {
  const attributes = new Map<string, string>();
  for (const [name, value] of Object.entries(element)) {
    if (name.startsWith("attr__") && value !== null) attributes.set(name, plain(value));
  }
  attributes.set("nth-child", plain(element.nth_child ?? 0));
  attributes.set("nth-of-type", plain(element.nth_of_type ?? 0));
  const text = element.$el_text;
  if (typeof text === "string" && text !== "")
    attributes.set("text", text.slice(0, textLengthMax).toWellFormed());
  const href = element.attr__href;
  if (typeof href === "string") attributes.set("href", href.slice(0, hrefLengthMax).toWellFormed());
  const id = element.attr__id;
  if (typeof id === "string" && id !== "") attributes.set("attr_id", id);

  const tag = typeof element.tag_name === "string" ? element.tag_name : "";
  const classes = getClasses(element)
    .sort()
    .map((name) => "." + name.replaceAll('"', ""));
  const written = [...attributes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${escaped(name)}="${escaped(value)}"`);
  return `${tag}${classes.join("")}:${written.join("")}`;
}

function getClasses(element: Record<string, unknown>): string[] {
  const sent = element.attr__class ?? element.classes;
  if (Array.isArray(sent)) return sent.filter((name) => typeof name === "string" && name !== "");
  return typeof sent === "string" ? sent.split(/\s+/).filter((name) => name !== "") : [];
}

function plain(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Also escapes backslashes, so that a trailing one does not escape the closing quote. */
function escaped(value: string): string {
  return value.replace(/[\\"]/g, "\\$&");
}
