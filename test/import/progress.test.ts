import { expect, test } from "bun:test";
import { Progress } from "../../cli/progress.ts";

/** Takes 100 records of 1 KiB each every 100 ms. */
function shown(isTTY: boolean, totalBytes: number | undefined, earlier = 0): string[] {
  let now = 0;
  const texts: string[] = [];
  const output = { isTTY, columns: 200, write: (text: string) => texts.push(text) };
  const progress = new Progress(totalBytes, output, () => now);
  progress.addBytes(earlier * 1024);
  progress.addRecords(earlier, true);
  for (; now < 12_000; now += 100) {
    progress.addBytes(100 * 1024);
    progress.addRecords(100, false);
  }
  progress.end();
  return texts;
}

test("on a terminal a bar with rate and remaining time, removed at the end", () => {
  const texts = shown(true, 20_000 * 1024);
  expect(texts.length).toBeGreaterThan(40);
  const middle = texts.find((text) => text.includes("50 %"))!;
  expect(middle).toContain("█".repeat(12) + "░".repeat(12));
  expect(middle).toContain("10100 records");
  expect(middle).toMatch(/10\d\d\/s/);
  expect(middle).toContain("9.9 MiB of 19.5 MiB  9 s left");
  expect(middle).not.toContain("\n");
  expect(texts.at(-1)).toBe("\r\x1b[K");
});

test("elsewhere a line every few seconds", () => {
  expect(shown(false, 20_000 * 1024)).toEqual([
    "25 %  5100 records  1020/s  5.0 MiB of 19.5 MiB  14 s left\n",
    "50 %  10100 records  1010/s  9.9 MiB of 19.5 MiB  9 s left\n",
  ]);
});

test("of unknown size: no share and no time left; what earlier runs did is not in the rate", () => {
  expect(shown(false, undefined, 50_000)[0]).toBe("55100 records  1020/s  53.8 MiB\n");
  expect(shown(false, 70_000 * 1024, 50_000)[0]).toContain("1020/s  53.8 MiB of 68.4 MiB  14 s left");
});
