/** The command palette: what it finds, in which order, and its actions. */

import { beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("the palette", () => {
  const owner = ownersBrowser();
  const { path, post } = owner;
  const isActive = async (id: number) =>
    ((await (await owner.server.api(path(`feature_flags/${id}/`))).json()) as { active: boolean }).active;

  let flag: { id: number };
  beforeAll(async () => {
    flag = await post("feature_flags/", { key: "checkout-steps", filters: { groups: [] } });
    await post("feature_flags/", { key: "checkout-critical", tags: ["critical"], filters: { groups: [] } });
    await post("dashboards/", { name: "Checkout board" });
    await post("cohorts/", {
      name: "Checkout people",
      is_static: true,
    });
    const series = [{ kind: "EventsNode", event: "paid", math: "total" }];
    await post("insights/", { name: "Checkout trend", query: { kind: "TrendsQuery", series } });
    await post("insights/", {
      name: "Checkout rows",
      query: { kind: "DataVisualizationNode", source: { kind: "HogQLQuery", query: "SELECT 40 + 2 AS n" } },
    });
  });

  test("objects of all kinds are found and opened; recent ones are first", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/flags");
    await page.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
    const options = page.getByRole("dialog", { name: "Search or jump" }).getByRole("option");
    const open = async (text: string, option: string, heading: string) => {
      await page.keyboard.press("Control+k");
      await page.keyboard.type(text);
      await page.getByRole("option", { name: option }).click();
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    };
    await open("checkout", "Checkout people Cohorts", "Checkout people");
    await open("checkout", "Checkout board Dashboards", "Checkout board");
    await open("checkout", "Checkout trend Insights", "Explore");
    expect(page.url()).toContain("paid");
    await open("checkout", "Checkout rows Insights", "SQL");
    await page.getByText(/^1 row\b/).waitFor();
    await open("settings: webh", "Settings: Webhooks Settings", "Settings");
    await page.getByRole("tab", { name: "Webhooks", selected: true }).waitFor();

    await page.keyboard.press("Control+k");
    await options.first().waitFor();
    const texts = await options.allTextContents();
    expect(texts.slice(0, 3)).toEqual(["Checkout boardRecent", "Checkout peopleRecent", "OverviewPages"]);
    await page.keyboard.type("checkout");
    // A recent page is not listed a second time.
    await page.getByRole("option", { name: "checkout-steps Flags" }).waitFor();
    expect((await options.allTextContents()).filter((text) => text.startsWith("Checkout board"))).toEqual([
      "Checkout boardRecent",
    ]);
    // Dashboards that came with flags would hide the others.
    expect((await options.allTextContents()).join()).not.toContain("Generated Dashboard");
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag is turned off, undone, and created by a line of text; a critical one is opened instead", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/flags");
    const theSwitch = page.getByRole("switch", { name: "checkout-steps" });
    await theSwitch.waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("turn off checkout-steps");
    await page.getByRole("option", { name: "Turn off checkout-steps" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("checkout-steps turned off").waitFor();
    expect(await isActive(flag.id)).toBe(false);
    await until(async () => (await theSwitch.getAttribute("aria-checked")) === "false", "the list shows it");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("checkout-steps turned on").waitFor();
    expect(await isActive(flag.id)).toBe(true);

    await page.keyboard.press("Control+k");
    await page.keyboard.type("turn off checkout-critical");
    await page.getByRole("option", { name: "Turn off checkout-critical" }).click();
    await page.getByRole("heading", { level: 1, name: "checkout-critical" }).waitFor();

    await page.keyboard.press("Control+k");
    await page.keyboard.type("create flag brand-new");
    await page.getByRole("option", { name: "Create flag brand-new" }).waitFor();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "New flag" });
    await dialog.waitFor();
    expect(await dialog.getByRole("textbox").first().inputValue()).toBe("brand-new");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "brand-new" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("titles of opened pages do not outlast the session", async () => {
    const { page, context, errors } = await owner.open(401);
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByRole("heading", { level: 1, name: "checkout-steps" }).waitFor();
    const stored = () => page.evaluate(() => localStorage.getItem("flagkeep:recent"));
    await until(async () => (await stored())?.includes("checkout-steps") === true, "the visit is recorded");
    // The session of the other tests stays.
    await page.route("**/api/session/", (route) =>
      route.request().method() === "DELETE" ? route.fulfill({ status: 204 }) : route.continue(),
    );
    await page.keyboard.press("Control+k");
    await page.keyboard.type("sign out");
    await page.getByRole("option", { name: "Sign out" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Sign in" }).first().waitFor();
    expect(await stored()).toBeNull();
    await context.close();
    expect(errors).toEqual([]);
  });
});
