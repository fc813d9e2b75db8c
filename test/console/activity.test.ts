/** The log of changes: who is named where no person acted. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { flagkeep, osUser, TestAppliance } from "../support/appliance.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { openSignedIn, ownerCookie } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("the log of changes", () => {
  let appliance: TestAppliance;
  let browser: Browser;
  beforeAll(async () => {
    appliance = await TestAppliance.start();
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await appliance?.[Symbol.asyncDispose]();
  });

  test("names the command line with the user who ran it, and where somebody failed to sign in from", async () => {
    const cookie = await ownerCookie(appliance);
    const made = await flagkeep(["flags", "create", "new-checkout", "--data-dir", appliance.dataDir]);
    expect(made).toMatchObject({ stderr: "", code: 0 });
    const claim = { email: appliance.made.user.email, password: "something else entirely" };
    await appliance.post("/api/session/", claim, { "X-Flagkeep-Console": "1" });

    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    const line = (text: string) => page.getByRole("listitem").filter({ hasText: text }).first();
    await page.goto("/console/activity");
    await line(`the command line (user ${osUser}) made flag new-checkout`).waitFor();
    await page.goto("/console/activity?where=organization");
    await line(`somebody at 127.0.0.1 failed to sign in as person ${claim.email}`).waitFor();
    await context.close();
    expect(troubles).toEqual([]);
  });
});
