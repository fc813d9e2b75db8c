/** Writes JSON schemas as TypeScript types, for the reference pages. */

import type { TSchema } from "@sinclair/typebox";

const lineMax = 100;

/** A schema as a TypeScript type. */
export function typeOf(schema: TSchema, indent = ""): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.anyOf)) {
    const choices = schema.anyOf.map((one: TSchema) => typeOf(one, indent));
    return [...new Set(choices)].join(" | ");
  }
  if (Array.isArray(schema.enum)) return schema.enum.map((one: unknown) => JSON.stringify(one)).join(" | ");
  switch (schema.type) {
    case "array": {
      const item = typeOf(schema.items, indent);
      return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return objectTypeOf(schema, indent);
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
    case "null":
      return schema.type;
    default:
      return "any";
  }
}

function objectTypeOf(schema: TSchema, indent: string): string {
  if (schema.properties === undefined) {
    const [values] = Object.values(schema.patternProperties ?? {}) as TSchema[];
    return `{ [name: string]: ${values === undefined ? "any" : typeOf(values, indent)} }`;
  }
  const required = new Set<string>(schema.required ?? []);
  const deeper = `${indent}  `;
  const members = Object.entries(schema.properties as Record<string, TSchema>).map(
    ([name, member]) =>
      `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${typeOf(member, deeper)}`,
  );
  const line = `{ ${members.join("; ")} }`;
  if (line.length + indent.length <= lineMax && !line.includes("\n")) return line;
  return `{\n${members.map((member) => `${deeper}${member};\n`).join("")}${indent}}`;
}
