/** The README's table of settings is made from the settings; `FLAGKEEP_UPDATE_README=1 bun test test/readme.test.ts` writes it. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { environmentName, settings } from "../src/config/settings.ts";
import { paths } from "../src/paths.ts";

const path = join(import.meta.dir, "../README.md");
const table = /(?<=<!-- settings -->\n).*(?=<!-- \/settings -->)/s;

test("the README tells what is in the data directory", async () => {
  const readme = await Bun.file(path).text();
  const shown = readme.slice(readme.indexOf("## The data directory"), readme.indexOf("## Retention"));
  const names = Object.values(paths("")).map((place) => place.split("/")[0]!);
  expect(names.filter((name) => !shown.includes(`\`${name}`))).toEqual([]);
});

test("the README lists every setting as it is", async () => {
  const readme = await Bun.file(path).text();
  const rows = Object.entries(settings).map(([name, { unit, default: fallback, help }]) => {
    // The number of processors differs between machines.
    const shown =
      name === "duckdb-threads" ? "all processors but one" : fallback === "" ? "" : `\`${fallback}\``;
    return `| \`--${name}\` | \`${environmentName(name)}\` | ${unit.replaceAll("|", ", ")} | ${shown} | ${help} |\n`;
  });
  const expected = `\n| flag | environment | value | default | |\n|---|---|---|---|---|\n${rows.join("")}\n`;
  if (process.env.FLAGKEEP_UPDATE_README) await Bun.write(path, readme.replace(table, expected));
  else expect(table.exec(readme)?.[0]).toBe(expected);
});
