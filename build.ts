/**
 * Compiles the command line and the server into one executable: `bun build.ts [--outfile dist/flagkeep]`.
 *
 * Cross-compilation needs three more options, as in `deploy/release.ts`: `--target linux-arm64`, `--runtime` with
 * Bun's executable for that machine, and `--bindings` with the folder of DuckDB's package for it.
 */

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import packageJson from "./package.json";
import { patchedClient } from "./src/cluster/patched-client.ts";
import { pagePlugin } from "./src/console/embed.ts";
import { hashOfFile } from "./src/events/duckdb/native-folder.ts";
import { scannerPlugin } from "./src/scan/embed.ts";

const { values } = parseArgs({
  options: {
    outfile: { type: "string", default: "dist/flagkeep" },
    target: { type: "string" },
    runtime: { type: "string" },
    bindings: { type: "string" },
  },
});
const require = createRequire(import.meta.url);
const hostBindings = `@duckdb/node-bindings-${process.platform}-${process.arch}/package.json`;
const bindings = values.bindings ?? dirname(require.resolve(hostBindings));
const addonPath = join(bindings, "duckdb.node");
const libraryPath = join(bindings, "libduckdb.so");

async function embedded(path: string) {
  const bytes = await Bun.file(path).bytes();
  return { bytes, size: bytes.length, xxhash: hashOfFile(path) };
}
const addon = await embedded(addonPath);
const library = await embedded(libraryPath);

const page = await pagePlugin();
const client = patchedClient();
const scanner = scannerPlugin();
const duckdb = require("@duckdb/node-bindings");
const result = await Bun.build({
  // The others are threads of the first, which finds them by these paths.
  entrypoints: ["cli/main.ts", "src/ingestion/large-bodies-thread.ts", "src/journal/columnar-thread.ts"],
  compile: {
    outfile: values.outfile,
    ...(values.target === undefined ? {} : { target: `bun-${values.target}` as Bun.Build.CompileTarget }),
    ...(values.runtime === undefined ? {} : { executablePath: values.runtime }),
    // Settings are flags and variables: files that happen to lie where a user calls it do not count.
    autoloadDotenv: false,
    autoloadBunfig: false,
  },
  // A process reads and keeps the parts of the program that it imports, and no others.
  format: "esm",
  splitting: true,
  // Starts in half the time: nothing has to be parsed.
  bytecode: true,
  // Names stay readable: they are the span and function names in traces and stack traces.
  minify: { whitespace: true, syntax: true, identifiers: false },
  define: {
    FLAGKEEP_VERSION: JSON.stringify(packageJson.version),
    FLAGKEEP_DUCKDB_VERSION: JSON.stringify(String(duckdb.library_version()).replace(/^v/, "")),
    FLAGKEEP_DUCKDB_FILES: JSON.stringify({
      addon: { bytes: addon.size, xxhash: addon.xxhash },
      library: { bytes: library.size, xxhash: library.xxhash },
    }),
  },
  plugins: [
    page.plugin,
    client.plugin,
    scanner.plugin,
    {
      name: "duckdb-in-one-file",
      setup(build) {
        build.onResolve({ filter: /^@duckdb\/node-bindings$/ }, () => ({
          path: join(import.meta.dir, "src/events/duckdb/duckdb-native.ts"),
        }));
        // Under its own name the bundler would embed only the addon, without the library next to it.
        build.onResolve({ filter: /^flagkeep:duckdb\.addon$/ }, () => ({
          path: "duckdb.addon",
          namespace: "duckdb",
        }));
        build.onLoad({ filter: /^duckdb\.addon$/, namespace: "duckdb" }, () => ({
          contents: addon.bytes,
          loader: "file",
        }));
        build.onResolve({ filter: /^flagkeep:libduckdb\.so$/ }, () => ({ path: libraryPath }));
      },
    },
  ],
});
for (const message of result.logs) console.error(message);
if (!result.success) process.exit(1);
page.assertEmbedded();
client.assertPatched();
scanner.assertEmbedded();
console.log(`${values.outfile}: ${Math.round((Bun.file(values.outfile).size / 1e6) * 10) / 10} MB`);
