/** With keys alone: where the focus is when what had it goes away. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { TestAppliance } from "../support/appliance.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { openSignedIn, ownerCookie } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("keys", () => {
  let appliance: TestAppliance;
  let browser: Browser;
  let cookie: string;
  beforeAll(async () => {
    appliance = await TestAppliance.start();
    cookie = await ownerCookie(appliance);
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await appliance?.[Symbol.asyncDispose]();
  });

  test("a condition, a value, a set and a variant that are taken away leave the focus beside them", async () => {
    const answer = await appliance.api(`/api/projects/${appliance.made.project.id}/feature_flags/`, {
      method: "POST",
      body: {
        key: "by-keys",
        filters: {
          groups: [
            { properties: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }] },
            { properties: [] },
          ],
          multivariate: {
            variants: [
              { key: "a", rollout_percentage: 50 },
              { key: "b", rollout_percentage: 50 },
            ],
          },
        },
      },
    });
    const { id } = (await answer.json()) as { id: number };
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    await page.goto(`/console/flags/${id}`);
    const cases = [
      ["Remove pro", () => page.getByRole("combobox", { name: "Value", exact: true })],
      ["Remove condition", () => page.getByRole("button", { name: "Add condition" }).first()],
      ["Remove set: Set 2", () => page.getByRole("button", { name: "Add condition set" })],
      ["Remove variant: b", () => page.getByRole("button", { name: "Spread evenly" })],
    ] as const;
    for (const [name, next] of cases) {
      await page.getByRole("button", { name }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name }).waitFor({ state: "detached" });
      const wanted = await next().elementHandle();
      await page.waitForFunction((element) => document.activeElement === element, wanted);
    }
    await context.close();
    expect(troubles).toEqual([]);
  });
});
