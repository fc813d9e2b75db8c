/** The editor of conditions: suggestions, and all of it by keyboard. */

import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

test("no field uses the browser's own list of suggestions", () => {
  const folder = join(import.meta.dir, "../../src/console/page");
  const found = [...new Bun.Glob("**/*.tsx").scanSync(folder)].filter((file) =>
    readFileSync(join(folder, file), "utf8").includes("<datalist"),
  );
  expect(found).toEqual([]);
});

describe.skipIf(chromiumPath === undefined)("conditions", () => {
  const owner = ownersBrowser();
  let id: number;

  beforeAll(async () => {
    ({ id } = await owner.post("feature_flags/", {
      key: "by-keyboard",
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    }));
    const people = ["free", "pro", "pro plus", "team"].map((plan) => ({
      event: "$identify",
      distinct_id: plan,
      properties: { $set: { plan } },
    }));
    await owner.server.batch(people);
    await until(
      async () =>
        (await (await owner.server.api(owner.path("persons/values/?key=plan"))).json()).length ===
        people.length,
      "the values are known",
    );
  });

  test("values are chosen from a list, and any other is accepted", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${id}`);
    const add = page.getByRole("button", { name: "Add condition", exact: true });
    await add.focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.matches(".condition select"));
    await page.getByLabel("Property", { exact: true }).fill("plan");
    const value = page.getByRole("combobox", { name: "Value" });
    const options = page.getByRole("listbox", { name: "Value" }).getByRole("option");
    const tokens = () => page.locator(".token > span").allTextContents();
    await value.focus();
    await page.keyboard.type("pro");
    await options.nth(1).waitFor();
    expect((await options.allTextContents()).toSorted()).toEqual(["pro", "pro plus"]);
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.type(" p");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await tokens()).toEqual(["pro plus"]);
    expect(await value.inputValue()).toBe("");
    // The focus stays for the next one; a chosen value is not offered again.
    await page.keyboard.press("ArrowDown");
    expect((await options.allTextContents()).toSorted()).toEqual(["free", "pro", "team"]);
    await page.keyboard.press("Escape");
    expect(await options.count()).toBe(0);
    await page.keyboard.type("enterprise,");
    await page.keyboard.type("left behind");
    await page.keyboard.press("Tab");
    expect(await tokens()).toEqual(["pro plus", "enterprise", "left behind"]);
    await value.focus();
    await page.keyboard.press("Backspace");
    expect(await tokens()).toEqual(["pro plus", "enterprise"]);

    // An operator with a single value has the same list.
    await page.getByLabel("Operator").selectOption("icontains");
    await value.fill("tea");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await value.inputValue()).toBe("team");

    await page.getByRole("radio", { name: "Variants" }).press("Space");
    await page.getByRole("button", { name: "Add variant" }).press("Enter");
    await page.waitForFunction(() =>
      document.activeElement?.closest(".variant")?.nextElementSibling?.matches(".row"),
    );
    await page.getByRole("button", { name: "Add condition set" }).press("Enter");
    await page.waitForFunction(() => document.activeElement?.textContent === "Add condition");

    // From the button of a menu, Up leads to the last action, and from there Down to the first.
    const menu = page.getByRole("button", { name: "Actions", exact: true });
    const isFocused = (name: string) =>
      page.waitForFunction((wanted) => document.activeElement?.textContent === wanted, name);
    await menu.press("Enter");
    await page.keyboard.press("ArrowUp");
    await isFocused("Delete");
    await page.keyboard.press("ArrowDown");
    await isFocused("Copy to another project");
    await page.keyboard.press("ArrowUp");
    await isFocused("Delete");
    await page.keyboard.press("Escape");
    await context.close();
    expect(errors).toEqual([]);
  });
});
