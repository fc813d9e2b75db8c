/**
 * The files of the page as `routes.ts` asks for them.
 *
 * In the executable `build.ts` puts a module of the same form in place of this one, with the files inside; this one
 * serves those who run from the sources.
 */

import type { BundledFile } from "./bundle.ts";

let bundled: Promise<BundledFile[]> | undefined;

/** All files of the page; the same ones each time. */
export async function pageFiles(): Promise<readonly BundledFile[]> {
  // Imported late: the bundler is of no use inside the executable, which has no sources.
  bundled ??= import("./bundle.ts").then(({ bundlePage }) => bundlePage());
  return await bundled;
}
