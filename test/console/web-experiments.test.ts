/** Web experiments: written without code, launched, and shown with what their pages need. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { looksRight, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("web experiments", () => {
  const owner = ownersBrowser();

  test("a web experiment is created, changed, launched and previewed", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open(400);
    const stored = async () => {
      const { results } = await (await server.api("/api/projects/1/web_experiments/")).json();
      return results[0];
    };
    await page.goto("/console/experiments/new");
    await page.getByText("On pages").click();
    await page.getByLabel("Name").fill("Heading");
    await looksRight(page);
    await page.getByRole("button", { name: "Save and continue" }).click();

    await page.getByText("The control shows the pages as they are.").waitFor();
    const key = page.getByLabel("Variant key").nth(1);
    await key.fill("control");
    await page.getByText("Variant keys must be unique.").waitFor();
    await key.fill("test");
    const test = page.getByRole("region", { name: "test", exact: true });
    await test.getByLabel("CSS selector").fill("h1");
    await test.getByLabel("Text", { exact: true }).fill("<i>Sale</i>");
    await test.getByRole("button", { name: "Add change" }).click();
    const second = test.getByRole("group", { name: "Change 2" });
    await second.getByLabel("CSS selector").fill("#buy");
    await second.getByLabel("Content", { exact: true }).selectOption("Unchanged");
    await second.getByLabel("CSS", { exact: true }).fill("background: url(//e.example)");
    await test.getByLabel("Page URL").fill("/shop");
    await test.getByText("Only visits from a campaign").click();
    await test.getByLabel("UTM source").fill("mail");
    await looksRight(page);
    await page.getByRole("button", { name: "Save and continue" }).click();
    await page.getByText("css must not load anything").waitFor();
    await second.getByLabel("CSS", { exact: true }).fill("color: red");
    await page.getByRole("button", { name: "Save and continue" }).click();
    await page.getByRole("heading", { level: 2, name: "Audience" }).waitFor();
    expect((await stored()).variants).toEqual({
      control: { rollout_percentage: 50 },
      test: {
        rollout_percentage: 50,
        transforms: [
          { selector: "h1", text: "<i>Sale</i>" },
          { selector: "#buy", css: "color: red" },
        ],
        conditions: { url: "/shop", urlMatchType: "icontains", utm: { utm_source: "mail" } },
      },
    });

    // Back to the step: a change is removed and a variant added.
    await page.getByRole("link", { name: "Variants" }).click();
    await second.getByRole("button", { name: "Remove change 2" }).click();
    await page.getByRole("button", { name: "Add variant" }).click();
    const third = page.getByRole("region", { name: "test-2" });
    await third.getByLabel("CSS selector").fill("h1");
    await third.getByLabel("Content", { exact: true }).selectOption("Replace HTML");
    await third.getByLabel("HTML", { exact: true }).fill("<b>New</b><script>alert(1)</script>");
    await page.getByRole("button", { name: "Save and continue" }).click();
    await page.getByRole("heading", { level: 2, name: "Audience" }).waitFor();
    const { id, variants } = await stored();
    expect(variants.test.transforms).toHaveLength(1);
    expect(variants["test-2"].transforms).toEqual([{ selector: "h1", html: "<b>New</b>" }]);

    await page.goto(`/console/experiments/${id}`);
    await page.getByRole("button", { name: "Launch" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Launch" }).click();
    await page.getByText("disable_web_experiments: false").waitFor();
    await looksRight(page);
    await page.goto(`/console/experiments/${id}/setup?step=variants`);
    await test.getByText(`?__experiment_id=${id}&__experiment_variant=test`).waitFor();
    expect(await page.getByLabel("Variant key").nth(1).isDisabled()).toBe(true);
    await test.getByLabel("Text", { exact: true }).fill("Sale");
    await page.getByRole("button", { name: "Save and continue" }).click();
    await page.getByRole("heading", { level: 2, name: "Audience" }).waitFor();
    expect((await stored()).variants.test.transforms[0].text).toBe("Sale");
    await page.goto(`/console/experiments/${id}`);
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("button", { name: "Duplicate" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByLabel("Name").inputValue()).toBe("Copy of Heading");
    await dialog.getByLabel("Flag key").fill("heading-2");
    await looksRight(page);
    await dialog.getByRole("button", { name: "Duplicate" }).click();
    await page.getByRole("heading", { level: 1, name: "Setup of Copy of Heading" }).waitFor();
    expect(await stored()).toMatchObject({
      feature_flag_key: "heading-2",
      variants: { test: { transforms: [{ selector: "h1", text: "Sale" }] } },
    });
    await page.goto("/console/experiments");
    await page.getByText("Web · heading-2").waitFor();
    await looksRight(page);
    expect(errors).toEqual([]);
    await context.close();
  });

  test("the launch of one that changes nothing warns", async () => {
    const { page, context, errors } = await owner.open();
    const created = await owner.server.api("/api/projects/1/experiments/", {
      method: "POST",
      body: { name: "Nothing", type: "web" },
    });
    const { id } = await created.json();
    await page.goto(`/console/experiments/${id}`);
    await page.getByRole("button", { name: "Launch" }).click();
    await page.getByRole("dialog").getByText("This experiment changes no page yet.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("Experiment deleted").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Experiment restored").waitFor();
    await page.getByRole("link", { name: "Nothing" }).click();
    await page.getByRole("heading", { level: 1, name: "Nothing" }).waitFor();
    expect(errors).toEqual([]);
    await context.close();
  });
});
