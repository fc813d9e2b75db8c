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

/** `a.button:attr__href="/x"text="Go"nth-child="1";div:…` with `\"` for a quote inside a value. */
export function parseElementsChain(chain: string): Element[] {
  return split(chain).map(parseElement);
}

/** Cuts at semicolons that are not inside quotes. */
function split(chain: string): string[] {
  return chain.match(/(?:[^;"]|"(?:\\.|[^"\\])*"?)+/g) ?? [];
}

function parseElement(text: string, order: number): Element {
  const [, names = "", rest = ""] = /^([^:"]*):?(.*)$/s.exec(text) ?? [];
  const [tag = "", ...classes] = names.split(".");
  const attributes = new Map<string, string>();
  for (const [, name, value] of rest.matchAll(/([^="]+)="((?:\\.|[^"\\])*)"/gs)) {
    attributes.set(name!, value!.replace(/\\(["\\])/g, "$1"));
  }
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
