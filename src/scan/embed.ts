/** Embeds the scanner's WebAssembly module in the executable; used only by `build.ts`. */

import type { BunPlugin } from "bun";
import { wasmModule } from "./wasm-module.ts";

/** A plugin for the compile step that replaces `wasm-module.ts`, and a check that it did. */
export function scannerPlugin(): { plugin: BunPlugin; assertEmbedded: () => void } {
  const text = wasmModule().toBase64();
  let isUsed = false;
  const plugin: BunPlugin = {
    name: "scanner-in-one-file",
    setup(build) {
      build.onResolve({ filter: /^\.\/wasm-module\.ts$/ }, ({ importer }) =>
        importer.endsWith("src/scan/instance.ts") ? { path: "wasm-module", namespace: "scanner" } : undefined,
      );
      build.onLoad({ filter: /^wasm-module$/, namespace: "scanner" }, () => {
        isUsed = true;
        return {
          contents: `export const wasmModule = () => Uint8Array.fromBase64("${text}");`,
          loader: "js",
        };
      });
    },
  };
  const assertEmbedded = () => {
    if (!isUsed) throw new Error("The scanner is not in the executable: its plugin was not called.");
  };
  return { plugin, assertEmbedded };
}
