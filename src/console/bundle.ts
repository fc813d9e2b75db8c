/**
 * Bundles the page for browsers, once: at the build (`build.ts`), or at the first request when Flagkeep runs from its
 * sources (`files.ts`).
 */

import { basename, join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import type { BunPlugin } from "bun";

/** A file of the page in its two stored encodings; clients that accept neither get it decompressed. */
export interface BundledFile {
  /** Path under `/console/`; the page itself is `index.html`. */
  path: string;
  gzip: Uint8Array;
  brotli: Uint8Array;
}

/** Minifies a script. `isModule`: top-level names are module-scoped. */
type Shrink = (code: string, isModule: boolean) => Promise<string>;

const pageFolder = join(import.meta.dir, "page");
/** Runs before the first paint. A separate script, because the policy forbids inline scripts. */
const earlyEntry = "prefetch-entry.ts";
/** Previews surveys in a frame with its own policy. */
const frameEntry = "survey-frame.ts";

/**
 * The files of the page, minified and compressed.
 *
 * @param shrink minifies more than the bundler does
 * @throws if the page does not compile.
 */
export async function bundlePage(shrink: Shrink = async (code) => code): Promise<BundledFile[]> {
  const fonts = new Map<string, string>();
  const [page, early, frame] = await Promise.all([
    bundle("index.html", "esm", shrink, fonts),
    bundle(earlyEntry, "iife", shrink),
    bundle(frameEntry, "iife", shrink),
  ]);
  // In a fixed order, not that in which the bundler met them: the same sources make the same executable.
  const fontsRead = [...fonts.keys()].sort().map(async (path) => ({
    path,
    bytes: await Bun.file(fonts.get(path)!).bytes(),
  }));
  const html = page.find(({ path }) => path.endsWith(".html"))!;
  const earlyScript = early.find(({ path }) => path.endsWith(".js"))!;
  const text = new TextDecoder().decode(html.bytes);
  const styleSheets = new Set([...text.matchAll(/\/console\/([^"]+\.css)/g)].map(([, path]) => path!));
  const withScript = text.replace("<head>", `<head><script src="/console/${earlyScript.path}"></script>`);
  return [
    { path: "index.html", bytes: new TextEncoder().encode(withScript) },
    ...early,
    ...frame,
    { path: "survey-preview.html", bytes: new TextEncoder().encode(framePage(frame[0]!.path)) },
    ...(await Promise.all(fontsRead)),
    // Styles of lazily loaded parts are already in the page's main sheet; the bundler emits them a second time.
    ...page.filter(({ path }) => path !== html.path && (!path.endsWith(".css") || styleSheets.has(path))),
  ].map(({ path, bytes }) => ({
    path,
    // Slower than the default compressor, output 3 % smaller: it runs once.
    gzip: Bun.gzipSync(bytes, { library: "libdeflate", level: 12 }),
    brotli: new Uint8Array(
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    ),
  }));
}

const framePage = (script: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>Survey</title><div id="survey"></div><script src="/console/${script}"></script></html>`;

async function bundle(
  entry: string,
  format: "esm" | "iife",
  shrink: Shrink,
  fonts?: Map<string, string>,
): Promise<{ path: string; bytes: Uint8Array<ArrayBuffer> }[]> {
  const result = await Bun.build({
    entrypoints: [join(pageFolder, entry)],
    target: "browser",
    format,
    splitting: format === "esm",
    minify: true,
    publicPath: "/console/",
    naming: {
      entry: "a/[name]-[hash].[ext]",
      chunk: "a/[name]-[hash].[ext]",
      asset: "a/[name]-[hash].[ext]",
    },
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [singleDialect, ...(fonts ? [fontFiles(fonts)] : [])],
  });
  if (!result.success) throw new AggregateError(result.logs, "The console does not compile.");
  return await Promise.all(
    result.outputs.map(async (output) => ({
      path: output.path.replace(/^\.?\//, ""),
      bytes: output.path.endsWith(".js")
        ? new TextEncoder().encode(await shrink(await output.text(), format === "esm"))
        : new Uint8Array(await output.arrayBuffer()),
    })),
  );
}

/**
 * Keeps fonts as files, which the policy requires and which load only when they are needed: the bundler writes them
 * into the style sheet.
 * @param fonts receives the path of each font and its source
 */
const fontFiles = (fonts: Map<string, string>): BunPlugin => ({
  name: "font-files",
  setup(build) {
    build.onResolve({ filter: /\.woff2$/ }, async ({ path }) => {
      const source = Bun.resolveSync(path, pageFolder);
      const hash = Bun.hash.xxHash64(await Bun.file(source).bytes()).toString(36);
      const name = `a/${basename(path, ".woff2")}-${hash}.woff2`;
      fonts.set(name, source);
      return { path: `/console/${name}`, external: true };
    });
  },
});

/**
 * The editor's SQL package ends with the keywords of eight other databases, built at run time from parts, so that the
 * bundler cannot remove them: 6 kB of the page's budget.
 */
const singleDialect: BunPlugin = {
  name: "own-dialect-only",
  setup(build) {
    build.onLoad({ filter: /@codemirror\/lang-sql\/dist\/index\.js$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const contents = text.replace(/^const PostgreSQL = [\s\S]*$/m, "export { SQLDialect, sql };");
      return { contents, loader: "js" };
    });
  },
};
