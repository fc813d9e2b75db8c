/** Share links in the console: created on a dashboard, opened without a session, revoked. */

import { describe, expect, test } from "bun:test";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { axeFindings, openPage, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("share links", () => {
  const owner = ownersBrowser();

  test("a dashboard is shared, opened with a password, and closed", async () => {
    const { server } = owner;
    const post = async (path: string, body: object) =>
      (await server.api(`/api/projects/@current/${path}/`, { method: "POST", body })).json();
    await server.capture({
      event: "$pageview",
      distinct_id: "ann",
      properties: { $set: { email: "ann@x.example" } },
    });
    await server.eventsWhenStored(1);
    const dashboard = (await post("dashboards", { name: "Orders" })) as { id: number };
    const query = {
      kind: "InsightVizNode",
      source: { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "$pageview" }] },
    };
    await post("insights", { name: "Views", query, dashboards: [dashboard.id] });
    await owner.confirm();
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/dashboards/${dashboard.id}`);
    await page.getByRole("button", { name: "Share", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Share Orders" });
    await dialog.getByText("No links yet.").waitFor();
    await dialog.getByLabel("Name").fill("Wall");
    await dialog.getByLabel("Password (optional)").fill("few quiet words");
    await dialog.getByRole("button", { name: "Create link" }).click();
    await dialog.getByText("Copy the link: it is shown once.").waitFor();
    const url = (await dialog.locator("pre").first().textContent())!.trim();
    expect(url).toContain("/console/shared#phl_");
    expect(await axeFindings(page)).toEqual([]);

    const browser = await startBrowser();
    const visitor = await openPage(browser, { url: server.url, expectedStatus: [401] });
    const shown = visitor.page;
    await shown.goto(url);
    await shown.getByRole("heading", { name: "This link needs a password" }).waitFor();
    expect(await axeFindings(shown)).toEqual([]);
    await shown.getByLabel("Password").fill("wrong words");
    await shown.getByRole("button", { name: "Open" }).click();
    await shown.getByText("The password is wrong.").waitFor();
    await shown.getByLabel("Password").fill("few quiet words");
    await shown.getByRole("button", { name: "Open" }).click();
    await shown.getByRole("heading", { level: 1, name: "Orders" }).waitFor();
    await shown.getByRole("heading", { name: "Views" }).waitFor();
    await shown.locator("canvas, svg, table, .big-number").first().waitFor();
    expect(await axeFindings(shown)).toEqual([]);
    expect(await shown.content()).not.toContain("ann@x.example");

    await dialog.getByRole("button", { name: "Revoke Wall" }).click();
    await dialog.getByText("No links yet.").waitFor();
    await shown.reload();
    await shown.getByText("This link is invalid, was revoked or has expired.").waitFor();
    expect([...errors, ...visitor.errors]).toEqual([]);
    await browser.close();
    await context.close();
  }, 90_000);
});
