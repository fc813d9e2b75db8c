/**
 * Compiles the scanner to WebAssembly, cached by its source. `build.ts` embeds the module in the executable instead.
 */

import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const source = join(import.meta.dir, "assembly");
const compiler = join(require.resolve("assemblyscript/package.json"), "..");
const cache = join(compiler, "../.cache/flagkeep");
const options = ["-O3", "--enable", "simd", "--noAssert", "--runtime", "stub", "--use", "abort="];
/** `assembly/` uses the memory below for its fixed buffers. */
const memoryBase = ["--memoryBase", "65536", "--zeroFilledMemory"];

/** @throws the source does not compile */
export function wasmModule(): Uint8Array<ArrayBuffer> {
  const files = readdirSync(source).sort();
  const texts = files.map((name) => readFileSync(join(source, name)));
  const { version } = require("assemblyscript/package.json");
  const key = Bun.hash(
    Buffer.concat([...texts, Buffer.from([version, ...options, ...memoryBase].join(" "))]),
  );
  const path = join(cache, `scanner-${key.toString(16)}.wasm`);
  const known = contents(path);
  if (known !== undefined) return known;
  mkdirSync(cache, { recursive: true });
  const created = `${path}.${process.pid}-${Bun.randomUUIDv7()}`;
  const command = [
    join(compiler, "bin/asc.js"),
    join(source, "index.ts"),
    ...options,
    ...memoryBase,
    "-o",
    created,
  ];
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...command]);
  if (exitCode !== 0) throw new Error(`The scanner cannot be compiled: ${stderr}`);
  renameSync(created, path);
  return contents(path)!;
}

function contents(path: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return new Uint8Array(readFileSync(path));
  } catch {
    return undefined;
  }
}
