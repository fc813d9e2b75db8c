/** The log of changes: who is named where no person acted. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { flagkeep, osUser, ServerProcess } from "../support/server.ts";
import { openSignedIn, ownerCookie } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("the log of changes", () => {
  let server: ServerProcess;
  let browser: Browser;
  beforeAll(async () => {
    server = await ServerProcess.start();
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  });

  test("names the command line with the user who ran it, and where somebody failed to sign in from", async () => {
    const cookie = await ownerCookie(server);
    const made = await flagkeep(["flags", "create", "new-checkout", "--data-dir", server.dataDir]);
    expect(made).toMatchObject({ stderr: "", code: 0 });
    const claim = { email: server.made.user.email, password: "something else entirely" };
    await server.post("/api/session/", claim, { "X-Flagkeep-Console": "1" });

    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: server.url });
    const line = (text: string) => page.getByRole("listitem").filter({ hasText: text }).first();
    await page.goto("/console/activity");
    await line(`the command line (user ${osUser}) created flag new-checkout`).waitFor();
    await flagkeep(["flags", "delete", "new-checkout", "--data-dir", server.dataDir]);
    await page.reload();
    await page.getByRole("button", { name: "Restore: new-checkout" }).click();
    await page.getByText("new-checkout restored").waitFor();
    await line("Ann restored flag new-checkout").waitFor();
    expect(await page.getByRole("button", { name: "Restore: new-checkout" }).count()).toBe(0);
    await page.goto("/console/activity?where=organization");
    await line(`a client at 127.0.0.1 failed to sign in as person ${claim.email}`).waitFor();
    await context.close();
    expect(troubles).toEqual([]);
  });
});
