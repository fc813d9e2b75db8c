/** What a user types or has before them is what is kept: nothing is lost, rounded, or written over unseen. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { ownersBrowser, password, widths } from "./support.ts";

interface Flag {
  id: number;
  key: string;
  active: boolean;
  filters: {
    groups: { rollout_percentage: number }[];
    multivariate: { variants: { rollout_percentage: number }[] } | null;
  };
}

describe.skipIf(chromiumPath === undefined)("what is typed", () => {
  const owner = ownersBrowser();
  const path = (rest: string) => `/api/projects/${owner.server.initialized.project.id}/${rest}`;
  const read = async (id: number) =>
    (await (await owner.server.api(path(`feature_flags/${id}/`))).json()) as Flag;
  const make = async (body: Record<string, unknown>) => {
    const answer = await owner.server.api(path("feature_flags/"), { method: "POST", body });
    expect(answer.status).toBe(201);
    return (await answer.json()) as Flag;
  };
  const groups = (share: number) => [{ properties: [], rollout_percentage: share }];
  const { open } = owner;
  const save = async (page: Page) => {
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("button", { name: "Save changes" }).click();
  };

  test("a switch does not hide what another user has changed since the page was opened", async () => {
    const flag = await make({ key: "two-tabs", filters: { groups: groups(10) } });
    const change = () =>
      owner.server.api(path(`feature_flags/${flag.id}/`), {
        method: "PATCH",
        body: { filters: { groups: groups(75) } },
      });
    const { page, context, errors } = await open(409);
    const share = page.getByRole("spinbutton", { name: "Rollout percentage" });
    await page.goto(`/console/flags/${flag.id}`);
    await share.waitFor();
    await change();
    await page.getByRole("switch", { name: "two-tabs" }).click();
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>(".share-field input")!.value === "75",
    );

    // With a draft: it is not put on top of theirs unasked.
    await page.getByRole("button", { name: "Discard" }).waitFor({ state: "detached" });
    await page.getByLabel("Description").fill("Mine");
    await page.getByRole("button", { name: "Duplicate: Condition set 1" }).click();
    await owner.server.api(path(`feature_flags/${flag.id}/`), {
      method: "PATCH",
      body: { filters: { groups: groups(80) } },
    });
    await page.getByRole("switch", { name: "two-tabs" }).click();
    await until(async () => (await read(flag.id)).active, "the flag is on again");
    // What is told of the switch does not lie over the way to save.
    const undo = page.getByRole("button", { name: "Undo" }).last();
    await undo.click({ trial: true });
    for (const width of widths) {
      await page.setViewportSize({ width, height: 740 });
      for (const name of ["Discard", "Review and save"]) {
        await page.getByRole("button", { name }).click({ trial: true, timeout: 3_000 });
      }
    }
    await save(page);
    const dialog = page.getByRole("dialog", { name: "This flag was changed by someone else" });
    await dialog.getByText("condition set 1: rollout 75 → 80%").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("changing a tag or a tile keeps what others have added since", async () => {
    const flag = await make({ key: "tagged", tags: ["one"], filters: { groups: groups(10) } });
    const { page, context, errors } = await open(409);
    await page.goto("/console/flags?search=tagged");
    await page.getByRole("checkbox", { name: "Select tagged" }).check();
    await owner.server.api(path(`feature_flags/${flag.id}/`), {
      method: "PATCH",
      body: { tags: ["one", "two"] },
    });
    await page.getByRole("button", { name: "Add tag", exact: true }).click();
    await page.getByLabel("Tag to add").fill("three");
    await page.keyboard.press("Enter");
    await page.getByText("tagged: The feature flag was updated by").waitFor();
    expect(await read(flag.id)).toMatchObject({ tags: ["one", "two"] });

    const post = async (where: string, body: object) => {
      const created = await owner.server.api(path(where), { method: "POST", body });
      return ((await created.json()) as { id: number }).id;
    };
    const boards = [await post("dashboards/", { name: "A" }), await post("dashboards/", { name: "B" })];
    const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "paid" }] };
    const tile = await post("insights/", { name: "Payments", query, dashboards: [boards[0]] });
    await page.goto(`/console/dashboards/${boards[0]}`);
    await page.getByRole("heading", { name: "Payments" }).waitFor();
    await owner.server.api(path(`insights/${tile}/`), { method: "PATCH", body: { dashboards: boards } });
    await page.getByRole("button", { name: "Actions: Payments", exact: true }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("heading", { name: "Payments" }).waitFor({ state: "detached" });
    const left = await (await owner.server.api(path(`insights/${tile}/`))).json();
    expect(left).toMatchObject({ dashboards: [boards[1]] });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag that a user has deleted meanwhile is shown as such, and is edited no more", async () => {
    const flag = await make({ key: "gone", filters: { groups: groups(10) } });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByLabel("Description").fill("Still here?");
    await owner.server.api(path(`feature_flags/${flag.id}/`), {
      method: "PATCH",
      body: { deleted: true },
    });
    await save(page);
    await page.getByText("gone is deleted.").first().waitFor();
    expect(await page.getByLabel("Description").isDisabled()).toBe(true);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("percentages are parsed as typed; invalid ones are reported and not saved", async () => {
    const variants = ["a", "b"].map((key) => ({ key, rollout_percentage: 50 }));
    const flag = await make({
      key: "shares",
      filters: { groups: groups(10), multivariate: { variants } },
    });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}`);
    const rollout = page.getByRole("spinbutton", { name: "Rollout percentage" });
    const first = page.getByRole("spinbutton", { name: "Percentage", exact: true }).first();
    const second = page.getByRole("spinbutton", { name: "Percentage", exact: true }).nth(1);
    const type = async (field: typeof first, text: string) => {
      await field.press("Control+a");
      await field.pressSequentially(text);
    };
    await first.waitFor();
    for (const wrong of ["150", "-5", "."]) {
      await type(rollout, wrong);
      await page.getByText("A number from 0 to 100").first().waitFor();
      await page.getByRole("button", { name: "Review and save" }).click();
      expect(await page.getByRole("button", { name: "Save changes" }).isDisabled()).toBe(true);
      await page.keyboard.press("Escape");
    }
    await type(rollout, "12.05");
    await page.getByText("A number from 0 to 100").waitFor({ state: "detached" });
    await type(first, "33.05");
    await type(second, "66.95");
    expect(await first.inputValue()).toBe("33.05");
    await save(page);
    await page.getByText("shares is saved").waitFor();
    const { filters } = await read(flag.id);
    expect(filters.groups[0]!.rollout_percentage).toBe(12.05);
    expect(filters.multivariate!.variants.map((variant) => variant.rollout_percentage)).toEqual([
      33.05, 66.95,
    ]);
    // What is set by something else is shown.
    await page.getByRole("button", { name: "Distribute evenly" }).click();
    expect(await first.inputValue()).toBe("50");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("payloads and sets follow the key of a variant through any intermediate keys", async () => {
    const variants = ["v1", "v2"].map((key) => ({ key, rollout_percentage: 50 }));
    const flag = await make({
      key: "renamed",
      filters: {
        multivariate: { variants },
        payloads: { v1: '"one"', v2: '"two"' },
        groups: [{ properties: [], rollout_percentage: 100, variant: "v2" }],
      },
    });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}`);
    const second = page.getByRole("textbox", { name: "Variant key" }).nth(1);
    await second.press("Control+a");
    await second.pressSequentially("v12");
    await second.press("Tab");
    await save(page);
    await page.getByText("renamed is saved").waitFor();
    expect((await read(flag.id)).filters).toMatchObject({
      multivariate: { variants: [{ key: "v1" }, { key: "v12" }] },
      payloads: { v1: '"one"', v12: '"two"' },
      groups: [{ variant: "v12" }],
    });
    await second.fill("v1");
    await second.press("Tab");
    await page.getByText("Each variant needs a key of its own.").waitFor();
    expect(await second.inputValue()).toBe("v12");
    await page.getByRole("button", { name: "Remove variant: v12" }).click();
    await page.getByRole("spinbutton", { name: "Percentage", exact: true }).fill("100");
    await save(page);
    await until(
      async () => (await read(flag.id)).filters.multivariate!.variants.length === 1,
      "it is stored",
    );
    expect((await read(flag.id)).filters).toMatchObject({
      payloads: { v1: '"one"' },
      groups: [{ variant: null }],
    });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a copy in another project has all of the flag", async () => {
    const settings = {
      key: "remote",
      tags: ["web"],
      is_remote_configuration: true,
      evaluation_runtime: "server",
      bucketing_identifier: "device_id",
      filters: { groups: groups(100), payloads: { true: '{"a": 1.0}' } },
    };
    const flag = await make(settings);
    const body = { name: "Other" };
    const created = await owner.server.api("/api/organizations/@current/projects/", { method: "POST", body });
    const { id } = (await created.json()) as { id: number };
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByRole("button", { name: "Actions", exact: true }).click();
    await page.getByRole("button", { name: "Copy to another project" }).click();
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByText("Copied to Other.").waitFor();
    const found = await owner.server.api(`/api/projects/${id}/feature_flags/?search=remote`);
    const { results } = (await found.json()) as { results: object[] };
    expect(results[0]).toMatchObject({ ...settings, active: false });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("whole numbers beyond 2^53 are shown digit by digit", async () => {
    const digits = ["9007199254740993", "12345678901234567891"];
    const body = `{"api_key":"${owner.server.token}","event":"ordered","distinct_id":"user-1","properties":{"order":${digits[0]},"inner":{"id":${digits[1]}}}}`;
    await fetch(`${owner.server.url}/capture/`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
    });
    await owner.server.eventsWhenStored(1);
    const { page, context, errors } = await open();
    await page.goto("/console/events");
    await page.getByRole("table", { name: "Events", exact: true }).getByText("ordered").first().click();
    for (const number of digits) await page.getByRole("dialog").getByText(number).waitFor();
    await page.goto("/console/sql?q=SELECT properties FROM events");
    for (const number of digits) await page.getByRole("table").getByText(number).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a rejection is shown in the form for any field, and typed text stays", async () => {
    const { page, context, errors } = await open(400);
    await page.goto("/console/cohorts/new");
    await page.getByLabel("Name").fill("Those without a key");
    await page.getByRole("button", { name: "Add condition" }).click();
    await page.getByRole("button", { name: "Save cohort" }).click();
    await page.getByText("Each condition requires a key.").waitFor();
    expect(await page.getByLabel("Name").inputValue()).toBe("Those without a key");
    await page.getByLabel("Name").fill("n".repeat(500));
    await page.getByRole("button", { name: "Save cohort" }).click();
    await page.getByText("Ensure this field has no more than 400 characters.").waitFor();
    expect(await page.getByLabel("Name").getAttribute("aria-invalid")).toBe("true");

    await page.goto("/console/settings?tab=roles");
    await page.getByLabel("New role").fill("r".repeat(500));
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("Ensure this field has no more than").waitFor();
    expect(await page.getByLabel("New role").inputValue()).toBe("r".repeat(500));

    const body = { name: "Board" };
    const created = await owner.server.api(path("dashboards/"), { method: "POST", body });
    await page.goto(`/console/dashboards/${((await created.json()) as { id: number }).id}`);
    await page.getByRole("button", { name: "Actions of the dashboard" }).click();
    await page.getByRole("button", { name: "Rename" }).click();
    const dialog = page.getByRole("dialog", { name: "Rename" });
    await dialog.getByLabel("Name").fill("d".repeat(500));
    await page.keyboard.press("Enter");
    await dialog.getByText("Ensure this field has no more than").waitFor();
    expect(await dialog.getByLabel("Name").inputValue()).toBe("d".repeat(500));
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a choice that was rejected, or not confirmed, returns to the stored value", async () => {
    const { page, context, errors } = await open(403);
    await page.goto("/console/settings?tab=team");
    const level = page.getByRole("combobox", { name: "Level: Ann" });
    await level.selectOption({ label: "Member" });
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    expect(await level.evaluate((field: HTMLSelectElement) => field.selectedOptions[0]!.text)).toBe("Owner");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a user whose session ends within a form signs in over it, and the submission continues", async () => {
    const { page, context, errors } = await open(401);
    await page.goto("/console/flags?new=1");
    await page.getByLabel("Key", { exact: true }).fill("typed-before");
    await context.clearCookies();
    // Whatever the page has asked by itself meanwhile: the form to sign in may be there already.
    const click = (element: HTMLElement) => element.click();
    await page.getByRole("button", { name: "Create flag", includeHidden: true }).evaluate(click);
    await page.getByLabel("E-mail").fill(owner.server.initialized.user.email);
    await page.getByLabel("Password").fill("something else entirely");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "typed-before" }).waitFor();

    // Whoever does not want to is signed out, and sees nothing more.
    await context.clearCookies();
    await page.getByRole("switch", { name: "typed-before", includeHidden: true }).evaluate(click);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
    expect(await page.getByText("typed-before").count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });
});
