/** Several tabs of one browser: they share the session and follow each other's changes. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { ownersBrowser, password } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("several tabs", () => {
  const owner = ownersBrowser();
  const memberPassword = "another correct horse battery";
  const member = "bob@example.com";
  const filters = { groups: [{ properties: [], rollout_percentage: 100 }] };
  const rollout = (page: Page) => page.getByLabel("Rollout percentage").first();

  async function signIn(page: Page, email: string, secret: string) {
    await page.getByLabel("E-mail").fill(email);
    await page.getByLabel("Password", { exact: true }).fill(secret);
    await page.keyboard.press("Enter");
  }
  /** Signs in in a session of its own, which the test may end. */
  async function openOwn() {
    const opened = await owner.open(401);
    await opened.context.clearCookies();
    await opened.page.goto("/console/flags");
    await signIn(opened.page, owner.server.initialized.user.email, password);
    await opened.page.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
    return opened;
  }
  async function signOut(page: Page) {
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  }

  test("a change in one tab is shown in the others, hidden ones read it when they are looked at", async () => {
    await owner.post("feature_flags/", { key: "shared-flag" });
    const { page: one, context, errors } = await owner.open();
    const two = await context.newPage();
    const name = { name: "shared-flag" };
    for (const page of [one, two]) {
      await page.goto("/console/flags");
      await page.getByRole("switch", name).waitFor();
    }
    const isOn = two.getByRole("switch", { ...name, checked: true });
    const isOff = two.getByRole("switch", { ...name, checked: false });
    await isOn.waitFor();
    await one.getByRole("switch", name).click();
    await isOff.waitFor();

    const setHidden = (isHidden: boolean) =>
      two.evaluate((value) => {
        Object.defineProperty(document, "hidden", { configurable: true, value });
        document.dispatchEvent(new Event("visibilitychange"));
      }, isHidden);
    await setHidden(true);
    await one.getByRole("switch", name).click();
    await one.getByRole("switch", { ...name, checked: true }).waitFor();
    await setHidden(false);
    await isOn.waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("signing out in one tab asks in the others immediately; signing in there brings all back with typed text", async () => {
    const { id } = await owner.post("feature_flags/", { key: "drafted", filters });
    const { page: one, context, errors } = await openOwn();
    const two = await context.newPage();
    await two.goto(`/console/flags/${id}`);
    await rollout(two).fill("37");
    await signOut(one);
    await two.getByText("Your session expired.").waitFor({ timeout: 2_000 });
    await signIn(one, owner.server.initialized.user.email, password);
    await two.getByText("Your session expired.").waitFor({ state: "detached" });
    expect(await rollout(two).inputValue()).toBe("37");
    await one.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("another user who signs in in one tab is the user of all, without the former one's text", async () => {
    const { id } = await owner.post("feature_flags/", { key: "of-ann", filters });
    const created = await owner.server.api("/api/organizations/@current/members/", {
      method: "POST",
      body: { email: member, first_name: "Bob" },
    });
    const { console_url: link } = (await created.json()) as { console_url: string };
    const set = await fetch(`${owner.server.url}/api/session/setup/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
      body: JSON.stringify({ token: link.split("#")[1], password: memberPassword, first_name: "Bob" }),
    });
    expect(set.status).toBe(201);
    const { page: one, context, errors } = await openOwn();
    const two = await context.newPage();
    await two.goto(`/console/flags/${id}`);
    await rollout(two).fill("37");
    // An action that waits for the password of the former user, in a tab that cannot read the session at first.
    const three = await context.newPage();
    await three.goto("/console/flags");
    let changes = 0;
    await three.route(`**/feature_flags/${id}/`, async (route) => {
      if (route.request().method() === "PATCH") changes += 1;
      await route.fulfill({ status: 403, json: { code: "confirmation_required", detail: "Confirm." } });
    });
    await three.getByRole("switch", { name: "of-ann" }).click();
    const confirmation = three.getByRole("dialog", { name: "Confirm" });
    await confirmation.waitFor();
    let failures = 0;
    await three.route("**/api/session/", async (route) => {
      failures += 1;
      await (failures <= 2 ? route.fulfill({ status: 503, json: { detail: "Later." } }) : route.continue());
    });
    await signOut(one);
    await two.getByText("Your session expired.").waitFor();
    await signIn(one, member, memberPassword);
    for (const page of [two, three]) await page.getByRole("button", { name: "BO Your account" }).waitFor();
    expect(await rollout(two).inputValue()).toBe("100");
    expect([await confirmation.count(), changes]).toEqual([0, 1]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("closing the dialog of an expired session keeps typed text until the same user returns", async () => {
    const { page, context, errors } = await openOwn();
    const fields = [
      ["/console/flags?new=1", page.getByLabel("Description", { exact: true })],
      ["/console/settings?tab=account", page.getByLabel("First name")],
    ] as const;
    for (const [address, field] of fields) {
      await page.goto(address);
      await field.fill("Typed for a long time");
      await context.clearCookies();
      await page.getByText("Your session expired.").waitFor({ timeout: 20_000 });
      await page.keyboard.press("Escape");
      await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
      expect(await page.getByText("Typed for a long time").count()).toBe(0);
      await signIn(page, owner.server.initialized.user.email, password);
      await field.waitFor();
      expect(await field.inputValue()).toBe("Typed for a long time");
    }
    await context.close();
    expect(errors).toEqual([]);
  });
});
