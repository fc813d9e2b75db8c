/** Converts a list of clicked elements to the chain that events store (contract, import 2.1). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { getId, toList } from "./lenient-json.ts";

/** `a.btn:attr__href="/x"nth-child="1"text="Go";div:…`; undefined without elements. */
export function getChain(elements: readonly Json[]): string | undefined {
  const listed = elements.filter(isJsonObject);
  const ordered = listed.every((element) => typeof element.order === "number")
    ? listed.toSorted((one, other) => (one.order as number) - (other.order as number))
    : listed;
  return ordered.length === 0 ? undefined : ordered.map(serializeElement).join(";");
}

function serializeElement(element: JsonObject): string {
  const classes = (toList(element.attr_class).length > 0 ? toList(element.attr_class) : splitClasses(element))
    .map((name) => String(name))
    .filter((name) => name !== "")
    .sort();
  const attributes = getAttributes(element);
  const names = [...attributes.keys()].sort();
  const tag = [getId(element.tag_name) ?? "", ...classes].join(".");
  const text = names.map((name) => `${name}="${escaped(attributes.get(name)!)}"`).join("");
  return text === "" ? tag : `${tag}:${text}`;
}

function splitClasses(element: JsonObject): string[] {
  return typeof element.attr_class === "string" ? element.attr_class.split(/\s+/) : [];
}

function getAttributes(element: JsonObject): Map<string, string> {
  const attributes = new Map<string, string>();
  const add = (name: string, value: Json | undefined) => {
    const text =
      value === undefined || value === null
        ? undefined
        : typeof value === "string"
          ? value
          : String(getId(value) ?? "");
    if (text !== undefined && text !== "" && !attributes.has(name)) attributes.set(name, text);
  };
  for (const [name, value] of Object.entries(isJsonObject(element.attributes) ? element.attributes : {})) {
    const known = name.startsWith("attr__") || name === "attr_id" ? name : `attr__${name}`;
    add(known, value);
  }
  add("attr__href", element.href);
  if (!attributes.has("attr_id")) add("attr__id", element.attr_id);
  add("nth-child", element.nth_child);
  add("nth-of-type", element.nth_of_type);
  add("text", element.text ?? element.$el_text);
  return attributes;
}

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
