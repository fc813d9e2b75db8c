/** Instance: tabs; its health in one sentence, what needs attention before the figures of 24 hours. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("instance", () => {
  const owner = ownersBrowser();

  test("Health has a sentence and five figures with their last 24 hours", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/instance");
    const tabs = page.getByRole("tablist", { name: "Parts of the instance" });
    expect(await tabs.getByRole("tab").allTextContents()).toEqual([
      "Health",
      "Backups",
      "Imports",
      "Storage",
      "Checks",
    ]);
    await page.getByText(/^Flagkeep is running normally: [\d.]+ events\/s, 0 ingestion warnings/).waitFor();
    for (const name of ["Events", "Ingestion lag", "Event store", "On disk", "Last backup"])
      await page.getByRole("img", { name: `${name}, last 24 hours` }).waitFor();
    const { results } = (await (await owner.server.api("/api/instance/history/")).json()) as {
      results: { at: string; engine_up: boolean; disk_bytes: number }[];
    };
    expect(results.length).toBeGreaterThanOrEqual(1);
    expect(results[0]!.disk_bytes).toBeGreaterThan(0);
    await tabs.getByRole("tab", { name: "Checks" }).click();
    await page.getByRole("button", { name: "Run checks" }).click();
    await page.getByText("disk", { exact: true }).first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.goto("/console/instance?tab=storage");
    await page.getByText("DuckDB library").waitFor();
    await page.getByRole("meter", { name: "Volume in use" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("problems are shown above the figures", async () => {
    const { page, context, errors } = await owner.open();
    await page.route("**/api/instance/status/", async (route) => {
      const status = (await (await route.fetch()).json()) as { engine: object };
      const engine = {
        ...status.engine,
        trouble: { message: "The disk is full.", hint: "Free some space." },
      };
      const warnings = [{ project_id: 1, type: "event_too_old", count: 12 }];
      await route.fulfill({ json: { ...status, engine, warnings } });
    });
    await page.goto("/console/instance");
    await page.getByText(/^Flagkeep needs attention: [\d.]+ events\/s, 12 ingestion warnings/).waitFor();
    const top = async (text: string) => (await page.getByText(text).first().boundingBox())!.y;
    expect(await top("The disk is full. Free some space.")).toBeLessThan(await top("On disk"));
    expect(await top("event too old: 12 in")).toBeLessThan(await top("On disk"));
    // The page reads the status again and again: one may be in flight.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
    expect(errors).toEqual([]);
  });
});
