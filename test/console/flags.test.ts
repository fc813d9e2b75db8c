/** Flags in the browser: list, switch, form, texts, what a member may do. */

import { beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { createFlag, type Flag, flagPath, hostile, readFlag } from "./flag-pages.ts";
import {
  axeFindings,
  chooseFilter,
  openConsole,
  openSignedIn,
  themes,
  useConsole,
  widths,
} from "./support.ts";

describe.skipIf(chromiumPath === undefined)("flags", () => {
  let created: Flag;
  useConsole();
  beforeAll(async () => {
    for (let number = 0; number < 230; number++) {
      await createFlag({
        key: `service-${number}`,
        filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
      });
    }
    created = await createFlag({
      key: "new-checkout",
      name: hostile,
      tags: ["web"],
      filters: {
        groups: [
          {
            properties: [{ key: hostile, type: "person", operator: "exact", value: [hostile] }],
            rollout_percentage: 40,
          },
        ],
      },
    });
    await createFlag({
      key: "pay",
      tags: ["critical"],
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
  });

  test("the switch acts immediately and can be undone; a critical flag requires confirmation", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/flags?search=new-check");
    const toggle = page.getByRole("switch", { name: "new-checkout" });
    await toggle.waitFor();
    expect(await toggle.getAttribute("aria-checked")).toBe("true");
    await toggle.click();
    await until(async () => !(await readFlag(created.id)).active, "the flag is off");
    await page.getByRole("button", { name: "Undo" }).click();
    await until(async () => (await readFlag(created.id)).active, "the flag is on again");

    await page.goto("/console/flags?search=pay");
    await page.getByRole("switch", { name: "pay" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("pay is tagged").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByRole("switch", { name: "pay" }).getAttribute("aria-checked")).toBe("true");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a deleted flag is restored from the message, and from the list of deleted flags", async () => {
    const deleted = await createFlag({
      key: "short-lived",
      filters: { groups: [{ properties: [], rollout_percentage: 30 }] },
    });
    const { page, context, errors } = await openConsole();
    const deleteIt = async () => {
      await page.goto(`/console/flags/${deleted.id}`);
      await page.getByRole("button", { name: "Actions" }).click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      const dialog = page.getByRole("dialog", { name: "Delete: short-lived" });
      await dialog.getByText("You can restore it from Flags → Deleted.").waitFor();
      // Not the close button, and not what deletes.
      await page.waitForFunction(() => document.activeElement?.textContent === "Cancel");
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("short-lived is deleted.").waitFor();
    };
    await deleteIt();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { level: 1, name: "short-lived" }).waitFor();
    expect((await readFlag(deleted.id)).deleted).toBe(false);

    await deleteIt();
    await chooseFilter(page, "Status", "Deleted");
    await page.getByText("1 flag", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Restore: short-lived/ }).click();
    await page.getByText("short-lived restored").waitFor();
    await page.getByText("0 flags", { exact: true }).waitFor();
    const restored = await readFlag(deleted.id);
    expect(restored).toMatchObject({ key: "short-lived", deleted: false });
    expect(restored.filters.groups![0]!.rollout_percentage).toBe(30);
    await server.api(flagPath(deleted.id), { method: "PATCH", body: { deleted: true } });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the list is searched by the server, scrolls through all, and keeps its filters in the address", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/flags");
    await page.getByText("232 flags").waitFor();
    await page.getByRole("table", { name: "Flags" }).waitFor();
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.getByRole("link", { name: "service-0", exact: true }).waitFor();
    await page.getByRole("searchbox").fill("service-22");
    await page.getByText("11 flags").waitFor();
    expect(page.url()).toContain("search=service-22");
    await page.reload();
    await page.getByText("11 flags").waitFor();
    expect(await page.getByRole("searchbox").inputValue()).toBe("service-22");
    await page.getByRole("searchbox").fill("nothing is called so");
    await page.getByText("No flag matches.").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("with keys alone: a flag is created, found by the palette, opened from the list", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/flags");
    await page
      .getByText(/flags$/)
      .first()
      .waitFor();
    // Everything that is typed behind the shortcut is meant for what it opens.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("service-2", { delay: 0 });
    expect(await page.getByRole("combobox", { name: "Search or jump" }).inputValue()).toBe("service-2");
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New flag" }).waitFor();
    await page.keyboard.type("by-keys");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "by-keys" }).waitFor();
    // A new flag with only a key matches no one.
    await page.getByText("No condition sets: off for everyone.").waitFor();
    expect(await page.title()).toBe("by-keys · Flagkeep");
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await page.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
    // What was kept of the list gives way to what is there now.
    await page.getByRole("row").nth(1).getByRole("link", { name: "by-keys" }).waitFor();
    await page.keyboard.press("j");
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-rowindex") === "2");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Release" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("new-checkout");
    await page.getByRole("option", { name: /^new-checkout/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "new-checkout" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag that SDKs cannot evaluate shows it, and the reason", async () => {
    const groups = [{ properties: [], rollout_percentage: 100 }];
    const steady = await createFlag({
      key: "steady",
      ensure_experience_continuity: true,
      filters: { groups },
    });
    const { page, context, errors } = await openConsole();
    await page.goto(`/console/flags/${steady.id}`);
    await page.getByText("SDKs cannot evaluate this flag locally").click();
    await page.getByText("Experience continuity: only the server knows").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.goto(`/console/flags/${created.id}`);
    await page.getByRole("heading", { level: 1, name: "new-checkout" }).waitFor();
    expect(await page.getByText("SDKs cannot evaluate this flag locally").count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the form for a flag names the allowed characters of a key, and the invalid ones", async () => {
    const { page, context, errors } = await openConsole({ expectedStatus: [400] });
    await page.goto("/console/flags");
    await page.getByRole("button", { name: "New flag" }).click();
    await page.getByText("Used in code. Letters, digits, - and _.").waitFor();
    for (const key of ["a.b", "a/b"]) {
      await page.getByLabel("Key", { exact: true }).fill(key);
      const answer = page.waitForResponse((response) => response.request().method() === "POST");
      await page.keyboard.press("Enter");
      expect((await answer).status()).toBe(400);
      await page.getByText("Only letters, numbers, hyphens (-) & underscores (_) are allowed.").waitFor();
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("text of flags stays text", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto(`/console/flags/${created.id}`);
    await page.getByRole("heading", { level: 1, name: "new-checkout" }).waitFor();
    await page.getByText(hostile).first().waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.title()).toBe("new-checkout · Flagkeep");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a member sees what may not be done, switched off", async () => {
    await server.api("/api/organizations/@current/", {
      method: "PATCH",
      body: { feature_flags_access_level: 21 },
    });
    const answer = await server.api("/api/organizations/@current/members/", {
      method: "POST",
      body: { email: "bob@example.com", level: 1 },
    });
    expect(answer.status).toBe(201);
    const { console_url: link } = (await answer.json()) as { console_url: string };
    const started = await fetch(`${server.url}/api/session/setup/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
      body: JSON.stringify({ token: link.split("#")[1], password: "another few quiet words" }),
    });
    const memberCookie = started.headers.get("set-cookie")!.split(";")[0]!;
    const { page, context, errors } = await openSignedIn(browser, memberCookie, { url: server.url });
    await page.goto("/console/flags?search=new-check");
    const toggle = page.getByRole("switch", { name: "new-checkout" });
    await toggle.waitFor();
    expect(await toggle.getAttribute("aria-disabled")).toBe("true");
    expect(await toggle.getAttribute("title")).toBe("You may not edit this flag");
    await toggle.click({ force: true });
    await page.goto(`/console/flags/${created.id}`);
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).waitFor();
    expect(await page.getByRole("spinbutton", { name: "Rollout percentage" }).isDisabled()).toBe(true);
    expect((await readFlag(created.id)).active).toBe(true);
    await context.close();
    expect(errors).toEqual([]);
  });

  for (const theme of themes) {
    for (const width of widths) {
      test(`axe finds nothing, and nothing is wider than the screen, ${theme}, ${width}`, async () => {
        const { page, context, errors } = await openConsole({ theme, width, expectedStatus: [404] });
        const look = async (path: string, ready: string) => {
          await page.goto(path);
          await page.getByText(ready).first().waitFor();
          expect(await axeFindings(page)).toEqual([]);
          expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
          expect(await page.locator("h1").count()).toBe(1);
        };
        await look("/console/flags", "service-229");
        await look("/console/flags?new=1", "Used in code");
        await look("/console/flags?search=nothing-like-that", "No flag matches.");
        await look(`/console/flags/${created.id}`, "Affected people");
        await look(`/console/flags/${created.id}?tab=history`, "Ann");
        await look(`/console/flags/${created.id}?tab=settings`, "No roles have access yet");
        await look(`/console/flags/${created.id}?tab=code`, "flagkeep_flags");
        await look("/console/flags/999999", "Not found");
        await context.close();
        expect(errors).toEqual([]);
      });
    }
  }
});
