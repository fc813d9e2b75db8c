/** The browser of a test file. */

import { afterAll, beforeAll } from "bun:test";
import type { Browser } from "playwright-core";
import { startBrowser } from "./browser.ts";

export let browser: Browser;

/** Starts `browser` for the tests of a file or of a `describe`. */
export function useBrowser(): void {
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(async () => await browser?.close());
}
