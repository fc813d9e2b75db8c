/** How much of a page is seen: widths, rows, heights of controls, and what a phone shows first. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("layout", () => {
  const owner = ownersBrowser();
  const prepare = async () => {
    const path = `/api/projects/${owner.server.initialized.project.id}/feature_flags/`;
    for (let number = 0; number < 30; number++)
      await owner.server.api(path, { method: "POST", body: { key: `flag-${number}`, tags: ["web"] } });
    await owner.server.batch([{ event: "paid", distinct_id: "user-1" }]);
    await owner.server.eventsWhenStored(1);
  };

  test("the list of flags is wide, shows 18 rows, and its controls have one height", async () => {
    await prepare();
    const { page, context, errors } = await owner.open();
    const table = page.getByRole("table", { name: "Flags" });
    await page.setViewportSize({ width: 1920, height: 1080 });
    await page.goto("/console/flags");
    await table.getByRole("link", { name: "flag-29" }).waitFor();
    expect((await table.boundingBox())!.width).toBeGreaterThanOrEqual(1_500);
    await page.setViewportSize({ width: 1440, height: 900 });
    const bottoms = await table
      .locator(".tbody [role=row]")
      .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().bottom));
    expect(bottoms.filter((bottom) => bottom <= 900).length).toBeGreaterThanOrEqual(18);
    for (const path of ["flags", "events", "activity"]) {
      await page.goto(`/console/${path}`);
      await page.locator(".filters").waitFor();
      const heights = await page
        .locator(".filters")
        .locator("input, select, button, fieldset")
        .evaluateAll((all) =>
          all.flatMap((one) => {
            // The frame of a token input is its visible control.
            const { height, width } = (one.closest(".tokens") ?? one).getBoundingClientRect();
            return width > 0 && one.getAttribute("type") !== "radio" ? Math.round(height) : [];
          }),
        );
      expect([path, new Set(heights).size]).toEqual([path, 1]);
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("text has the sizes and weights of the type scale, also in code; controls of the header have one height", async () => {
    const { page, context, errors } = await owner.open();
    await page.setViewportSize({ width: 1440, height: 900 });
    const pages = [
      "flags",
      "flags/1",
      "flags/1?tab=code",
      "events",
      "explore",
      "activity",
      "settings",
      "instance",
      "start",
    ];
    for (const path of pages) {
      await page.goto(`/console/${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.locator("main .skeleton").first().waitFor({ state: "detached" });
      const odd = await page.evaluate(() => {
        const sizes = [12, 13, 14, 16, 20, 28].map((size) => `${size}px`);
        const hasText = (element: Element) =>
          [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent!.trim() !== "");
        return [...document.querySelectorAll("body *")].filter(hasText).flatMap((element) => {
          const { fontSize, fontWeight } = getComputedStyle(element);
          if (sizes.includes(fontSize) && ["400", "500", "600"].includes(fontWeight)) return [];
          return [`${element.tagName} ${element.className}: ${fontSize} ${fontWeight}`];
        });
      });
      expect([path, odd]).toEqual([path, []]);
    }
    const heights = await page
      .getByRole("banner")
      .getByRole("button")
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
    expect([...new Set(heights)]).toEqual([32]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("on a phone the choices of a filter are as wide as the filters", async () => {
    const { page, context, errors } = await owner.open();
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto("/console/flags");
    await page.getByRole("button", { name: "Filters" }).click();
    for (const name of ["Status", "Type", "Tag", "Last evaluated", "Sort"]) {
      await page.locator(".chip-name", { hasText: name }).click();
      const list = (await page.getByRole("dialog", { name }).boundingBox())!;
      expect([name, list.x >= 0, list.x + list.width <= 360]).toEqual([name, true, true]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
      await page.keyboard.press("Escape");
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("on a phone the header has a health dot, and More describes it", async () => {
    const { page, context, errors } = await owner.open();
    await page.setViewportSize({ width: 375, height: 812 });
    await page.goto("/console/flags");
    const header = page.getByRole("banner");
    const dot = header.getByRole("button", { name: "Health: ready" });
    await dot.waitFor();
    expect((await dot.boundingBox())!.width).toBeLessThan(44);
    const state = page.getByRole("navigation", { name: "Menu" }).getByText("Health: ready");
    expect(await state.isVisible()).toBe(false);
    await page.getByRole("button", { name: "More" }).click();
    await state.waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("on a phone the content begins in the upper part, and no page scrolls sideways", async () => {
    const { page, context, errors } = await owner.open();
    await page.setViewportSize({ width: 375, height: 812 });
    const paths = ["flags", "events", "explore", "dashboards", "sql", "persons", "cohorts", "activity"];
    for (const path of [
      ...paths,
      "settings",
      "settings?tab=account",
      "settings?tab=team",
      "instance",
      "start",
    ]) {
      await page.goto(`/console/${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, 375]);
    }
    const top = async (path: string, what: string) => {
      await page.goto(`/console/${path}`);
      await page.locator(what).first().waitFor();
      return (await page.locator(what).first().boundingBox())!.y;
    };
    expect(await top("flags", ".tbody [role=row]")).toBeLessThan(330);
    expect(await top("events", ".tbody [role=row]")).toBeLessThan(330);
    expect(await top("explore", ".plot")).toBeLessThan(330);
    await context.close();
    expect(errors).toEqual([]);
  });
});
