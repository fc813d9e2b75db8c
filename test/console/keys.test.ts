/** With keys alone: where the focus is when what had it goes away, and keys that are pressed twice. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("keys", () => {
  const owner = ownersBrowser();

  test("Enter pressed twice sends a form once", async () => {
    await owner.confirm();
    const { page, context, errors } = await owner.open();
    const sent: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") sent.push(new URL(request.url()).pathname);
    });
    for (const [place, button, label, created] of [
      ["dashboards", "New dashboard", "Name", "/dashboards/"],
      ["settings?tab=keys", "New key", "Label", "/personal_api_keys/"],
    ] as const) {
      await page.goto(`/console/${place}`);
      await page.getByRole("button", { name: button }).click();
      const form = page.getByRole("dialog", { name: button });
      await form.getByLabel(label).fill("twice");
      // As fast as keys repeat: before any answer.
      await form.getByLabel(label).evaluate((field: HTMLInputElement) => {
        field.form!.requestSubmit();
        field.form!.requestSubmit();
      });
      await form.waitFor({ state: "detached" });
      expect(sent.filter((path) => path.endsWith(created))).toHaveLength(1);
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("removing a condition, value, set or variant moves the focus to its neighbor", async () => {
    const answer = await owner.server.api(
      `/api/projects/${owner.server.initialized.project.id}/feature_flags/`,
      {
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
      },
    );
    const { id } = (await answer.json()) as { id: number };
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${id}`);
    const cases = [
      ["Remove pro", () => page.getByRole("textbox", { name: "Value", exact: true })],
      ["Remove condition", () => page.getByRole("button", { name: "Add condition" }).first()],
      ["Remove set: Condition set 2", () => page.getByRole("button", { name: "Add condition set" })],
      ["Remove variant: b", () => page.getByRole("button", { name: "Distribute evenly" })],
    ] as const;
    for (const [name, next] of cases) {
      await page.getByRole("button", { name }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name }).waitFor({ state: "detached" });
      const wanted = await next().elementHandle();
      await page.waitForFunction((element) => document.activeElement === element, wanted);
    }
    await context.close();
    expect(errors).toEqual([]);
  });
});
