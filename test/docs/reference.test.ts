/**
 * The pages in `docs/reference` that are generated: commands, settings, routes.
 *
 * `FLAGKEEP_UPDATE_DOCS=1 bun test test/docs/reference.test.ts` writes them.
 */

import { expect, test } from "bun:test";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import type { Command } from "commander";
import { getJsonShape } from "../../cli/output.ts";
import { environmentName, type SettingName, settings } from "../../src/config/settings.ts";
import type { OpenApiDocument } from "../../src/http/openapi.ts";
import { paths } from "../../src/paths.ts";
import { leaves } from "../cli/tree.ts";
import { ServerProcess } from "../support/server.ts";
import { getType } from "./json-types.ts";

const folder = join(import.meta.dir, "../../docs/reference");
const generated = /(?<=<!-- generated -->\n).*(?=<!-- \/generated -->)/s;

/** Compares the generated part of a page, or writes it. */
async function expectGenerated(page: string, part: string): Promise<void> {
  const path = join(folder, page);
  const now = await Bun.file(path).text();
  const wanted = `\n${part.trim()}\n\n`;
  if (process.env.FLAGKEEP_UPDATE_DOCS)
    await Bun.write(
      path,
      now.replace(generated, () => wanted),
    );
  else expect(generated.exec(now)?.[0], "FLAGKEEP_UPDATE_DOCS=1 writes the page").toBe(wanted);
}

const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/** Options that most commands have; the page explains them once. */
const common = new Set(["--json", "--data-dir", "--project"]);

const serverOptions = new Set(["--url", "--key"]);

function commandPart(name: string, command: Command, named: Map<string, TSchema>): string {
  const usage = command.usage().replace(/^\[options\] ?/, "");
  const names = new Set<string | undefined>(Object.keys(settings).map((setting) => `--${setting}`));
  const isRemote = command.options.some(({ long, hidden }) => long === "--key" && !hidden);
  const own = command.options.filter(
    ({ long, hidden }) =>
      !hidden && !common.has(long ?? "") && !names.has(long) && !(isRemote && serverOptions.has(long ?? "")),
  );
  const shared = command.options.filter(({ long }) => names.has(long) && long !== "--data-dir");
  const rows = own.map(({ flags, description }) => `| \`${cell(flags)}\` | ${cell(description)} |\n`);
  const shape = getJsonShape(command);
  return [
    `### ${name}\n\n${command.description()}\n\n\`\`\`\nflagkeep ${name} [options]${usage === "" ? "" : ` ${usage}`}\n\`\`\`\n`,
    rows.length === 0 ? "" : `\n| option | |\n|---|---|\n${rows.join("")}`,
    shared.length === 0
      ? ""
      : `\nSettings: ${name === "serve" ? "all" : shared.map(({ long }) => `\`${long}\``).join(", ")}.\n`,
    isRemote ? "\nWorks on a server too, with `--url` and `--key`.\n" : "",
    shape === undefined ? "" : `\n\`--json\` prints:\n\n\`\`\`ts\n${getType(shape, named)}\n\`\`\`\n`,
  ].join("");
}

/** The types of the API that `--json` documents refer to. */
function typesPart(named: Map<string, TSchema>): string {
  const types = new Map<string, string>();
  // A named type may refer to others, which are added while the loop runs.
  for (const [name, schema] of named) {
    const { $id: _, ...unnamed } = schema;
    types.set(name, `type ${name} = ${getType(unnamed as TSchema, named)}\n`);
  }
  const sorted = [...types].sort(([a], [b]) => a.localeCompare(b)).map(([, type]) => type);
  return `## Types\n\nTypes of the API in the documents above.\n\n\`\`\`ts\n${sorted.join("\n")}\`\`\`\n`;
}

test("every command is on the page of commands", async () => {
  const named = new Map<string, TSchema>();
  const parts = [...leaves()].map(([name, command]) => commandPart(name, command, named));
  await expectGenerated("cli.md", [...parts, typesPart(named)].join("\n"));
  expect(parts.length).toBeGreaterThan(60);
});

test("every --json prints a known shape", () => {
  const withOption = [...leaves()].filter(([, { options }]) => options.some(({ long }) => long === "--json"));
  expect(withOption.length).toBeGreaterThan(40);
  for (const [name, command] of withOption) {
    const shape = getJsonShape(command);
    expect(shape, name).toBeDefined();
    expect(getType(shape!)).not.toMatch(/^any$/m);
  }
});

/**
 * Headings of the page of settings, each with the settings that begin with one of these words. Other settings belong to
 * the heading of the setting that is declared before them.
 */
const settingGroups: readonly (readonly [heading: string, prefixes: readonly string[]])[] = [
  [
    "Server",
    [
      "data-dir",
      "host",
      "port",
      "workers",
      "public-url",
      "console",
      "mcp",
      "shutdown-timeout",
      "trusted-proxies",
    ],
  ],
  ["HTTPS", ["acme-", "https-"]],
  [
    "Limits",
    ["body-limit", "api-body-limit", "bodies-in-flight", "rate-limits", "memory", "query-", "duckdb-"],
  ],
  ["Journal and event store", ["journal-", "archive-", "property-columns", "events-retention"]],
  ["Backups and scrubs", ["backup-", "scrub-"]],
  ["Logs, metrics and traces", ["log-", "metrics", "traces-", "spike-", "rollback-", "webhook-"]],
  [
    "ClickHouse and PostgreSQL",
    ["events-url", "events-password-file", "postgres-", "cluster-persons", "cluster-loading", "person-cache"],
  ],
];

