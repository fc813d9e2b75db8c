/** The tree of commands: what each of them must have, whatever it does. */

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Command } from "commander";
import { commandsFor, createProgram } from "../../cli/commands.ts";
import { getJsonShape } from "../../cli/output.ts";
import { invocations, triedElsewhere } from "./invocations.ts";
import { groups, leaves } from "./tree.ts";

function getHelp(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

const found = leaves();

test("every command has an entry in the table of invocations, and every entry has a command", () => {
  const entries = [...Object.keys(invocations), ...Object.keys(triedElsewhere)];
  expect(entries.sort()).toEqual([...found.keys()].sort());
});

describe("every command explains itself", () => {
  for (const [name, command] of found) {
    test(name, () => {
      const help = getHelp(command);
      expect(help).toStartWith(`Usage: flagkeep ${name} `);
      expect(help).toMatch(/\nExamples?:\n {2}/);
      expect(command.description()).toMatch(/\.$/);
      expect(command.options.map(({ long }) => long)).toContain("--data-dir");
      for (const example of help.slice(help.search(/\nExamples?:\n/)).matchAll(/flagkeep ([^|>)\n]*)/g)) {
        expect(unknownOptions(command, name, example[1]!)).toEqual([]);
      }
    });
  }
});

describe("every group of commands has examples, of commands that are there", () => {
  for (const [name, command] of groups()) {
    test(name, () => {
      const help = getHelp(command);
      expect(help).toMatch(/\nExamples?:\n {2}/);
      for (const [, call] of help.slice(help.search(/\nExamples?:\n/)).matchAll(/flagkeep ([^|>)\n]*)/g)) {
        const [path, leaf] = [...found].find(([known]) => `${call} `.startsWith(`${known} `)) ?? [];
        expect(path).toBeDefined();
        expect(unknownOptions(leaf!, path!, call!)).toEqual([]);
      }
    });
  }
});

/** Options in an example that the command has not got; the example must be one of this command. */
function unknownOptions(command: Command, name: string, call: string): string[] {
  if (call !== name && !call.startsWith(`${name} `)) return [`not a call of ${name}: ${call}`];
  const known = command.options.flatMap(({ long, short }) => [long, short]);
  const words = call.slice(name.length).split(/\s+/);
  const end = words.indexOf("--");
  return words.slice(0, end >>> 0).filter((word) => /^--?[a-z]/.test(word) && !known.includes(word));
}

test("help shows every command below the heading of its group", async () => {
  const headings = getHelp(await createProgram()).match(/^\S.*:$/gm);
  expect(headings).toContain("Tools:");
  // Of commander, for commands without a group.
  expect(headings).not.toContain("Commands:");
});

test("every command with --json documents its schema; one without is not for scripts", () => {
  const withOption = [...found].filter(([, { options }]) => options.some(({ long }) => long === "--json"));
  expect(
    withOption.filter(([, command]) => getJsonShape(command) === undefined).map(([name]) => name),
  ).toEqual([]);
  const without = [...found.keys()].filter((name) => !withOption.some(([one]) => one === name));
  expect(without).toEqual(["serve", "mcp", "completions"]);
});

test("the page of commands names those that do not use --data-dir or have no --json", async () => {
  const page = await Bun.file(join(import.meta.dir, "../../docs/reference/cli.md")).text();
  const unused = [...found].filter(
    ([, { options }]) => options.find(({ long }) => long === "--data-dir")?.hidden === true,
  );
  expect(unused.map(([name]) => name.split(" ")[0]!).sort()).toEqual([
    "cluster",
    "cluster",
    "cluster",
    "completions",
    "mcp",
    "version",
  ]);
  expect(page).toContain("`mcp`, `version`, `completions` and `cluster` do not use it");
  expect(page.replaceAll("\n", " ")).toContain(
    "Every command but `serve`, `mcp` and `completions` has `--json`",
  );
});

test("a call loads the program of the command that it names, and of all if it names none", async () => {
  const named = async (name: string | undefined) =>
    (await commandsFor(name)).map((command) => command.name());
  const all = await named(undefined);
  for (const name of all.filter((name) => name !== "completions")) expect(await named(name)).toEqual([name]);
  for (const name of ["completions", "help", "--help", "toString"]) expect(await named(name)).toEqual(all);
  expect(await named("--version")).toEqual([]);
});
