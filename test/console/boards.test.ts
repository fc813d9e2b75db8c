/** Dashboards and the clean-up of stale flags in the browser. */

import { beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("dashboards and clean-up", () => {
  const owner = ownersBrowser();
  const { open, path, post } = owner;

  beforeAll(async () => {
    await owner.server.batch([
      { event: "paid", distinct_id: "user-1" },
      { event: "paid", distinct_id: "user-2" },
    ]);
    await owner.server.eventsWhenStored(2);
  });

  test("tiles are moved by keys, computed again, duplicated and opened; one that fails is alone", async () => {
    const { id } = await post<{ id: number }>("dashboards/", { name: "Money" });
    const source = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "paid", math: "total" }] };
    for (const [name, query] of [
      ["Payments", { kind: "InsightVizNode", source }],
      ["Broken", { kind: "PathsQuery" }],
      [
        "By name",
        {
          kind: "DataVisualizationNode",
          source: { kind: "HogQLQuery", query: "SELECT event, 40 + 2 AS n FROM events LIMIT 1" },
        },
      ],
    ] as const) {
      await post("insights/", { name, query, dashboards: [id] });
    }
    const { page, context, errors } = await open();
    await page.goto(`/console/dashboards/${id}`);
    await page.getByText("2 total").waitFor();
    await page.getByText("are not supported").waitFor();
    await page.getByRole("cell", { name: "42" }).waitFor();
    const names = async () => await page.getByRole("heading", { level: 2 }).allTextContents();
    expect(await names()).toEqual(["Payments", "Broken", "By name"]);
    await page.getByRole("button", { name: "Actions: Payments", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await until(async () => (await names()).join() === "Broken,Payments,By name", "the tile has moved");
    const stored = async () =>
      (await (await owner.server.api(path(`dashboards/${id}/`))).json()) as {
        tiles: { insight: { name: string } }[];
      };
    await until(async () => (await stored()).tiles[1]!.insight.name === "Payments", "the move is stored");
    expect(await axeFindings(page)).toEqual([]);

    await owner.server.capture({ event: "paid", distinct_id: "user-3" });
    await owner.server.eventsWhenStored(3);
    await page.getByRole("button", { name: "Refresh Payments" }).click();
    await page.getByText("3 total").waitFor();
    await page.getByRole("button", { name: "Actions: Payments", exact: true }).click();
    await page.getByRole("button", { name: "Duplicate" }).click();
    await page.getByRole("heading", { name: "Payments (copy)" }).waitFor();
    await page.getByRole("button", { name: "Actions: Payments", exact: true }).click();
    await page.getByRole("button", { name: "Open in Explore" }).click();
    await page.getByRole("heading", { level: 1, name: "Explore" }).waitFor();
    await page.getByText("3 total").waitFor();
    expect(await page.getByLabel("A: Event").inputValue()).toBe("paid");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a dashboard's dates hold for its insights, until others are chosen", async () => {
    const { id } = await post<{ id: number }>("dashboards/", {
      name: "Long ago",
      filters: { date_from: "2001-01-01", date_to: "2001-01-02" },
    });
    const series = [{ kind: "EventsNode", event: "paid", math: "total" }];
    await post("insights/", { name: "Paid", query: { kind: "TrendsQuery", series }, dashboards: [id] });
    const { page, context, errors } = await open();
    await page.goto(`/console/dashboards/${id}`);
    await page.getByText("No matching events in this period.").waitFor();
    const range = page.getByLabel("Date range");
    expect(await range.locator("option:checked").textContent()).toContain("the dashboard's");
    await range.selectOption("-7d");
    await page.getByText(/\d total/).waitFor();
    expect(errors).toEqual([]);
    await context.close();
  });

  test("a statement is saved under a name, listed on the page of statements, deleted and restored", async () => {
    const { page, context, errors } = await open();
    await page.goto(`/console/sql?q=${encodeURIComponent("SELECT 40 + 2 AS answer")}`);
    await page.getByText(/^1 row\b/).waitFor();
    const hostile = "<b>The answer</b>";
    const save = async (board?: string) => {
      await page.getByRole("button", { name: "Save", exact: true }).click();
      const dialog = page.getByRole("dialog", { name: "Save as an insight" });
      await dialog.getByLabel("Name", { exact: true }).fill(hostile);
      if (board !== undefined) {
        await dialog.getByLabel("Dashboard").selectOption({ label: "New dashboard" });
        await dialog.getByLabel("Name of the dashboard").fill(board);
      }
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await save();
    const retained = page.getByRole("button", { name: hostile, exact: true });
    await retained.waitFor();
    await page.goto("/console/sql");
    await retained.click();
    await page.getByRole("table", { name: "SQL" }).getByText("42", { exact: true }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: `Remove ${hostile}` }).click();
    await retained.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo" }).click();
    await retained.waitFor();
    await save("Answers");
    await page.goto("/console/dashboards");
    await page.getByRole("link", { name: "Answers" }).click();
    await page.getByRole("cell", { name: "42", exact: true }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("stale flags are reviewed: reason, dependents, deletion", async () => {
    const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] };
    const flags: { id: number }[] = [];
    for (const key of ["old-banner", "old-menu"]) {
      flags.push(await post<{ id: number }>("feature_flags/", { key, filters: everybody }));
    }
    await post("feature_flags/", {
      key: "uses-menu",
      filters: {
        groups: [
          {
            properties: [
              {
                key: String(flags[1]!.id),
                type: "flag",
                operator: "flag_evaluates_to",
                value: true,
              },
            ],
            rollout_percentage: 50,
          },
        ],
      },
    });
    // A flag is stale when it has been the same for everybody for long.
    const { page, context, errors } = await open();
    await page.route(/feature_flags\/\?.*active=STALE/, async (route) => {
      const answer = await owner.server.api(path("feature_flags/?order=key&search=old-"));
      await route.fulfill({ json: await answer.json() });
    });
    await page.goto("/console/flags?state=stale");
    await page.getByRole("button", { name: "Remove stale flags" }).click();
    const first = page.getByRole("dialog", { name: "Remove stale flags: 1 of 2" });
    await first.getByText("git grep -n -F 'old-banner'").waitFor();
    await first.getByText("Why it is stale").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await first.getByRole("button", { name: "Delete" }).click();
    const second = page.getByRole("dialog", { name: "Remove stale flags: 2 of 2" });
    await second.getByRole("link", { name: "uses-menu" }).waitFor();
    expect(await second.getByRole("button", { name: "Delete" }).getAttribute("aria-disabled")).toBe("true");
    await second.getByRole("button", { name: "Skip" }).click();
    await page.getByText("Done: 1 deleted, 0 turned off.").waitFor();
    const list = (await (await owner.server.api(path("feature_flags/?search=old-"))).json()) as {
      count: number;
    };
    expect(list.count).toBe(1);
    await context.close();
    expect(errors).toEqual([]);
  });
});