test("every setting is on the page of settings, below one heading", async () => {
  const rows = new Map(settingGroups.map(([heading]) => [heading, ""]));
  let heading = settingGroups[0]![0];
  for (const name of Object.keys(settings) as SettingName[]) {
    heading = findHeading(name) ?? heading;
    const { unit, default: fallback, help } = settings[name];
    // The number of processors differs between machines.
    const shown = name === "duckdb-threads" ? "CPUs minus one" : fallback === "" ? "" : `\`${fallback}\``;
    const row = `| \`--${name}\` | \`${environmentName(name)}\` | ${unit.replaceAll("|", ", ")} | ${shown} | ${cell(help)} |\n`;
    rows.set(heading, rows.get(heading)! + row);
  }
  const columns = "| flag | environment variable | value | default | description |\n|---|---|---|---|---|\n";
  const parts = [...rows].map(([title, ofTitle]) => `## ${title}\n\n${columns}${ofTitle}`);
  await expectGenerated("settings.md", parts.join("\n"));
});

function findHeading(name: string): string | undefined {
  const isBelow = (prefix: string) =>
    prefix.endsWith("-") ? name.startsWith(prefix) : name === prefix || name.startsWith(`${prefix}-`);
  return settingGroups.find(([, prefixes]) => prefixes.some(isBelow))?.[0];
}

test("every route is on the page of the API", async () => {
  await using server = await ServerProcess.start();
  const document = (await (await fetch(`${server.url}/api/schema/`)).json()) as OpenApiDocument;
  const byTag = new Map<string, string[]>();
  for (const [path, methods] of Object.entries(document.paths as Record<string, Record<string, never>>)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { tags, summary, security } = operation as {
        tags: string[];
        summary: string;
        security?: object[];
      };
      const alternatives = (security ?? []).map((one) =>
        (Object.values(one).flat() as string[]).map((scope) => `\`${scope}\``).join(" and "),
      );
      const scopes = [...new Set(alternatives)].filter((each) => each !== "").join(" or ");
      const row = `| \`${method.toUpperCase()} ${path}\` | ${cell(summary)} | ${scopes} |\n`;
      const [tag = "Other"] = tags;
      byTag.set(tag, [...(byTag.get(tag) ?? []), row]);
    }
  }
  const parts = [...byTag].map(
    ([tag, rows]) => `## ${tag}\n\n| route | | scope |\n|---|---|---|\n${rows.join("")}`,
  );
  await expectGenerated("api.md", parts.join("\n"));
});

test("the console has the types of the API", async () => {
  await using server = await ServerProcess.start();
  const { components } = (await (await fetch(`${server.url}/api/schema/`)).json()) as OpenApiDocument;
  const schemas = Object.entries(components.schemas as Record<string, TSchema>);
  const types = schemas
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => {
      const base = findBase(schema, schemas);
      const type = base === undefined ? getType(schema) : `${base[0]} & ${getType(without(schema, base[1]))}`;
      return `export type ${name} = ${type.replaceAll(/\bany\b/g, "unknown")};\n`;
    });
  const path = join(import.meta.dir, "../../src/console/page/lib/api-types.ts");
  const wanted = `/** The types of the API, generated from its schemas by test/docs/reference.test.ts. */\n\n${types.join("\n")}`;
  if (process.env.FLAGKEEP_UPDATE_DOCS) await Bun.write(path, wanted);
  else expect(await Bun.file(path).text(), "FLAGKEEP_UPDATE_DOCS=1 writes the file").toBe(wanted);
});

/** Types with fewer members in common are alike by chance. */
const sharedMembersMin = 4;
const getMembers = ({ properties = {} }: TSchema) => Object.keys(properties);

/** The largest schema whose members are all in this one, which has more. */
function findBase(schema: TSchema, schemas: [string, TSchema][]): [string, TSchema] | undefined {
  const count = getMembers(schema).length;
  const isSame = (other: TSchema, name: string) =>
    Bun.deepEquals(other.properties[name], schema.properties[name]) &&
    other.required?.includes(name) === schema.required?.includes(name);
  return schemas
    .filter(([, other]) => {
      const members = getMembers(other);
      const isShorter = members.length >= sharedMembersMin && members.length < count;
      return isShorter && members.every((name) => name in schema.properties && isSame(other, name));
    })
    .toSorted(([, a], [, b]) => getMembers(b).length - getMembers(a).length)[0];
}

const without = (schema: TSchema, base: TSchema): TSchema => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(schema.properties).filter(([name]) => !(name in base.properties)),
  ),
});

test("the page of the data directory names every file in it", async () => {
  const page = await Bun.file(join(folder, "data-directory.md")).text();
  const names = Object.values(paths("")).map((place) => place.split("/")[0]!);
  expect(names.filter((name) => !page.includes(`\`${name}`))).toEqual([]);
});
