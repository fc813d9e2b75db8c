/** Every page, in both themes and widths: axe, no sideways scrolling, one h1, its address by itself, no trouble. */

import { beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { server } from "../support/use-server.ts";
import { axeFindings, openConsole, themes, useConsole, widths } from "./support.ts";

/** Address, heading, and a text that is there once the page is complete. */
const pages: readonly (readonly [path: string, heading: string, ready: string | RegExp])[] = [
  ["start", "Get started", "Protect your data"],
  ["overview", "Overview", "No page views yet"],
  ["events", "Events", "signed up"],
  ["sql", "SQL", "Write a SELECT over events, persons and groups."],
  ["sql?q=SELECT 1 AS one, 2 AS two", "SQL", "1 row"],
  ["sql?q=SELECT nothing", "SQL", "Query failed"],
  ["explore", "Explore", /^\d+ total$/],
  [
    "explore?question=" +
      encodeURIComponent('{"kind":"funnel","series":[{"event":"signed up"},{"event":"paid"}]}'),
    "Explore",
    "converted (",
  ],
  [
    "explore?question=" +
      encodeURIComponent(
        '{"kind":"funnel","shape":"time_to_convert","series":[{"event":"signed up"},{"event":"paid"}]}',
      ),
    "Explore",
    "1 person converted, after",
  ],
  ["explore?question=" + encodeURIComponent('{"kind":"lifecycle"}'), "Explore", "Inactive:"],
  ["explore?question=" + encodeURIComponent('{"kind":"retention"}'), "Explore", /^\d+ (person|people)$/],
  ["persons", "People", "user-1"],
  ["persons?search=unknown-user", "People", "No matching people"],
  [
    "persons/00000000-0000-4000-8000-000000000000",
    "People",
    "There is nothing at this address. It may have been deleted.",
  ],
  ["cohorts", "Cohorts", "Those who paid"],
  ["cohorts/new", "New cohort", "Add group"],
  ["cohorts/1?tab=members", "Those who paid", "user-1"],
  ["dashboards", "Dashboards", /^Flag usage \(\d+\)$/],
  ["activity", "Activity", "new-checkout"],
  ["activity?where=organization", "Activity", /./],
  ["settings", "Settings", "Danger zone"],
  ["settings?tab=approval", "Settings", "Changes to these flags need approval from another editor."],
  ["settings?tab=webhooks", "Settings", "No webhooks yet."],
  ["settings?tab=account", "Settings", "Sessions"],
  ["settings?tab=team", "Settings", "Members"],
  ["settings?tab=keys", "Settings", "First key"],
  ["settings?tab=roles", "Settings", "No role yet."],
  ["settings?tab=organization", "Settings", "Who may edit flags"],
  ["instance", "Instance", "No ingestion warnings in the last 24 hours."],
  ["instance?tab=backups", "Instance", "No backup yet"],
  ["instance?tab=imports", "Instance", "Nothing was imported"],
  ["instance?tab=storage", "Instance", "Journal"],
  ["instance?tab=checks", "Instance", "Run checks"],
  ["nothing/like/this", "Page not found", "There is nothing at this address."],
];

describe.skipIf(chromiumPath === undefined)("pages", () => {
  useConsole();
  beforeAll(async () => {
    await server.api(`/api/projects/${server.initialized.project.id}/feature_flags/`, {
      method: "POST",
      body: { key: "new-checkout", filters: { groups: [{ properties: [], rollout_percentage: 40 }] } },
    });
    await server.batch([
      { event: "signed up", distinct_id: "user-1", properties: { $set: { plan: "pro" } } },
      { event: "paid", distinct_id: "user-1" },
      { event: "signed up", distinct_id: "user-2" },
    ]);
    await server.eventsWhenStored(3);
    const created = await server.api(`/api/projects/${server.initialized.project.id}/cohorts/`, {
      method: "POST",
      body: {
        name: "Those who paid",
        filters: {
          properties: {
            type: "OR",
            values: [
              { type: "AND", values: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }] },
            ],
          },
        },
      },
    });
    const { id } = (await created.json()) as { id: number };
    await server.api(`/api/projects/${server.initialized.project.id}/feature_flags/`, {
      method: "POST",
      body: {
        key: "for-payers",
        filters: { groups: [{ properties: [{ key: "id", type: "cohort", value: id }] }] },
      },
    });
  });

  test("a cohort lists the flags that use it, in the list and on its page", async () => {
    const { page, context } = await openConsole();
    for (const path of ["cohorts", "cohorts/1"]) {
      await page.goto(`/console/${path}`);
      await page.getByRole("main").getByRole("link", { name: "for-payers" }).click();
      await page.getByRole("heading", { level: 1, name: "for-payers" }).waitFor();
    }
    await context.close();
  });

  test("flags without variants in the part for them are flags like others", async () => {
    const { page, context, errors } = await openConsole();
    for (const [key, multivariate] of [
      ["no-variants", {}],
      ["null-variants", { variants: null }],
    ] as const) {
      const filters = { groups: [{ properties: [], rollout_percentage: 100 }], multivariate };
      const created = await server.api(`/api/projects/${server.initialized.project.id}/feature_flags/`, {
        method: "POST",
        body: { key, filters },
      });
      expect(created.status).toBe(201);
      await page.goto("/console/flags");
      await page.getByRole("link", { name: key }).click();
      await page.getByRole("spinbutton", { name: "Rollout percentage" }).waitFor();
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("long names without a space do not make a flag's page wider than the screen", async () => {
    const filters = { groups: [{ properties: [], rollout_percentage: 100 }] };
    const created = await server.api(`/api/projects/${server.initialized.project.id}/feature_flags/`, {
      method: "POST",
      body: { key: "k".repeat(300), name: "n".repeat(300), tags: ["t".repeat(200)], filters },
    });
    const { id } = (await created.json()) as { id: number };
    for (const width of widths) {
      const { page, context } = await openConsole({ width });
      await page.goto(`/console/flags/${id}`);
      await page.getByRole("spinbutton", { name: "Rollout percentage" }).waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await context.close();
    }
  });

  test("a page that fails to render reports it, and the menu still works", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto('/console/explore?question={"series":[null]}');
    await page.getByRole("heading", { level: 1, name: "Something went wrong" }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "People" }).click();
    await page.getByRole("main").getByText("user-1").first().waitFor();
    await context.close();
    expect(errors.length).toBeGreaterThan(0);
  });

  for (const theme of themes) {
    for (const width of widths) {
      test(`all pages, ${theme}, ${width}`, async () => {
        const { page, context, errors } = await openConsole({ theme, width, expectedStatus: [400, 404] });
        for (const [path, heading, ready] of pages) {
          await page.goto(`/console/${path}`);
          await page.getByRole("heading", { level: 1, name: heading }).waitFor();
          await page.getByRole("main").getByText(ready).filter({ visible: true }).first().waitFor();
          expect([path, await axeFindings(page)]).toEqual([path, []]);
          const scrolled = await page.evaluate(() => document.documentElement.scrollWidth);
          expect([path, scrolled <= width]).toEqual([path, true]);
          expect(await page.locator("h1").count()).toBe(1);
          expect(await page.title()).toEndWith("· Flagkeep");
        }
        await context.close();
        expect(errors).toEqual([]);
      });
    }
  }
});
