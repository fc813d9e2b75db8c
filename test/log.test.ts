/** What the log looks like to people: a line for each entry, whatever clients have put into it. */

import { expect, test } from "bun:test";
import { createLog } from "../src/log.ts";

function getLines(write: (log: ReturnType<typeof createLog>) => void): string[] {
  const written: string[] = [];
  write(createLog("info", "text", { write: (line) => written.push(line) }));
  const lines = written.join("").split("\n");
  return lines.map((line) => line.replace(/^\S+ /, ""));
}

test("an entry is a line with its fields", () => {
  const log = getLines((to) => to.info({ url: "http://127.0.0.1:8000", took: { ms: 3 } }, "listening"));
  expect(log).toEqual(['INFO  listening url=http://127.0.0.1:8000 took={"ms":3}', ""]);
});

test("text from clients creates no log line and no terminal control sequence", () => {
  const names = ["a\n2026-01-01T00:00:00.000Z ERROR forged", "\u001b[2Jb", "c\u009b31m", "d\u2028e"];
  const log = getLines((to) => names.forEach((event) => void to.warn({ event }, "a spike began")));
  expect(log).toEqual([
    String.raw`WARN  a spike began event="a\n2026-01-01T00:00:00.000Z ERROR forged"`,
    String.raw`WARN  a spike began event="\u001b[2Jb"`,
    'WARN  a spike began event="c\ufffd31m"',
    'WARN  a spike began event="d\ufffde"',
    "",
  ]);
});
