/** The console in a real browser, over the compiled executable. */

import { beforeAll, expect } from "bun:test";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import type { ServerProcess } from "../support/server.ts";
import { browser, useBrowser } from "../support/use-browser.ts";
import { server, useServer } from "../support/use-server.ts";

// The tests themselves are skipped: `describe.skipIf` says nothing by itself.
if (chromiumPath === undefined) console.log("SKIPPED the console in a browser: no Chromium here");

const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export const widths = [1280, 360] as const;
export const themes = ["light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** A page that remembers all that must not happen: errors, violations of the policy, requests to elsewhere. */
export interface WatchedPage {
  page: Page;
  context: BrowserContext;
  /** What went wrong so far. */
  errors: string[];
}

export interface PageOptions {
  url: string;
  width?: number;
  theme?: Theme;
  /** Status codes of answers that a test provokes: the browser logs each as an error. */
  expectedStatus?: readonly number[];
}

/** Opens a page in a profile of its own. */
export async function openPage(browser: Browser, options: PageOptions): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.width === 360 ? 740 : 900 },
    colorScheme: options.theme ?? "light",
    reducedMotion: "reduce",
    baseURL: options.url,
  });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const errors: string[] = [];
  const expected = options.expectedStatus ?? [];
  page.on("pageerror", (error) => errors.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    const isExpected = expected.some((status) => text.includes(`status of ${status}`));
    if (message.type() === "error" && !isExpected) errors.push(`console: ${text}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(options.url) && !url.startsWith("data:") && !url.startsWith("blob:")) {
      errors.push(`request to elsewhere: ${url}`);
    }
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      const { violatedDirective, blockedURI } = event as unknown as Record<string, string>;
      console.error(`policy: ${violatedDirective} ${blockedURI}`);
    });
  });
  return { page, context, errors };
}

/** What axe finds on the page as it stands (WCAG 2.0 to 2.2, A and AA). */
export async function axeFindings(page: Page): Promise<string[]> {
  // Not as a script element: the policy would reject it, rightly.
  await page.evaluate(await Bun.file(axeSource).text());
  return await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (where: Document, how: object) => Promise<AxeResults> } })
      .axe;
    const { violations } = await axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    });
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, any }) => `${html} ${any[0]?.message ?? ""}`).join(" | ")}`,
    );
  });
}

/** Neither theme nor width has a finding, and nothing scrolls sideways on a phone. */
export async function looksRight(page: Page): Promise<void> {
  for (const theme of themes) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await axeFindings(page)).toEqual([]);
  }
  const size = page.viewportSize()!;
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  // Above the scrolled page waits the hidden link "Skip to content", which axe takes for a neighbor.
  await page.evaluate(() => scrollTo(0, 0));
  expect(await axeFindings(page)).toEqual([]);
  await page.setViewportSize(size);
}

interface AxeResults {
  violations: { id: string; nodes: { html: string; any: { message: string }[] }[] }[];
}

export const password = "correct horse battery staple";

/** The cookie of the owner, who follows the one-time link of `init`. */
export async function ownerCookie(server: ServerProcess): Promise<string> {
  const token = server.initialized.console_url.split("#")[1];
  const answer = await fetch(`${server.url}/api/session/setup/`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
    body: JSON.stringify({ token, password, first_name: "Ann" }),
  });
  if (answer.status !== 201) throw new Error(`setup: ${answer.status} ${await answer.text()}`);
  return answer.headers.get("set-cookie")!.split(";")[0]!;
}

/** Opens a page as a user who is signed in. */
export async function openSignedIn(
  browser: Browser,
  cookie: string,
  options: PageOptions,
): Promise<WatchedPage> {
  const opened = await openPage(browser, options);
  const [name, value] = cookie.split("=") as [string, string];
  await opened.context.addCookies([{ name, value, url: options.url, httpOnly: true, sameSite: "Strict" }]);
  return opened;
}

/** Sets a filter of a list: a chip that opens its choices. */
export async function chooseFilter(page: Page, label: string, choice: string): Promise<void> {
  await page
    .locator(".chip-name")
    .filter({ hasText: new RegExp(`^${label}(: |$)`) })
    .click();
  await page.getByRole("dialog", { name: label }).getByRole("option", { name: choice, exact: true }).click();
}

/** Chooses in a field whose list has a search. */
export async function chooseIn(within: Page | Locator, label: string, choice: string): Promise<void> {
  await within.getByRole("button", { name: new RegExp(`^${label}: `) }).click();
  const list = within.getByRole("dialog", { name: label, exact: true });
  await list.getByRole("option", { name: choice, exact: true }).click();
}

/** The session of the server's owner, after `useConsole`. */
export let cookie: string;

/** Starts `server` and `browser` for the tests of a `describe`. */
export function useConsole(...[options]: Parameters<typeof useServer>): void {
  useBrowser();
  useServer(options);
  beforeAll(async () => {
    cookie = await ownerCookie(server);
  });
}

/** The console with its owner signed in. */
export const openConsole = (options: Omit<PageOptions, "url"> = {}) =>
  openSignedIn(browser, cookie, { url: server.url, ...options });

/** Starts both and returns what tests of a page need. */
export function ownersBrowser(args: readonly string[] = []) {
  useConsole({ args });
  /** API path within the project. */
  const path = (rest: string) => `/api/projects/${server.initialized.project.id}/${rest}`;
  return {
    get server() {
      return server;
    },
    path,
    /** Creates an object of the project. */
    async post<Answer = { id: number }>(rest: string, body: object): Promise<Answer> {
      const answer = await server.api(path(rest), { method: "POST", body });
      expect(answer.status).toBe(201);
      return (await answer.json()) as Answer;
    },
    /** Gives the owner's password again: for ten minutes nothing asks for it. */
    async confirm(): Promise<void> {
      const answer = await fetch(`${server.url}/api/session/confirm/`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1", Cookie: cookie },
        body: JSON.stringify({ password }),
      });
      if (!answer.ok) throw new Error(`confirm: ${answer.status} ${await answer.text()}`);
    },
    /** The console with its owner signed in. */
    open: (...expectedStatus: number[]) => openConsole({ expectedStatus }),
  };
}
