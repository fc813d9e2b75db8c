/** Experiments: set up step by step, launched, read, decided; holdouts and saved metrics. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { looksRight, ownersBrowser } from "./support.ts";

const dayMs = 86_400_000;

describe.skipIf(chromiumPath === undefined)("experiments", () => {
  const owner = ownersBrowser();
  const api = async (path: string, body?: object, method = "POST") =>
    (await (
      await owner.server.api(`/api/projects/@current/${path}`, body ? { method, body } : {})
    ).json()) as Record<string, unknown>;
  const seen = (flag: string, variant: string, id: string, more: object = {}) => ({
    event: "$feature_flag_called",
    distinct_id: id,
    ...more,
    properties: { $feature_flag: flag, $feature_flag_response: variant },
  });
  /** Sends events and computes the results again, since the server caches them. */
  const send = async (id: number, events: Record<string, unknown>[]) => {
    const [{ n: before }] = (await owner.server.query("SELECT count(*) AS n FROM events")) as [{ n: number }];
    await owner.server.batch(events);
    await owner.server.eventsWhenStored(before + events.length);
    await owner.server.api(`/api/projects/@current/experiments/${id}/results/?refresh=true`);
  };

  test("five steps save a draft each, with the keyboard alone", async () => {
    // Of 40 people with a cart, 20 paid.
    await owner.server.batch(
      Array.from({ length: 60 }, (_, place) => ({
        event: place < 40 ? "cart" : "order paid",
        distinct_id: `before-${place % 40}`,
      })),
    );
    await owner.server.eventsWhenStored(60);
    await api("experiment_holdouts/", { name: "Control group", filters: [{ rollout_percentage: 5 }] });
    const { page, context, errors } = await owner.open();
    await page.goto("/console/experiments");
    await page.getByText("No experiments yet").waitFor();
    await page.getByRole("link", { name: "New experiment" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "New experiment" }).waitFor();
    await page.getByLabel("Name").fill("Shorter checkout");
    await page.getByLabel("Hypothesis", { exact: true }).fill("If <b>one step</b>, then more orders.");
    await page.getByLabel("Flag key").fill("short-checkout");
    await looksRight(page);
    await page.getByLabel("Flag key").press("Enter");

    await page.getByRole("heading", { level: 2, name: "Variants" }).waitFor();
    expect((await api("experiments/1/")).description).toBe("If <b>one step</b>, then more orders.");
    await page.getByRole("button", { name: "Add variant" }).press("Enter");
    const shares = page.getByLabel("Percentage");
    await shares.last().fill("40");
    await page.getByText("The percentages add up to 107%").waitFor();
    await page.getByRole("button", { name: "Save and continue" }).press("Enter");
    await page.getByRole("heading", { level: 2, name: "Variants" }).waitFor();
    await shares.last().fill("33");
    await page.getByLabel("Baseline").selectOption("test");
    await looksRight(page);
    await page.getByRole("button", { name: "Save and continue" }).press("Enter");

    await page.getByRole("heading", { level: 2, name: "Audience" }).waitFor();
    await page.getByRole("button", { name: "Add condition" }).press("Enter");
    await page.getByLabel("Property").fill("plan");
    await page.getByLabel("Value", { exact: true }).fill("pro");
    await page.getByLabel("Rollout percentage").fill("80");
    await page.getByLabel("Holdout").selectOption("Control group (5%)");
    await page.getByLabel("Minimum exposures per variant").fill("10");
    await looksRight(page);
    await page.getByRole("button", { name: "Save and continue" }).press("Enter");

    await page.getByRole("button", { name: "Add metric" }).press("Enter");
    // The third step of three; a repeated message replaces the earlier one.
    expect(await page.getByText("Experiment saved.").count()).toBe(1);
    const form = page.getByRole("dialog", { name: "Add metric" });
    await form.getByLabel("Event", { exact: true }).fill("cart");
    await form.getByRole("button", { name: "Add step" }).press("Enter");
    await page.waitForFunction(
      () => (document.activeElement as HTMLInputElement).labels?.[0]?.textContent === "Step 2",
    );
    await form.getByLabel("Step 2", { exact: true }).fill("order paid");
    await form.getByLabel("Guardrail").check();
    await form.getByLabel("Tolerance").fill("10");
    await looksRight(page);
    await form.getByRole("button", { name: "Add metric" }).press("Enter");
    await page.getByText(/Last two weeks: \d+% per person/).waitFor();
    await page.getByRole("button", { name: "Continue" }).press("Enter");

    await page.getByRole("heading", { level: 2, name: "Running time" }).waitFor();
    await page.getByText("To detect a change of 10%").waitFor();
    await page.getByText("Frequentist", { exact: true }).click();
    await page.getByLabel("Sequential testing").waitFor();
    await page.getByLabel("Smallest effect to detect").press("ArrowRight");
    await looksRight(page);
    await page.getByRole("button", { name: "Save and finish" }).press("Enter");
    await page.getByText("Not launched yet").waitFor();
    await looksRight(page);

    const stored = await api("experiments/1/");
    expect(stored).toMatchObject({
      status: "draft",
      holdout_id: 1,
      minimum_exposures: 10,
      stats_config: { method: "frequentist", baseline_variant_key: "test" },
      running_time_calculation: { minimum_detectable_effect: 11 },
      metrics: [
        {
          series: [{ event: "cart" }, { event: "order paid" }],
          guardrail: { tolerance: 0.1, action: "warn" },
        },
      ],
      feature_flag: {
        active: false,
        filters: {
          groups: [{ properties: [{ key: "plan", value: ["pro"] }], rollout_percentage: 80 }],
          holdout: { id: 1, exclusion_percentage: 5 },
        },
      },
    });
    await context.close();
    expect(errors).toEqual([]);
  }, 90_000);

  test("from the launch to the first exposure, a verdict and a shipped variant", async () => {
    const { id } = (await api("experiments/", {
      name: "Green button",
      feature_flag_key: "green-button",
      minimum_exposures: 50,
      metrics: [
        {
          kind: "ExperimentMetric",
          metric_type: "funnel",
          name: "Clicks",
          series: [{ kind: "EventsNode", event: "click" }],
        },
      ],
      metrics_secondary: [
        {
          kind: "ExperimentMetric",
          metric_type: "mean",
          name: "Errors",
          goal: "decrease",
          source: { kind: "EventsNode", event: "error" },
          guardrail: { tolerance: 0.05, action: "warn" },
        },
      ],
    })) as { id: number };
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/experiments/${id}`);
    await page.getByRole("button", { name: "Launch" }).click();
    const launch = page.getByRole("dialog", { name: "Launch" });
    await launch.getByText("Turns the flag on").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Waiting for the first exposure…").waitFor();
    await page.getByText('getFeatureFlag("green-button")').waitFor();
    await looksRight(page);
    // Nothing is clicked: the page notices the first exposures.
    await owner.server.batch(
      Array.from({ length: 40 }, (_, place) =>
        seen("green-button", place % 2 ? "test" : "control", `g-${place}`),
      ),
    );
    await page.getByText("20 of 50 exposures per variant").first().waitFor({ timeout: 30_000 });
    await page.getByText("Waiting for the first exposure…").waitFor({ state: "detached" });

    await api(`experiments/${id}/`, { start_date: new Date(Date.now() - 5 * dayMs).toISOString() }, "PATCH");
    const events = Array.from({ length: 600 }, (_, place) => {
      const variant = place % 2 ? "test" : "control";
      const timestamp = new Date(Date.now() - (4 - (place % 4)) * dayMs).toISOString();
      const later = new Date(Date.parse(timestamp) + 1_000).toISOString();
      const person = `h-${place}`;
      const clicks = place % 20 < (variant === "test" ? 14 : 6);
      const fails = place % 20 < (variant === "test" ? 16 : 3);
      return [
        seen("green-button", variant, person, { timestamp }),
        ...(clicks ? [{ event: "click", distinct_id: person, timestamp: later }] : []),
        ...(fails ? [{ event: "error", distinct_id: person, timestamp: later }] : []),
      ];
    }).flat();
    await send(id, events);
    await page.reload();
    await page.getByText(/^test is better than control: \+\d/).waitFor();
    const table = page.getByRole("table", { name: "Metrics" });
    const rows = table.getByRole("row").filter({ has: page.getByRole("rowheader", { name: /^test/ }) });
    expect(await rows.nth(0).textContent()).toMatch(
      /Better[\s\S]*320[\s\S]*\+\d+(\.\d)?%[\s\S]* to [\s\S]*> 99\.9%/,
    );
    expect(await rows.nth(1).textContent()).toMatch(/Worse[\s\S]*Guardrail violated/);
    const bar = rows.nth(0).getByRole("img", { name: /^test: \+.* to \+/ });
    expect(await bar.evaluate((svg) => svg.querySelector(".hatch"))).toBeNull();
    const [zero, span] = await bar.evaluate((svg) =>
      [svg.querySelector(".zero")!, svg.querySelector(".span")!].map(
        (one) => one.getBoundingClientRect().left,
      ),
    );
    expect(span!).toBeGreaterThan(zero!);
    expect(await rows.nth(1).locator(".hatch").count()).toBe(1);
    await page.getByText("320 (50%)").first().waitFor();
    await page.getByText("Sample ratio as expected").waitFor();
    const effect = page.locator("section", { has: page.getByRole("heading", { name: "Effect over time" }) });
    await effect.getByRole("img").waitFor();
    await effect.getByRole("button", { name: "Show as table" }).click();
    expect(await effect.getByRole("row").count()).toBeGreaterThanOrEqual(4);
    await effect.getByLabel("Metric").selectOption("Errors");
    await effect.getByText(/^test so far: \+/).waitFor();
    await looksRight(page);

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog", { name: "Pause" }).getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog", { name: "Resume" }).getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Ship variant" }).click();
    const ship = page.getByRole("dialog", { name: "Ship variant" });
    await ship.getByText("New first condition set: everyone gets test, 100%").waitFor();
    await ship.getByText("1 condition set stays below it").waitFor();
    await ship.getByLabel("Conclusion").selectOption("Won");
    await ship.getByLabel("Comment").fill("<i>Clear</i>");
    await looksRight(page);
    await ship.getByRole("button", { name: "Ship variant" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    await page.getByText("<i>Clear</i>").waitFor();
    const stored = await api(`experiments/${id}/`);
    expect(stored).toMatchObject({
      status: "stopped",
      conclusion: "won",
      feature_flag: { filters: { groups: [{ variant: "test", rollout_percentage: 100 }, {}] } },
    });

    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("button", { name: "Archive" }).click();
    await page.getByRole("dialog", { name: "Archive" }).getByRole("button", { name: "Archive" }).click();
    await page.getByRole("button", { name: "Unarchive" }).waitFor();
    const { id: flagId } = stored.feature_flag as { id: number };
    await api(`feature_flags/${flagId}/`, { active: false, performed_rollback: true }, "PATCH");
    await page.reload();
    await page.getByText("The flag was turned off automatically").waitFor();
    await page.getByRole("link", { name: "Show figures" }).click();
    await page.getByRole("tab", { name: "History", selected: true }).waitFor();
    await page.goto("/console/experiments?status=archived");
    const list = page.getByRole("table", { name: "Experiments" });
    await list.getByRole("link", { name: "Green button" }).waitFor();
    await list.getByRole("img", { name: "Guardrail violated" }).waitFor();
    await list.getByRole("img", { name: /^test: \+/ }).waitFor();
    await looksRight(page);
    await page.getByRole("searchbox").fill("no such name");
    await page.getByText("No matching experiments").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  }, 120_000);

  test("with a sample ratio mismatch there is no verdict, and shipping asks again", async () => {
    const { id } = (await api("experiments/", {
      name: "Lopsided",
      feature_flag_key: "lopsided",
      metrics: [
        {
          kind: "ExperimentMetric",
          metric_type: "funnel",
          name: "Clicks",
          series: [{ kind: "EventsNode", event: "click" }],
        },
      ],
    })) as { id: number };
    await api(`experiments/${id}/launch/`, {});
    const events = Array.from({ length: 400 }, (_, place) => [
      seen("lopsided", place % 4 ? "test" : "control", `l-${place}`),
      ...(place % 4 === 1 ? [{ event: "click", distinct_id: `l-${place}` }] : []),
    ]).flat();
    await send(id, events);
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/experiments/${id}`);
    await page.getByText("No verdict: the variants do not have the expected ratio").waitFor();
    await page.getByText(/^Sample ratio mismatch \(p = /).waitFor();
    const table = page.getByRole("table", { name: "Metrics" });
    await table.getByText("No verdict yet").waitFor();
    expect(await table.getByText(/Better|Worse/).count()).toBe(0);
    await page.getByRole("button", { name: "Ship variant" }).click();
    const ship = page.getByRole("dialog", { name: "Ship variant" });
    expect(await ship.getByRole("button", { name: "Ship variant" }).isDisabled()).toBe(true);
    await looksRight(page);
    await ship.getByLabel("Ship despite the sample ratio mismatch").check();
    await ship.getByRole("button", { name: "Ship variant" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    await page.goto("/console/experiments");
    await page.getByRole("img", { name: "Sample ratio mismatch" }).waitFor();

    // A rejected transition says why, in the dialog.
    await page.goto(`/console/experiments/${id}`);
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("button", { name: "Archive" }).click();
    await api(`experiments/${id}/archive/`, {});
    await page.getByRole("dialog").getByRole("button", { name: "Archive" }).click();
    await page.getByRole("dialog").getByText("Experiment is already archived.").waitFor();
    await context.close();
    expect(errors.filter((text) => !text.includes("status of 400"))).toEqual([]);
  }, 90_000);

  test("holdouts and saved metrics are created, used, changed and deleted", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/experiments?tab=holdouts");
    await page.getByRole("button", { name: "New holdout" }).click();
    const form = page.getByRole("dialog", { name: "New holdout" });
    await form.getByLabel("Name").fill("<b>Nobody</b>");
    await form.getByLabel("Percentage held out").fill("7.5");
    await looksRight(page);
    await form.getByRole("button", { name: "Create holdout" }).click();
    await page.getByText("<b>Nobody</b>").waitFor();
    await page.getByText("7.5%").waitFor();
    await page.getByRole("button", { name: "Edit <b>Nobody</b>" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Few");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Delete Few" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete holdout" }).click();
    await page.getByText("Few").waitFor({ state: "detached" });

    await page.getByRole("tab", { name: "Saved metrics" }).click();
    await page.getByRole("button", { name: "New saved metric" }).click();
    const metric = page.getByRole("dialog", { name: "New saved metric" });
    for (const type of ["ratio", "retention", "mean"]) await metric.getByLabel("Type").selectOption(type);
    await metric.getByLabel("Name").fill("Revenue");
    await metric.getByLabel("Event", { exact: true }).fill("order paid");
    await metric.getByLabel("Measure").selectOption("Sum");
    await metric.getByLabel("Property").fill("amount");
    await looksRight(page);
    await metric.getByRole("button", { name: "Create metric" }).click();
    await page.getByText("Revenue").waitFor();
    const [saved] = ((await api("experiment_saved_metrics/")) as { results: [Record<string, object>] })
      .results;
    expect(saved.query).toMatchObject({
      metric_type: "mean",
      source: { event: "order paid", math: "sum", math_property: "amount" },
    });
    expect(saved.query).not.toHaveProperty("numerator");

    const { id } = (await api("experiments/", { name: "Uses it", feature_flag_key: "uses-it" })) as {
      id: number;
    };
    await page.goto(`/console/experiments/${id}/setup?step=metrics`);
    await page.getByLabel("Add saved metric").selectOption("Revenue");
    await page.getByText("Saved metric", { exact: true }).waitFor();
    expect((await api(`experiments/${id}/`)).saved_metrics_ids).toMatchObject([{ id: saved.id }]);
    await page.getByRole("button", { name: "Remove Revenue" }).click();
    await page.getByText("No primary metric yet.").waitFor();
    await page.goto("/console/experiments?tab=metrics");
    await page.getByRole("button", { name: "Delete Revenue" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete saved metric" }).click();
    await page.getByText("No saved metrics yet").waitFor();
    await looksRight(page);
    await context.close();
    expect(errors.filter((text) => !text.includes("status of 400"))).toEqual([]);
  }, 90_000);
});
