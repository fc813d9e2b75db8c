/**
 * Bundles the page for browsers, once: at the build (`build.ts`), or at the first request when Flagkeep runs from its
 * sources (`files.ts`).
 */

import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import type { BunPlugin } from "bun";

/** One file of the page in the two forms in which it is kept; who takes neither gets it unpacked. */
export interface BundledFile {
  /** Path under `/console/`; the page itself is `index.html`. */
  path: string;
  gzip: Uint8Array;
  brotli: Uint8Array;
}

const pageFolder = join(import.meta.dir, "page");
/** Set before the first paint: a script of its own, for the policy allows none inside the page. */
const earlyEntry = "early.ts";

/**
 * The files of the page, minified and compressed.
 *
 * @throws when the page does not compile.
 */
export async function bundlePage(): Promise<BundledFile[]> {
  const [page, early] = await Promise.all([bundle("index.html", "esm"), bundle(earlyEntry, "iife")]);
  const html = page.find(({ path }) => path.endsWith(".html"))!;
  const earlyScript = early.find(({ path }) => path.endsWith(".js"))!;
  const text = new TextDecoder().decode(html.bytes);
  const styleSheets = new Set([...text.matchAll(/\/console\/([^"]+\.css)/g)].map(([, path]) => path!));
  const withScript = text.replace("<head>", `<head><script src="/console/${earlyScript.path}"></script>`);
  return [
    { path: "index.html", bytes: new TextEncoder().encode(withScript) },
    ...early,
    // The style of parts that load late is in the page's own sheet already; the bundler writes it once more.
    ...page.filter(({ path }) => path !== html.path && (!path.endsWith(".css") || styleSheets.has(path))),
  ].map(({ path, bytes }) => ({
    path,
    // A slower packer than the usual one, whose output is 3 % smaller: it runs once.
    gzip: Bun.gzipSync(bytes, { library: "libdeflate", level: 12 }),
    brotli: new Uint8Array(
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    ),
  }));
}

async function bundle(
  entry: string,
  format: "esm" | "iife",
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
    plugins: [ownDialectOnly],
  });
  if (!result.success) throw new AggregateError(result.logs, "The console does not compile.");
  return await Promise.all(
    result.outputs.map(async (output) => ({
      path: output.path.replace(/^\.?\//, ""),
      bytes: new Uint8Array(await output.arrayBuffer()),
    })),
  );
}

/**
 * The editor's SQL ends with the words of eight other databases. The bundler cannot tell that nothing uses them, for they
 * are put together from parts: 6 kB of what the page may have.
 */
const ownDialectOnly: BunPlugin = {
  name: "own-dialect-only",
  setup(build) {
    build.onLoad({ filter: /@codemirror\/lang-sql\/dist\/index\.js$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const contents = text.replace(/^const PostgreSQL = [\s\S]*$/m, "export { SQLDialect, sql };");
      return { contents, loader: "js" };
    });
  },
};
