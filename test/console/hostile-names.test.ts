/** Names with markup, bidi controls or 400 characters are rendered as text and do not break the layout. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

const names = [
  "<script>alert(1)</script><img src=x onerror=alert(2)>",
  // Right to left to the end of its paragraph.
  "\u202Eno end \u05E9\u05DC\u05D5\u05DD",
  "zero\u200Bwidth\uFEFF",
  "\u{1F469}\u200D\u{1F469}\u200D\u{1F467} \u{1F389}",
  `"quoted" 'single' \`tick\` \\ &amp; {{x}}`,
  "L".repeat(400),
];
const longest = names.at(-1)!;
/** Two lines of a title, with its line height. */
const headingHeightMax = 80;
/** A condition, a legend or a card that names the longest text. */
const heightMax = 260;

/** Short words that are split over two lines, and elements that a long name makes tall. */
const layoutFindings = (page: Page) =>
  page.evaluate(
    ({ headingHeightMax, heightMax, start }) => {
      const found: string[] = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        const element = node.parentElement!;
        if (!element.checkVisibility() || element.closest(".unseen, .brand, pre, code, .cm-editor")) continue;
        for (const { 0: word, index } of node.textContent!.matchAll(/(?<![^\s])[\w%+.,]{2,14}(?=\s|$)/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
          if (lines.size > 1) found.push(`split: ${word}`);
        }
      }
      const height = (element: Element) => Math.round(element.getBoundingClientRect().height);
      for (const heading of document.querySelectorAll("h1, dialog h2"))
        if (height(heading) > headingHeightMax) found.push(`heading: ${height(heading)}`);
      for (const element of document.querySelectorAll("li, tr, p, label, button, main span"))
        if (height(element) > heightMax && element.textContent!.includes(start))
          found.push(`${element.tagName}: ${height(element)}`);
      const { scrollWidth, clientWidth } = document.documentElement;
      if (scrollWidth > clientWidth) found.push(`scrolls sideways: ${scrollWidth}`);
      return found;
    },
    { headingHeightMax, heightMax, start: longest.slice(0, 20) },
  );

describe.skipIf(chromiumPath === undefined)("hostile names", () => {
  const owner = ownersBrowser();

  test("pages keep their layout, and no name is run", async () => {
    const { server } = owner;
    const create = async (path: string, body: object) => {
      const url = `/api/projects/${server.initialized.project.id}/${path}/`;
      const answer = await server.api(url, { method: "POST", body });
      expect(answer.status).toBe(201);
      return ((await answer.json()) as { id: number }).id;
    };
    const created = { flags: 0, cohorts: 0, dashboards: 0 };
    const conditions = (value: string) => [
      { key: "email", type: "person", operator: "exact", value: [value] },
    ];
    for (const [number, name] of names.entries()) {
      const properties = conditions(name.repeat(5));
      created.flags = await create("feature_flags", {
        key: `hostile-${number}`,
        name,
        tags: [name.slice(0, 200)],
        filters: { groups: [{ properties, rollout_percentage: 40, description: name }] },
      });
      created.cohorts = await create("cohorts", {
        name,
        description: name,
        filters: { properties: { type: "OR", values: [{ type: "AND", values: properties }] } },
      });
      created.dashboards = await create("dashboards", { name, description: name });
      await create("annotations", { content: name, date_marker: new Date().toISOString() });
    }
    await server.batch(
      names.map((name) => ({
        event: name.slice(0, 200),
        distinct_id: name.slice(0, 200),
        properties: { $set: { name, email: name }, named: name.repeat(5) },
      })),
    );
    await server.eventsWhenStored(names.length);
    const { page, context, errors } = await owner.open();
    page.on("dialog", (dialog) => errors.push(`dialog: ${dialog.message()}`));
    const row = "[role=row] >> nth=1";
    const pages: readonly (readonly [path: string, ready: string])[] = [
      ["flags", row],
      [`flags/${created.flags}`, ".token"],
      [`flags/${created.flags}?tab=history`, "main li"],
      ["cohorts", row],
      [`cohorts/${created.cohorts}`, ".token"],
      ["dashboards", row],
      [`dashboards/${created.dashboards}`, "text=No tiles yet"],
      ["explore?b=named", ".legend tr >> nth=5"],
      ["events", row],
      ["persons", row],
      ["activity", "main li"],
    ];
    const found: unknown[] = [];
    for (const width of [1280, 375]) {
      await page.setViewportSize({ width, height: 812 });
      for (const [path, ready] of pages) {
        await page.goto(`/console/${path}`);
        await page.locator(ready).first().waitFor();
        found.push(...(await layoutFindings(page)).map((finding) => [width, path, finding]));
      }
    }
    expect(found).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  }, 120_000);

  test("so do tooltips, dialogs and the palette", async () => {
    const { page, context, errors } = await owner.open();
    page.on("dialog", (dialog) => errors.push(`dialog: ${dialog.message()}`));
    await page.goto("/console/explore?b=named");
    await page.getByRole("slider", { name: /^Values of / }).focus();
    const tooltip = page.locator(".plot-tip");
    await tooltip.waitFor();
    expect((await tooltip.boundingBox())!.height).toBeLessThan(heightMax);
    expect(await layoutFindings(page)).toEqual([]);
    await page.getByRole("button", { name: /notes? on / }).hover();
    expect((await page.locator(".mark-tip:visible").boundingBox())!.height).toBeLessThan(heightMax);

    await page.goto("/console/cohorts");
    await page.getByRole("link", { name: longest }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").waitFor();
    expect(await layoutFindings(page)).toEqual([]);
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");

    await page.keyboard.press("Control+k");
    await page.keyboard.type("LLLL");
    await page.getByRole("dialog").getByRole("option", { name: /^LLLL/ }).first().waitFor();
    expect(await layoutFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
