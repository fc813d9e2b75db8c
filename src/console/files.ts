/**
 * The files of the page for `routes.ts`.
 *
 * In the executable `build.ts` replaces this module with one of the same shape that contains the files; this one is
 * used when running from the sources.
 */

import type { BundledFile } from "./bundle.ts";

let bundled: Promise<BundledFile[]> | undefined;

/** All files of the page, bundled once. */
export async function pageFiles(): Promise<readonly BundledFile[]> {
  // Imported late: the executable has no sources to bundle.
  bundled ??= import("./bundle.ts").then(({ bundlePage }) => bundlePage());
  return await bundled;
}
