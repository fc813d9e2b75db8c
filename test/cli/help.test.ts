/** Every command explains itself, with an example that can be copied. */

import { expect, test } from "bun:test";
import { flagkeep } from "../support/appliance.ts";

const atOnce = 4;

test("every command has --help with an example", async () => {
  const { stdout } = await flagkeep(["completions", "bash"]);
  const paths = [...stdout.matchAll(/^ {4}"([^"]+)"\) known=/gm)].map(([, path]) => path!);
  expect(paths.length).toBeGreaterThan(35);
  const troubles: string[] = [];
  const check = async (path: string) => {
    const { stdout: help, stderr, code } = await flagkeep([...path.split(" "), "--help"]);
    const hasCommands = paths.some((other) => other.startsWith(`${path} `));
    if (code !== 0 || stderr !== "" || !help.startsWith(`Usage: flagkeep ${path} `)) troubles.push(path);
    else if (!hasCommands && !help.includes("\nExample")) troubles.push(`${path} (no example)`);
  };
  const left = [...paths];
  const work = async () => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) await check(path);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  expect(troubles).toEqual([]);
}, 60_000);
