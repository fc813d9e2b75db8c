/** Embeds the page in the executable; used by `build.ts` only. */

import type { BunPlugin } from "bun";
import { type BundledFile, bundlePage } from "./bundle.ts";
import { shrinkScript } from "./shrink.ts";

const fileForms = ["gzip", "brotli"] as const satisfies readonly (keyof BundledFile)[];

export interface PagePlugin {
  plugin: BunPlugin;
  /** @throws if the page is not embedded: a filter that matches nothing fails silently. */
  assertEmbedded: () => void;
}

/** Bundles the page and creates the plugin that embeds it in place of `files.ts`. */
export async function pagePlugin(): Promise<PagePlugin> {
  const files = await bundlePage(shrinkScript);
  let isModuleUsed = false;
  let embedded = 0;
  const plugin: BunPlugin = {
    name: "console-in-one-file",
    setup(build) {
      // The filter sees the import specifier as written, not the resolved path.
      build.onResolve({ filter: /^\.\/files\.ts$/ }, ({ importer }) =>
        importer.endsWith("src/console/routes.ts") ? { path: "files", namespace: "console" } : undefined,
      );
      build.onLoad({ filter: /^files$/, namespace: "console" }, () => {
        isModuleUsed = true;
        return { contents: moduleSource(files), loader: "js" };
      });
      build.onResolve({ filter: /^flagkeep:console\// }, ({ path }) => ({
        path: path.slice("flagkeep:".length),
        namespace: "console-file",
      }));
      build.onLoad({ filter: /./, namespace: "console-file" }, ({ path }) => {
        const [, index = "", form = "gzip"] = path.split("/");
        embedded++;
        return { contents: files[Number(index)]![form as (typeof fileForms)[number]], loader: "file" };
      });
    },
  };
  return {
    plugin,
    assertEmbedded: () => {
      if (!isModuleUsed || embedded !== files.length * fileForms.length) {
        throw new Error("The console is not in the executable: the plugin that embeds it was not called.");
      }
    },
  };
}

/** Source of a module with the shape of `files.ts`. */
function moduleSource(files: readonly BundledFile[]): string {
  const imports = files.flatMap((_, index) =>
    fileForms.map((form) => `import ${form}${index} from "flagkeep:console/${index}/${form}";`),
  );
  const entries = files.map(({ path }, index) => {
    const forms = fileForms.map((form) => `${form}: await Bun.file(${form}${index}).bytes()`).join(", ");
    return `{ path: ${JSON.stringify(path)}, ${forms} }`;
  });
  return `${imports.join("\n")}
let files;
export async function pageFiles() {
  files ??= [${entries.join(",\n")}];
  return files;
}
`;
}
