/** The address is the state: the project and the search that stand in it are the ones that are shown. */

import { beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("addresses", () => {
  const owner = ownersBrowser();
  let other: number;
  const { open } = owner;
  const post = async (path: string, body: unknown) =>
    (await (await owner.server.api(path, { method: "POST", body })).json()) as { id: number };

  beforeAll(async () => {
    other = (await post("/api/organizations/@current/projects/", { name: "Other" })).id;
    const filters = { groups: [{ properties: [], rollout_percentage: 100 }] };
    await post(`/api/projects/${owner.server.initialized.project.id}/feature_flags/`, {
      key: "first-flag",
      filters,
    });
    await post(`/api/projects/${other}/feature_flags/`, { key: "other-flag", filters });
  });

  test("back and forward go to the project of each page", async () => {
    const { page, context, errors } = await open();
    await page.goto(`/console/flags?project=${owner.server.initialized.project.id}`);
    await page.getByRole("link", { name: "first-flag" }).click();
    await page.getByRole("heading", { level: 1, name: "first-flag" }).waitFor();
    const project = page.getByRole("button", { name: /^Project: / });
    const name = async () => await project.textContent();
    const first = await name();
    await project.click();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("combobox", { name: "Search projects" }).fill("oth");
    await page.getByRole("option", { name: "Other" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "other-flag" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "first-flag" }).waitFor();
    expect(await name()).toBe(first);
    await page.goForward();
    await page.getByRole("link", { name: "other-flag" }).waitFor();
    expect(await name()).toBe("Other");
    await project.click();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Project" }).waitFor({ state: "detached" });
    expect(await project.evaluate((button) => button === document.activeElement)).toBe(true);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a new project stays the one in use when its settings are saved", async () => {
    const { page, context, errors } = await open();
    await page.goto(`/console/settings?project=${other}`);
    await page.getByRole("button", { name: /^Project: / }).click();
    await page.getByRole("dialog").getByRole("button", { name: "New project" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Third");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Project: Third", exact: true }).waitFor();
    await page.getByRole("main").getByLabel("Name").fill("Third renamed");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Project: Third renamed", exact: true }).waitFor();
    expect(new URL(page.url()).searchParams.get("project")).not.toBe(String(other));
    expect(await page.getByRole("main").getByLabel("Name").inputValue()).toBe("Third renamed");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a search that leaves the address leaves its field", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/flags?search=nothing-like-it");
    await page.getByText("No flag matches.").waitFor();
    await page
      .getByRole("navigation")
      .getByRole("link", { name: /^Flags/ })
      .click();
    await page.getByRole("switch").first().waitFor();
    expect(await page.getByRole("searchbox").inputValue()).toBe("");
    expect(page.url()).not.toContain("search=");
    await context.close();
    expect(errors).toEqual([]);
  });
});
