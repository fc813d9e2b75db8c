/** The page of a person and of a cohort in the browser. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("people", () => {
  const owner = ownersBrowser();
  const { post } = owner;

  test("a person has facts, visits, and flags with those that are on first", async () => {
    const session = { $session_id: "s-1", $referring_domain: "www.google.com" };
    const facts = { plan: "pro", email: "ann.bell@example.com", $geoip_country_code: "DE" };
    await owner.server.batch([
      {
        event: "$pageview",
        distinct_id: "user-1",
        properties: { ...session, $set: facts },
      },
      { event: "$pageview", distinct_id: "user-1", properties: session },
      { event: "<b>paid</b>", distinct_id: "user-1", properties: { $session_id: "s-1" } },
      {
        event: "$identify",
        distinct_id: "user-2",
        properties: { $set: { name: "Ada Lovelace", email: "ada@example.com" } },
      },
    ]);
    await owner.server.eventsWhenStored(4);
    const groups = [{ properties: [], rollout_percentage: 100 }];
    await post("feature_flags/", { key: "a-is-off", filters: { groups: [] } });
    await post("feature_flags/", { key: "z-is-on", filters: { groups } });
    const { page, context, errors } = await owner.open();
    await page.goto("/console/persons");
    const persons = page.getByRole("table", { name: "People" });
    const line = persons.getByRole("row", { name: /ann\.bell/ });
    await line.getByRole("cell", { name: "3", exact: true }).waitFor();
    expect(await line.getByRole("cell").allTextContents()).toEqual([
      "ANann.bell@example.com",
      "ann.bell@example.com",
      expect.stringMatching(/ago|now/),
      "3",
      "google.com",
      "Germany",
    ]);
    // The e-mail address has its own column.
    const named = persons.getByRole("row", { name: /ada@example/ }).getByRole("cell");
    expect((await named.allTextContents()).slice(0, 2)).toEqual(["ALAda Lovelace", "ada@example.com"]);
    expect(await persons.getByRole("columnheader").allTextContents()).toEqual([
      "Name",
      "E-mail",
      "Last seen",
      "Events (30 d)",
      "First referrer",
      "Country",
    ]);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("link", { name: "ann.bell@example.com" }).click();
    await page.getByText(/^Today \d\d:\d\d · .* · Search · 2 pages$/).waitFor();
    await page
      .getByRole("region", { name: "Properties, cohorts and groups" })
      .getByText("pro", { exact: true })
      .waitFor();
    await page.getByRole("button", { name: "<b>paid</b>" }).click();
    await page.getByRole("dialog").getByText("s-1").first().waitFor();
    await page.keyboard.press("Escape");
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("tab", { name: "Flags" }).click();
    const flags = page.getByRole("table", { name: "Flags" });
    await flags.getByRole("link", { name: "z-is-on" }).waitFor();
    expect(await flags.getByRole("link").allTextContents()).toEqual(["z-is-on", "a-is-off"]);
    await page.getByRole("searchbox", { name: "Search flags" }).fill("OFF");
    await flags.getByRole("link", { name: "z-is-on" }).waitFor({ state: "detached" });
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a cohort names the insights that use it, and keeps what was typed when its members are shown", async () => {
    const condition = { key: "plan", type: "person", operator: "exact", value: ["pro"] };
    const cohort = await post("cohorts/", {
      name: "Pro people",
      filters: { properties: { type: "OR", values: [{ type: "AND", values: [condition] }] } },
    });
    const board = await post("dashboards/", { name: "Orders" });
    const properties = [{ key: "id", type: "cohort", operator: "in", value: cohort.id }];
    const series = [{ kind: "EventsNode", event: "$pageview" }];
    const source = { kind: "TrendsQuery", series, properties };
    await post("insights/", {
      name: "Views of Pro",
      query: { kind: "InsightVizNode", source },
      dashboards: [board.id],
    });
    await post("insights/", { name: "Views of all", query: { kind: "TrendsQuery", series } });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/cohorts/${cohort.id}`);
    await page.getByRole("link", { name: "Views of Pro" }).waitFor();
    expect(await page.getByText("Views of all").count()).toBe(0);
    await page.getByLabel("Name", { exact: true }).fill("Typed");
    await page.getByRole("tab", { name: "Members" }).click();
    await page.getByRole("table", { name: "Members" }).getByText("ann.bell").first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("tab", { name: "Definition" }).click();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Typed");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a cohort has a chart of its size from the second day on", async () => {
    const cohort = await post("cohorts/", {
      name: "Sized",
      filters: { properties: { type: "OR", values: [] } },
    });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/cohorts/${cohort.id}`);
    await page.getByText("Counted once a day. The chart of its size starts tomorrow.").waitFor();
    const results = [
      { day: "2026-11-13", count: 40 },
      { day: "2026-11-14", count: 1_200 },
    ];
    await page.route("**/sizes/", (route) => route.fulfill({ json: { results } }));
    await page.reload();
    const chart = page.getByRole("figure", { name: "Size over time" });
    await chart.getByText("1,200 people, 40 on the first day shown.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
