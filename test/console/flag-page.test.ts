/** A flag's page: header, tabs, effect, test people, the save bar with its menu, release to everyone. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, chooseIn, ownersBrowser } from "./support.ts";

interface Flag {
  id: number;
  active: boolean;
  name: string;
  filters: { groups: { rollout_percentage: number }[] };
}

describe.skipIf(chromiumPath === undefined)("a flag's page", () => {
  const owner = ownersBrowser();
  const path = (rest: string) => `/api/projects/${owner.server.initialized.project.id}/${rest}`;
  const post = async <Answer>(rest: string, body: object) => {
    const answer = await owner.server.api(path(rest), { method: "POST", body });
    expect(answer.status).toBe(201);
    return (await answer.json()) as Answer;
  };
  const variants = [
    { key: "control", rollout_percentage: 50 },
    { key: "test", rollout_percentage: 50 },
  ];
  const make = (key: string, more: object = {}) =>
    post<Flag>("feature_flags/", {
      key,
      filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
      ...more,
    });
  const read = async (id: number) =>
    (await (await owner.server.api(path(`feature_flags/${id}/`))).json()) as Flag;
  const share = async (id: number) => (await read(id)).filters.groups[0]!.rollout_percentage;
  const rollout = { name: "Rollout percentage" };

  test("the header has description, type, last change and people; tabs are in the address", async () => {
    const flag = await make("described", {
      name: "Before",
      filters: { groups: [], multivariate: { variants } },
    });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}?tab=access`);
    await page.getByRole("heading", { name: "Roles that may edit this flag" }).waitFor();
    const tabs = page.getByRole("tab");
    expect(await tabs.allInnerTexts()).toEqual(["Release", "Evaluations", "History", "Code", "Settings"]);
    await tabs.filter({ hasText: "Release" }).click();
    await page.waitForURL((url) => url.search === "");
    for (const text of ["Variants", /^changed .* by Ann · v1$/])
      await page.locator(".facts").getByText(text).waitFor();
    await page
      .locator(".facts")
      .getByText(/^Affected people: about 0 of \d+/)
      .waitFor();
    await page.getByRole("textbox", { name: "Description" }).fill("After");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").getByText("description “Before” → “After”").waitFor();
    await page.getByRole("button", { name: "Save changes" }).click();
    await until(async () => (await read(flag.id)).name === "After", "the description is stored");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the effect shows people now and after, per variant; people of a cohort are tested", async () => {
    const people = Array.from({ length: 30 }, (_, index) => ({
      event: "$identify",
      distinct_id: `user-${index}`,
      properties: { $set: { plan: "pro" } },
    }));
    await owner.server.batch(people);
    await owner.server.eventsWhenStored(30);
    const pro = { key: "plan", type: "person", operator: "exact", value: ["pro"] };
    const properties = { type: "OR", values: [{ type: "AND", values: [pro] }] };
    const cohort = await post<{ id: number }>("cohorts/", { name: "Payers", filters: { properties } });
    const members = async () =>
      (
        (await (await owner.server.api(path(`cohorts/${cohort.id}/persons/`))).json()) as {
          results: object[];
        }
      ).results.length;
    await until(async () => (await members()) === 30, "the cohort is filled");
    const flag = await make("effective", {
      filters: { groups: [{ properties: [], rollout_percentage: 0 }], multivariate: { variants } },
    });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}`);
    const effect = page.getByRole("region", { name: "Effect" });
    await effect.getByRole("row", { name: "Get the flag 0 0%" }).waitFor();
    await page.getByRole("spinbutton", rollout).fill("100");
    await effect.getByRole("row", { name: "Get the flag 0 30 100%" }).waitFor();
    await effect.getByRole("row", { name: /^control 0 \d+/ }).waitFor();
    await chooseIn(effect, "Cohort", "Payers");
    await effect.getByText("Condition set 1: matched", { exact: true }).nth(9).waitFor();
    expect(await effect.getByText("Condition set 1: matched", { exact: true }).count()).toBe(10);
    expect(await effect.locator(".ruler").count()).toBe(0);
    await effect
      .getByRole("button", { name: /^Why: / })
      .first()
      .click();
    await effect.locator(".ruler").first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the save bar covers no control; its menu schedules the draft, or proposes it", async () => {
    const flag = await make("saved-later");
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}`);
    const before = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.getByRole("spinbutton", rollout).fill("20");
    const menu = page.getByRole("button", { name: "More ways to save" });
    await menu.waitFor();
    // Its height was reserved.
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThanOrEqual(before + 8);
    const covered = await page.evaluate(() => {
      const bar = document.querySelector(".save-bar")!;
      return [...document.querySelectorAll<HTMLElement>("main :is(button, input, select, textarea)")].flatMap(
        (control) => {
          if (bar.contains(control)) return [];
          control.scrollIntoView({ block: "nearest" });
          const own = control.getBoundingClientRect();
          return own.width > 0 && own.bottom > bar.getBoundingClientRect().top + 1 ? [control.outerHTML] : [];
        },
      );
    });
    expect(covered).toEqual([]);
    await menu.click();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Schedule…" }).click();
    const dialog = page.getByRole("dialog", { name: "Schedule…" });
    await dialog.getByText("condition set 1: rollout 10 → 20%").waitFor();
    await dialog.getByLabel("When (your local time)").fill("2099-01-02T03:04");
    await dialog.getByRole("button", { name: "Schedule", exact: true }).click();
    await page.getByText("1 scheduled change", { exact: true }).waitFor();
    await menu.waitFor({ state: "detached" });
    expect(await share(flag.id)).toBe(10);
    await page
      .getByRole("region", { name: "Scheduled changes" })
      .getByRole("button", { name: "Show" })
      .click();
    await page
      .getByRole("listitem")
      .filter({ hasText: "2 Jan 2099" })
      .getByText("rollout 10 → 20%")
      .waitFor();

    await page.getByRole("tab", { name: "Release" }).click();
    await page.getByRole("spinbutton", rollout).fill("30");
    await menu.click();
    await page.getByRole("button", { name: "Propose change" }).click();
    await page
      .getByRole("dialog", { name: "Propose change" })
      .getByRole("button", { name: "Propose change" })
      .click();
    await page.getByRole("region", { name: "Proposed change" }).getByText("rollout 10 → 30%").waitFor();
    expect(await share(flag.id)).toBe(10);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag is released to everyone and turned off for everyone, with undo", async () => {
    const flag = await make("all-at-once");
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}`);
    const act = async (name: string) => {
      await page.getByRole("button", { name: "Actions" }).click();
      await page.getByRole("button", { name, exact: true }).click();
      return page.getByRole("dialog", { name: `${name}: all-at-once` });
    };
    const release = await act("Release to everyone");
    await release.getByText("condition set 1: rollout 10 → 100%").waitFor();
    await release.getByRole("button", { name: "Release to everyone" }).click();
    await until(async () => (await share(flag.id)) === 100, "it is released");
    await page.getByRole("button", { name: "Undo" }).click();
    await until(async () => (await share(flag.id)) === 10, "it is as before");
    const off = await act("Turn off for everyone");
    await off.getByRole("button", { name: "Turn off for everyone" }).click();
    await until(async () => !(await read(flag.id)).active, "it is off");
    expect(await share(flag.id)).toBe(10);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a gradual rollout is scheduled step by step, with a guardrail", async () => {
    const flag = await make("gradual", {
      active: false,
      filters: {
        groups: [
          { properties: [], rollout_percentage: 100 },
          { properties: [], rollout_percentage: 0 },
        ],
      },
    });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByRole("button", { name: "Actions" }).click();
    await page.getByRole("button", { name: "Gradual rollout…" }).click();
    const dialog = page.getByRole("dialog", { name: "Gradual rollout" });
    const steps = dialog.getByRole("list", { name: "Steps" }).getByRole("listitem");
    expect(await steps.count()).toBe(4);
    await dialog.getByLabel("Percentages").fill("50, 25");
    await dialog.getByText("Rising numbers up to 100").waitFor();
    expect(await dialog.getByRole("button", { name: "Schedule" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Percentages").fill("10 50 100");
    await dialog.getByLabel("First step (your local time)").fill("2099-01-02T03:00");
    await dialog.getByLabel("Next step after").selectOption("2 days");
    await steps.filter({ hasText: "100%" }).getByText("6 Jan 2099").waitFor();
    await dialog.getByText("Stop when an event is too frequent").click();
    await dialog.getByLabel("Limit, of people with the flag").fill("20");
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Schedule" }).click();
    await page.getByText("Gradual rollout of gradual scheduled").waitFor();
    await page.getByText("4 scheduled changes", { exact: true }).waitFor();
    await page.getByRole("tab", { name: "Settings" }).click();
    const line = (day: string) => page.getByRole("listitem").filter({ hasText: day });
    await line("2 Jan 2099").getByText("Turn on").waitFor();
    await line("4 Jan 2099").getByText("Condition set 2: rollout 50%").waitFor();
    const stored = (await (await owner.server.api(path(`feature_flags/${flag.id}/`))).json()) as object;
    expect(stored).toMatchObject({
      rollback_conditions: [
        {
          threshold_type: "event_rate",
          event: "$exception",
          operator: "gt",
          threshold: 0.2,
          window_minutes: 60,
        },
      ],
    });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("evaluations: people per value, the conversion by an event, and changes of this flag alone", async () => {
    const flag = await make("compared");
    await owner.server.api(path(`feature_flags/${flag.id}/`), { method: "PATCH", body: { active: false } });
    const seen = (person: string, value: string, minutesAgo: number) => ({
      event: "$feature_flag_called",
      distinct_id: person,
      timestamp: new Date(Date.now() - minutesAgo * 60_000).toISOString(),
      properties: { $feature_flag: "compared", $feature_flag_response: value },
    });
    const paid = (person: string, minutesAgo: number) => ({
      event: "compared paid",
      distinct_id: person,
      timestamp: new Date(Date.now() - minutesAgo * 60_000).toISOString(),
    });
    await owner.server.batch([
      seen("p1", "control", 9),
      seen("p1", "control", 8),
      seen("p2", "control", 9),
      paid("p1", 1),
      // Paid before the first evaluation: not converted.
      paid("p2", 10),
      seen("p3", "test", 9),
      paid("p3", 1),
    ]);
    await until(
      async () =>
        (await owner.server.query("SELECT 1 AS n FROM events WHERE event = 'compared paid'")).length === 3,
      "the events are stored",
    );
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}?tab=evaluations`);
    await page.getByRole("row", { name: "control 2 3", exact: true }).waitFor();
    await page.getByRole("row", { name: "test 1 1", exact: true }).waitFor();
    await page.getByLabel("Converted by").fill("compared pa");
    await page.getByRole("option", { name: "compared paid" }).click();
    await page.getByRole("row", { name: "control 2 3 50% (1 of 2)" }).waitFor();
    await page.getByRole("row", { name: "test 1 1 100% (1 of 1)" }).waitFor();
    expect(page.url()).toContain("goal=compared");
    // Any name, for example of an event that is not listed yet.
    await page.getByLabel("Converted by").fill("compared never");
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: "control 2 3 0% (0 of 2)" }).waitFor();
    await page.getByLabel("Converted by").fill("compared paid");
    await page.keyboard.press("Tab");
    await page.getByRole("row", { name: "control 2 3 50% (1 of 2)" }).waitFor();
    // Made and turned off today; other flags of these tests are not counted.
    await page.getByRole("link", { name: /^2 flag changes on / }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag names the experiments and flags that use it", async () => {
    const flag = await make("tested", {
      filters: { groups: [{ properties: [], rollout_percentage: 100 }], multivariate: { variants } },
    });
    const experiment = await post<{ id: number }>("experiments/", {
      name: "Checkout test",
      feature_flag_key: "tested",
    });
    const condition = { key: String(flag.id), type: "flag", operator: "flag_evaluates_to", value: true };
    await make("dependent", { filters: { groups: [{ properties: [condition], rollout_percentage: 100 }] } });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByText("1 flag depends on this one").waitFor();
    await page.getByRole("main").getByRole("link", { name: "dependent" }).waitFor();
    await page.getByRole("link", { name: "Checkout test" }).click();
    await page.waitForURL(new RegExp(`/experiments/${experiment.id}`));
    await context.close();
    expect(errors).toEqual([]);
  });
});
