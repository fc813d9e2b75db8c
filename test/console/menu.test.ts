/** The menu, its groups, and the page that the console opens. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

const pages = [
  "Overview",
  "Flags",
  "Experiments",
  "Surveys",
  "Early access",
  "Explore",
  "Dashboards",
  "Events",
  "SQL",
  "People",
  "Cohorts",
  "Activity",
  "Settings",
  "Instance",
];

describe.skipIf(chromiumPath === undefined)("the menu", () => {
  const owner = ownersBrowser();

  test("home is Get started before the first event, then Flags; a chosen start page overrides it", async () => {
    const { page, context, errors } = await owner.open();
    const opens = async (heading: string) => {
      await page.goto("/console/");
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    };
    await opens("Get started");
    await owner.server.capture({ event: "signed up", distinct_id: "user-1" });
    await owner.server.eventsWhenStored(1);
    await opens("Flags");
    await page.goto("/console/settings?tab=account");
    await page.getByLabel("Start page").selectOption("Explore");
    await opens("Explore");
    await page.goto("/console/settings?tab=account");
    expect(await page.getByLabel("Start page").inputValue()).toBe("explore");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("links are in three labeled groups, whose order does not depend on Get started", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/flags");
    const menu = page.getByRole("navigation", { name: "Menu" });
    const links = async () =>
      (await menu.getByRole("group").getByRole("link").allInnerTexts()).map((text) =>
        text.split("\n")[0]!.trim(),
      );
    await menu.getByRole("link", { name: /^Get started \d\/4$/ }).waitFor();
    expect(await links()).toEqual(pages);
    const top = async (name: string | RegExp) =>
      (await menu.getByRole("link", { name }).first().boundingBox())!.y;
    expect(await top(/^Get started/)).toBeGreaterThan(await top("Cohorts"));
    expect(await top(/^Get started/)).toBeLessThan(await top("Settings"));
    for (const [name, first] of [
      ["Flags", "Flags"],
      ["Analytics", "Explore"],
      ["People", "People"],
    ] as const) {
      const group = menu.getByRole("group", { name, exact: true });
      expect(await group.getByRole("link").first().textContent()).toStartWith(first);
    }
    expect(await axeFindings(page)).toEqual([]);
    await menu.getByRole("button", { name: "Dismiss Get started" }).click();
    await menu.getByRole("link", { name: /^Get started/ }).waitFor({ state: "detached" });
    expect(await links()).toEqual(pages);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the former address of Events leads there with its filters", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/live?event=paid");
    await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
    expect(page.url()).toEndWith("/console/events?event=paid");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("Flags has the number of change requests that wait for this user; a menu leads to the account", async () => {
    const { page, context, errors } = await owner.open();
    const me = (await (await owner.server.api("/api/users/@me/")).json()) as { uuid: string };
    const results = [me.uuid, "another", null].map((uuid) => ({
      flag_id: 1,
      flag_key: "x",
      created_by: uuid && { uuid },
    }));
    await page.route("**/change_requests/?*", (route) => route.fulfill({ json: { results } }));
    await page.goto("/console/cohorts");
    const menu = page.getByRole("navigation", { name: "Menu" });
    await menu.getByRole("link", { name: /^Flags 2 change requests wait for your approval$/ }).waitFor();
    await page.getByRole("button", { name: /Your account$/ }).click();
    expect(await axeFindings(page)).toEqual([]);
    // The theme is chosen here too, at once.
    await page.getByRole("button", { name: "Theme: Dark", exact: true }).click();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.getByRole("button", { name: /Your account$/ }).click();
    const chosen = page.getByRole("button", { name: /^Theme: / }).and(page.locator("[aria-current=true]"));
    expect(await chosen.allTextContents()).toEqual(["Theme: Dark"]);
    for (const name of ["My account", "Team", "Keyboard shortcuts", "API documentation", "Sign out"])
      await page.getByRole("button", { name, exact: true }).waitFor();
    await page.getByRole("button", { name: "API keys", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    expect(page.url()).toContain("tab=keys");
    await context.close();
    expect(errors).toEqual([]);
  });
});
