/** `docs/cli-json.md` is made from the schemas; `FLAGKEEP_UPDATE_DOCS=1 bun test test/cli/json-page.test.ts` writes it. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { jsonShapeOf } from "../../cli/json-shape.ts";
import { leaves } from "./tree.ts";

const path = join(import.meta.dir, "../../docs/cli-json.md");
const section = /(?<=<!-- commands -->\n).*(?=<!-- \/commands -->)/s;
const lineMax = 100;

/** A schema as a reader of TypeScript expects it. */
function written(schema: TSchema, indent = ""): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.anyOf)) {
    const choices = schema.anyOf.map((one: TSchema) => written(one, indent));
    return [...new Set(choices)].join(" | ");
  }
  if (Array.isArray(schema.enum)) return schema.enum.map((one: unknown) => JSON.stringify(one)).join(" | ");
  switch (schema.type) {
    case "array": {
      const item = written(schema.items, indent);
      return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return writtenObject(schema, indent);
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

function writtenObject(schema: TSchema, indent: string): string {
  if (schema.properties === undefined) {
    const [values] = Object.values(schema.patternProperties ?? {}) as TSchema[];
    return `{ [name: string]: ${values === undefined ? "any" : written(values, indent)} }`;
  }
  const required = new Set<string>(schema.required ?? []);
  const deeper = `${indent}  `;
  const members = Object.entries(schema.properties as Record<string, TSchema>).map(
    ([name, member]) =>
      `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${written(member, deeper)}`,
  );
  const line = `{ ${members.join("; ")} }`;
  if (line.length + indent.length <= lineMax && !line.includes("\n")) return line;
  return `{\n${members.map((member) => `${deeper}${member};\n`).join("")}${indent}}`;
}

/** The commands with `--json`, those that print the same together. */
function page(): string {
  const byShape = new Map<string, string[]>();
  for (const [name, command] of leaves()) {
    const shape = jsonShapeOf(command);
    if (shape === undefined) continue;
    const text = written(shape);
    byShape.set(text, [...(byShape.get(text) ?? []), name]);
  }
  return [...byShape]
    .map(
      ([text, names]) =>
        `\n### ${names.map((name) => `\`${name}\``).join(", ")}\n\n\`\`\`ts\n${text}\n\`\`\`\n`,
    )
    .concat("\n")
    .join("");
}

test("the page has the shape of every command with --json", async () => {
  const now = await Bun.file(path).text();
  if (process.env.FLAGKEEP_UPDATE_DOCS)
    await Bun.write(
      path,
      now.replace(section, () => page()),
    );
  else expect(section.exec(now)?.[0], "FLAGKEEP_UPDATE_DOCS=1 writes the page").toBe(page());
  const withOption = [...leaves()].filter(([, { options }]) => options.some(({ long }) => long === "--json"));
  expect(withOption.length).toBeGreaterThan(40);
  for (const [name] of withOption) expect(page()).toContain(`\`${name}\``);
});

test("no shape of it is unknown", () => {
  expect(page().match(/^any$/gm)).toBeNull();
});
