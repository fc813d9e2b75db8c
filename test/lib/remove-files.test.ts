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
import { removeFileSparingly, removeSparingly, unlinkSparingly } from "../../src/lib/remove-files.ts";
import { temporaryFolder } from "../support/appliance.ts";

const MiB = 1024 * 1024;
const sizes = [0, 1, 4 * MiB, 4 * MiB + 1, 9 * MiB];

describe("removing files sparingly", () => {
  for (const size of sizes)
    test(`a file of ${size} bytes`, async () => {
      const path = join(temporaryFolder(), "file");
      writeFileSync(path, new Uint8Array(size));
      await removeFileSparingly(path);
      expect(existsSync(path)).toBe(false);
    });

  test("the name goes first, the room step by step", async () => {
    const path = join(temporaryFolder(), "file");
    writeFileSync(path, new Uint8Array(20 * MiB));
    const file = openSync(path, "r");
    const seen = new Set<number>();
    let isDone = false;
    const removing = removeFileSparingly(path).then(() => {
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
    const [path, other] = [join(folder, "copies", "segment"), join(folder, "segment")];
    mkdirSync(join(folder, "copies"));
    writeFileSync(path, new Uint8Array(9 * MiB));
    linkSync(path, other);
    await removeSparingly(join(folder, "copies"));
    expect([existsSync(path), statSync(other).size]).toEqual([false, 9 * MiB]);
  });

  test("a folder goes with what is in it, what a link leads to stays", async () => {
    const folder = temporaryFolder();
    const outside = join(folder, "outside");
    mkdirSync(join(folder, "work", "deep"), { recursive: true });
    writeFileSync(outside, new Uint8Array(9 * MiB));
    symlinkSync(outside, join(folder, "work", "link"));
    writeFileSync(join(folder, "work", "deep", "large"), new Uint8Array(9 * MiB));
    await removeSparingly(join(folder, "work"));
    expect([existsSync(join(folder, "work")), statSync(outside).size]).toEqual([false, 9 * MiB]);
  });

  test("all names are gone before the room is given back; of more files than are kept open, too", async () => {
    const folder = join(temporaryFolder(), "work");
    mkdirSync(folder);
    for (let n = 0; n < 70; n++) {
      writeFileSync(join(folder, String(n)), "");
      truncateSync(join(folder, String(n)), 5 * MiB);
    }
    const file = openSync(join(folder, readdirSync(folder)[0] as string), "r");
    const free = await unlinkSparingly(folder);
    expect([existsSync(folder), fstatSync(file).size]).toEqual([false, 5 * MiB]);
    await free();
    expect(fstatSync(file).size).toBeLessThan(5 * MiB);
  });

  test("what is not there is removed; a folder is no file", async () => {
    const folder = temporaryFolder();
    await removeSparingly(join(folder, "nothing"));
    await removeFileSparingly(join(folder, "nothing"));
    expect(removeFileSparingly(folder)).rejects.toThrow();
    expect(existsSync(folder)).toBe(true);
  });
});
