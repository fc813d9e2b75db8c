/** A stopped server looks stopped: health, the age of the data, pages that were not loaded yet. */

import { describe, expect, test } from "bun:test";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { ServerProcess } from "../support/server.ts";
import { axeFindings, openSignedIn, ownerCookie } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("a stopped server", () => {
  test("health and a bar report it within 15 s; a page that was never opened can be retried", async () => {
    await using first = await ServerProcess.start();
    const cookie = await ownerCookie(first);
    await first.api(`/api/projects/${first.initialized.project.id}/feature_flags/`, {
      method: "POST",
      body: { key: "new-checkout" },
    });
    const browser = await startBrowser();
    try {
      const { page, context } = await openSignedIn(browser, cookie, { url: first.url });
      await page.goto("/console/flags");
      await page.getByRole("switch", { name: "new-checkout" }).waitFor();
      await page.getByRole("button", { name: "Health: ready" }).waitFor();
      await first.kill();
      const started = performance.now();
      await page.getByRole("button", { name: "Health: Reconnecting…" }).waitFor();
      await page.getByRole("button", { name: "Health: Can't reach the server" }).waitFor();
      expect(performance.now() - started).toBeLessThan(15_000);
      await page.getByText(/^Can't reach the server\. Showing data from \d+ seconds ago\.$/).waitFor();
      await page.getByRole("switch", { name: "new-checkout" }).waitFor();
      expect(await axeFindings(page)).toEqual([]);

      await page.getByRole("link", { name: "People" }).click();
      await page.getByRole("heading", { level: 1, name: "People" }).waitFor();
      await page.getByText("This page couldn't be loaded").waitFor();
      expect(await page.getByRole("switch").count()).toBe(0);
      expect(await axeFindings(page)).toEqual([]);

      const port = new URL(first.url).port;
      await using _ = await ServerProcess.start({ directory: first.directory, args: ["--port", port] });
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("No people yet").waitFor();
      await page.getByRole("button", { name: "Health: ready" }).waitFor();
      await page.getByText(/^Can't reach the server\./).waitFor({ state: "detached" });
      await context.close();
    } finally {
      await browser.close();
    }
  });
});
