/** A part of a page that fails says so and hides nothing else. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { ownersBrowser } from "./support.ts";

const broken = {
  status: 400,
  json: { type: "validation_error", code: "broken", detail: "Broken.", attr: null },
};

describe.skipIf(chromiumPath === undefined)("parts that fail", () => {
  const owner = ownersBrowser();

  /** Queries with this text fail. */
  const breakQueries = (page: Page, text: string) =>
    page.route("**/query/", (route) =>
      route.request().postData()?.includes(text) ? route.fulfill(broken) : route.continue(),
    );

  test("figures of people that cannot be read are dashes", async () => {
    const { server } = owner;
    await server.batch([
      { event: "$identify", distinct_id: "ann", properties: { $set: { email: "ann@acme.example" } } },
    ]);
    await until(
      async () => (await server.query("SELECT count(*) AS n FROM events"))[0]?.n === 1,
      "the event is stored",
    );
    const { page, context, errors } = await owner.open(400);
    await breakQueries(page, "e.person_id IN");
    await page.goto("/console/persons");
    const row = page.getByRole("row").filter({ hasText: "ann@acme.example" });
    await row.getByRole("cell", { name: "–", exact: true }).nth(1).waitFor();
    await page.unroute("**/query/");
    await page.reload();
    await row.getByRole("cell", { name: "1", exact: true }).waitFor();
    expect(errors).toEqual([]);
    await context.close();
  });

  test("events per minute are unavailable", async () => {
    const { page, context, errors } = await owner.open(400);
    await breakQueries(page, "AS minute");
    await page.goto("/console/events");
    await page.getByText("Events per minute are unavailable.").waitFor();
    expect(await page.getByRole("figure", { name: "Events per minute" }).count()).toBe(0);
    expect(errors).toEqual([]);
    await context.close();
  });

  test("without the list of backups, change requests are counted", async () => {
    const { page, context, errors } = await owner.open(400);
    await page.route("**/api/instance/backups/", (route) => route.fulfill(broken));
    await page.route("**/change_requests/?*", (route) =>
      route.fulfill({ json: { results: [{ created_by: null }] } }),
    );
    await page.goto("/console/cohorts");
    const menu = page.getByRole("navigation", { name: "Menu" });
    await menu.getByRole("link", { name: "Flags 1 change request waits for your approval" }).waitFor();
    expect(errors).toEqual([]);
    await context.close();
  });

  test("the history of a server that has none yet", async () => {
    const { page, context, errors } = await owner.open(400);
    await page.route("**/api/instance/history/", (route) => route.fulfill(broken));
    await page.goto("/console/instance");
    await page.getByText("No history yet.").first().waitFor();
    expect(await page.locator(".sparkline").count()).toBe(0);
    expect(errors).toEqual([]);
    await context.close();
  });
});
