/** Chromium for tests of the browser library; machines without it skip those tests, visibly. */

import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { isAllowed } from "./skipped.ts";

const places = [
  process.env.FLAGKEEP_TEST_CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** The browser's executable; undefined when the machine has none. */
export const chromiumPath = isAllowed("chromium")
  ? places.find((path) => path !== undefined && existsSync(path))
  : undefined;

const quiet = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a browser with a profile of its own, which goes away with it. */
export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: chromiumPath, headless: true, args: quiet });
}
