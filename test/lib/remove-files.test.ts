/** Removing large files: names, further names, what is no file. */

import { describe, expect, test } from "bun:test";
import {
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { deleteIncrementally, unlinkIncrementally } from "../../src/lib/remove-files.ts";
import { temporaryFolder, until } from "../support/server.ts";

const MiB = 1024 * 1024;
const sizes = [0, 1, 4 * MiB, 4 * MiB + 1, 9 * MiB];

describe("removing files sparingly", () => {
  for (const size of sizes)
    test(`a file of ${size} bytes`, async () => {
      const path = join(temporaryFolder(), "file");
      writeFileSync(path, new Uint8Array(size));
      await deleteIncrementally(path);
      expect(existsSync(path)).toBe(false);
    });

  test("the name is removed first, the space step by step", async () => {
    const path = join(temporaryFolder(), "file");
    writeFileSync(path, new Uint8Array(20 * MiB));
    const file = openSync(path, "r");
    const seen = new Set<number>();
    let isDone = false;
    const removing = deleteIncrementally(path).then(() => {
      isDone = true;
    });
    while (!isDone) {
      const { size, nlink } = fstatSync(file);
      if (nlink === 0) seen.add(size);
      await Bun.sleep(1);
    }
    await removing;
    expect([...seen].some((size) => size > 0 && size < 20 * MiB)).toBe(true);
    expect(fstatSync(file).size).toBeLessThanOrEqual(4 * MiB);
  });

  test("a file with another name keeps its content there", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "copies", "segment");
    const other = join(folder, "segment");
    mkdirSync(join(folder, "copies"));
    writeFileSync(path, new Uint8Array(9 * MiB));
    linkSync(path, other);
    await deleteIncrementally(join(folder, "copies"));
    expect([existsSync(path), statSync(other).size]).toEqual([false, 9 * MiB]);
  });

  test("a folder is removed with its contents, targets of links stay", async () => {
    const folder = temporaryFolder();
    const outside = join(folder, "outside");
    mkdirSync(join(folder, "work", "deep"), { recursive: true });
    writeFileSync(outside, new Uint8Array(9 * MiB));
    symlinkSync(outside, join(folder, "work", "link"));
    writeFileSync(join(folder, "work", "deep", "large"), new Uint8Array(9 * MiB));
    await deleteIncrementally(join(folder, "work"));
    expect([existsSync(join(folder, "work")), statSync(outside).size]).toEqual([false, 9 * MiB]);
  });

  test("all names are removed before space is freed; also with more files than are open at a time", async () => {
    const folder = join(temporaryFolder(), "work");
    mkdirSync(folder);
    for (let n = 0; n < 70; n++) {
      writeFileSync(join(folder, String(n)), "");
      truncateSync(join(folder, String(n)), 5 * MiB);
    }
    const file = openSync(join(folder, readdirSync(folder).at(-1)!), "r");
    const free = await unlinkIncrementally(folder);
    expect([existsSync(folder), fstatSync(file).size]).toEqual([false, 5 * MiB]);
    await free();
    expect(fstatSync(file).size).toBeLessThan(5 * MiB);
  });

  test("if one file cannot be removed, the space of the others is freed", async () => {
    const folder = join(temporaryFolder(), "work");
    const small = join(folder, "small");
    mkdirSync(small, { recursive: true });
    writeFileSync(join(folder, "large"), new Uint8Array(9 * MiB));
    for (let n = 0; n < 2_000; n++) writeFileSync(join(small, String(n)), "");
    const file = openSync(join(folder, "large"), "r");
    const removing = unlinkIncrementally(folder).then(
      () => "removed",
      ({ code }) => code,
    );
    // Comes into the folder after that was read.
    await until(() => readdirSync(small).length < 2_000, "the folder was read");
    writeFileSync(join(small, "late"), "");
    expect(await removing).toBe("ENOTEMPTY");
    const { nlink, size } = fstatSync(file);
    if (nlink === 0) expect(size).toBeLessThanOrEqual(4 * MiB);
  });

  test("a missing file counts as removed", async () => {
    await deleteIncrementally(join(temporaryFolder(), "nothing"));
  });
});
