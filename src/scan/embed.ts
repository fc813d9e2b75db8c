/** Puts the scanner's program into the executable: used by `build.ts` alone. */

import type { BunPlugin } from "bun";
import { program } from "./program.ts";

/** A plugin of the compile step that takes the place of `program.ts`, and a check that it did. */
export function scannerPlugin(): { plugin: BunPlugin; assertEmbedded: () => void } {
  const text = program().toBase64();
  let isUsed = false;
  const plugin: BunPlugin = {
    name: "scanner-in-one-file",
    setup(build) {
      build.onResolve({ filter: /^\.\/program\.ts$/ }, ({ importer }) =>
        importer.endsWith("src/scan/instance.ts") ? { path: "program", namespace: "scanner" } : undefined,
      );
      build.onLoad({ filter: /^program$/, namespace: "scanner" }, () => {
        isUsed = true;
        return { contents: `export const program = () => Uint8Array.fromBase64("${text}");`, loader: "js" };
      });
    },
  };
  const assertEmbedded = () => {
    if (!isUsed) throw new Error("The scanner is not in the executable: its plugin was not called.");
  };
  return { plugin, assertEmbedded };
}
