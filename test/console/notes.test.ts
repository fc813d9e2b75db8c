/** Notes on charts: added below a chart, shown as a mark with its text, listed and deleted. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("notes on charts", () => {
  const owner = ownersBrowser();

  test("from the form to a mark, on every chart over time, and away again", async () => {
    const { server } = owner;
    await server.capture({ event: "$pageview", distinct_id: "ann" });
    await server.eventsWhenStored(1);
    const post = async (path: string, body: object) =>
      (await server.api(`/api/projects/@current/${path}/`, { method: "POST", body })).json();
    const query = {
      kind: "InsightVizNode",
      source: { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "$pageview" }] },
    };
    const { id } = (await post("dashboards", { name: "Orders" })) as { id: number };
    await post("insights", { name: "Views", query, dashboards: [id] });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/dashboards/${id}`);
    const getToday = () => new Date().toISOString().slice(0, 10);
    const before = getToday();
    await page.getByRole("button", { name: "Add note" }).click();
    const form = page.getByRole("dialog", { name: "Add note" });
    await form.getByLabel("Note").fill("New checkout");
    expect([before, getToday()]).toContain(await form.getByLabel("Day").inputValue());
    expect(await axeFindings(page)).toEqual([]);
    await form.getByRole("button", { name: "Add note" }).click();
    const mark = page.getByRole("button", { name: /^1 note on / });
    await mark.waitFor();
    await mark.hover();
    await page.getByText("New checkout (Ann)").waitFor();
    expect(await axeFindings(page)).toEqual([]);

    // Outside of the range of a chart, notes are not marked.
    await post("annotations", { content: "Long ago", date_marker: "2020-01-01T00:00:00Z" });
    await post("annotations", { content: "Next year", date_marker: "2099-01-01T00:00:00Z" });
    await page.goto("/console/explore");
    await mark.waitFor();
    expect(await page.locator(".note-mark").count()).toBe(1);
    await mark.click();
    const list = page.getByRole("dialog", { name: "Notes" });
    await list.getByRole("button", { name: "Delete New checkout" }).click();
    await page.getByText("The note is deleted.").waitFor();
    await mark.waitFor({ state: "detached" });
    await context.close();
    expect(errors).toEqual([]);
  }, 60_000);
});
