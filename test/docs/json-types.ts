/** Writes JSON schemas as TypeScript types, for the reference pages. */

import type { TSchema } from "@sinclair/typebox";

const lineMax = 100;

/** A schema as a TypeScript type. Named schemas inside it are referred to; `named` collects them. */
export function getType(schema: TSchema, named: Map<string, TSchema> = new Map(), indent = ""): string {
  if (schema.$id !== undefined && indent !== "") {
    named.set(schema.$id, schema);
    return schema.$id;
  }
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.anyOf)) {
    const choices = schema.anyOf.map((one: TSchema) => getType(one, named, indent));
    return [...new Set(choices)].join(" | ");
  }
  if (Array.isArray(schema.enum)) return schema.enum.map((one: unknown) => JSON.stringify(one)).join(" | ");
  switch (schema.type) {
    case "array": {
      const item = getType(schema.items, named, indent);
      return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return getObjectType(schema, named, indent);
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

function getObjectType(schema: TSchema, named: Map<string, TSchema>, indent: string): string {
  if (schema.properties === undefined) {
    const [values] = Object.values(schema.patternProperties ?? {}) as TSchema[];
    return `{ [name: string]: ${values === undefined ? "any" : getType(values, named, indent)} }`;
  }
  const required = new Set<string>(schema.required ?? []);
  const deeper = `${indent}  `;
  const members = Object.entries(schema.properties as Record<string, TSchema>).map(
    ([name, member]) =>
      `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${getType(member, named, deeper)}`,
  );
  const line = `{ ${members.join("; ")} }`;
  if (line.length + indent.length <= lineMax && !line.includes("\n")) return line;
  return `{\n${members.map((member) => `${deeper}${member};\n`).join("")}${indent}}`;
}
