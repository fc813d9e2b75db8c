/** The progress of an import on the disk: every file, small files in one log, and what a kill leaves. */

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FileProgress, ImportProgress, noProgress } from "../../src/import/progress-file.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-progress-"));
  folders.push(folder);
  return folder;
}
const open = (folder: string) => new ImportProgress(folder, 1, "/events", {});
const at = (line: number): FileProgress => ({ ...noProgress(), line });

/** The log of small files, below the folder of the import. */
function getLog(folder: string): string {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).find(
    ({ name }) => name === "small-files",
  );
  return join(found!.parentPath, found!.name);
}

test("small and large files are read back by a later run; the latest entry counts", () => {
  const folder = newFolder();
  {
    using progress = open(folder);
    for (const line of [1, 2, 3]) progress.write("small", at(line), { isSmall: true });
    progress.write("other", { ...at(7), isDone: true }, { isSmall: true });
    progress.write("large", at(5_000));
  }
  using later = open(folder);
  expect(later.read("small").line).toBe(3);
  expect(later.read("other")).toMatchObject({ line: 7, isDone: true });
  expect(later.read("large").line).toBe(5_000);
  expect(later.read("unknown")).toEqual(noProgress());
});

test("a file that grew out of the log counts by its own file", () => {
  const folder = newFolder();
  {
    using progress = open(folder);
    progress.write("one", at(900), { isSmall: true });
    progress.write("one", at(1_200));
  }
  using later = open(folder);
  expect(later.read("one").line).toBe(1_200);
});

test("a cut-off last line costs nothing but itself, also when others follow", () => {
  const folder = newFolder();
  {
    using progress = open(folder);
    progress.write("one", at(1), { isSmall: true });
    progress.write("two", at(2), { isSmall: true });
  }
  const log = getLog(folder);
  writeFileSync(log, readFileSync(log, "utf8").slice(0, -9));
  {
    using progress = open(folder);
    expect(progress.read("one").line).toBe(1);
    expect(progress.read("two").line).toBe(0);
    progress.write("three", at(3), { isSmall: true });
  }
  using later = open(folder);
  expect([later.read("one").line, later.read("three").line]).toEqual([1, 3]);
});

test("forgetting leaves nothing, and the next import starts over", () => {
  const folder = newFolder();
  using progress = open(folder);
  progress.write("one", at(1), { isSmall: true });
  progress.forget();
  expect(progress.read("one")).toEqual(noProgress());
  progress.write("two", at(2), { isSmall: true });
  using later = open(folder);
  expect([later.read("one").line, later.read("two").line]).toEqual([0, 2]);
});
