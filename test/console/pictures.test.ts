/**
 * How the main screens look, in both themes and widths, beside how they looked when a user last looked at them.
 *
 * What is kept are pictures at a tenth of the size: words and times may change, but not what stands where in which color.
 * Other browsers and fonts draw otherwise: there the pictures are created, and not compared.
 * `FLAGKEEP_UPDATE_PICTURES=1 bun test test/console/pictures.test.ts` keeps those of now.
 */

import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { messages } from "../../src/console/page/messages/index.ts";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { shopEvents, shopFlags } from "../support/shop.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { openConsole, themes, useConsole, widths } from "./support.ts";

const folder = join(import.meta.dir, "pictures");
const environmentFile = join(folder, "environment.json");
const isUpdate = process.env.FLAGKEEP_UPDATE_PICTURES === "1";
/** Pixels that become one. */
const scale = 10;
/** A pixel differs when one of its colors does by more than this, of 255. */
const colorTolerance = 40;
const dayMs = 86_400_000;
/** Of all pixels of a screen. */
const shareTolerance = 0.03;
/** How long a part of a page may load after the rest of it. */
const lateMs = 10_000;

const explore = (question: object) => `explore?question=${encodeURIComponent(JSON.stringify(question))}`;

/** Address, and a text that is there once the page is complete. */
const screens: readonly (readonly [name: string, path: string, ready: string | RegExp])[] = [
  ["start", "start", "Send an event and create your first flag."],
  ["flags", "flags", "new-checkout"],
  ["flag", "flags/6", "Affected people"],
  ["usage", "flags/6?tab=usage", "posthog-node"],
  ["explore", explore({ kind: "trends", series: [{ event: "paid", math: "total" }] }), /^\d[\d,]* total$/],
  ["lifecycle", explore({ kind: "lifecycle", series: [{ event: "paid" }] }), "Inactive: "],
  [
    "funnel",
    explore({ kind: "funnel", series: [{ event: "signed up" }, { event: "paid" }] }),
    " converted (",
  ],
  ["sql", "sql?q=SELECT 1 AS one, 2 AS two", "1 row"],
  ["persons", "persons", "user-399"],
  ["dashboard", "dashboards/6", "Total Volume"],
  ["settings", "settings", "Danger zone"],
  ["instance", "instance", "No ingestion warnings in the last 24 hours."],
];

/** A small picture: its width, and the red, green and blue of each pixel. */
interface Picture {
  width: number;
  colors: number[];
}

describe.skipIf(chromiumPath === undefined)("pictures", () => {
  /** Where pictures are made small: the console's own pages would reject it. */
  let desk: Page;
  let isSameBrowser = false;

  useConsole();
  beforeAll(async () => {
    desk = await (await browser.newContext()).newPage();
    for (const flag of shopFlags) {
      const path = `/api/projects/${server.initialized.project.id}/feature_flags/`;
      expect((await server.api(path, { method: "POST", body: flag })).status).toBe(201);
    }
    const { zone, midnight } = noonZone(Date.now());
    const project = `/api/projects/${server.initialized.project.id}/`;
    expect((await server.api(project, { method: "PATCH", body: { timezone: zone } })).status).toBe(200);
    // Up to midnight: charts by day look alike at every time of day.
    const batches = shopEvents(midnight);
    for (const batch of batches) await server.batch(batch as Record<string, unknown>[]);
    await until(
      async () => (await server.query("SELECT count(*) AS n FROM events"))[0]?.n === batches.flat().length,
      "all events are loaded",
      60_000,
    );
    const created = { browser: browser.version().split(".")[0]!, text: await textWidths(desk) };
    if (isUpdate) {
      mkdirSync(folder, { recursive: true });
      await Bun.write(environmentFile, `${JSON.stringify(created, null, 2)}\n`);
    }
    isSameBrowser = Bun.deepEquals(created, await Bun.file(environmentFile).json());
    if (!isSameBrowser)
      console.log(`SKIPPED comparing pictures: another browser or other fonts (${JSON.stringify(created)})`);
  });

  for (const theme of themes) {
    for (const width of widths) {
      const file = join(folder, `${theme}-${width}.png`);
      test(`${theme}, ${width}`, async () => {
        const { page, context, errors } = await openConsole({ theme, width });
        // Many pages one after the other: a slow machine fails none by time alone.
        page.setDefaultTimeout(60_000);
        const sheet =
          isSameBrowser && !isUpdate
            ? await small(desk, Buffer.from(await Bun.file(file).bytes()), 1)
            : undefined;
        const pictures: Picture[] = [];
        const differing: string[] = [];
        for (const [index, [name, path, ready]] of screens.entries()) {
          await page.goto(`/console/${path}`);
          await page.getByRole("main").getByText(ready).first().waitFor();
          let picture = await small(desk, await settled(page));
          pictures.push(picture);
          if (sheet === undefined) continue;
          const size = picture.colors.length;
          const retained = { ...sheet, colors: sheet.colors.slice(index * size, (index + 1) * size) };
          // A part of a page that loads after the rest: two screenshots in a row may be equal without it.
          const deadline = Date.now() + lateMs;
          while (difference(retained, picture) > shareTolerance && Date.now() < deadline)
            picture = await small(desk, await settled(page));
          const share = difference(retained, picture);
          if (share > shareTolerance) differing.push(`${name}: ${Math.round(share * 1000) / 10} % differs`);
        }
        await context.close();
        expect(errors).toEqual([]);
        expect(differing).toEqual([]);
        if (isUpdate) await Bun.write(file, await getSheet(desk, pictures));
      });
    }
  }

  test("a page without its style is noticed, another time of day is not", async () => {
    // Dark: a page without style is light.
    const { page, context } = await openConsole({ theme: "dark" });
    const look = async () => {
      const [, path, ready] = screens.find(([name]) => name === "settings")!;
      await page.goto(`/console/${path}`);
      await page.getByRole("main").getByText(ready).first().waitFor();
      return await small(desk, await settled(page));
    };
    const before = await look();
    expect(difference(before, await look())).toBeLessThan(shareTolerance / 3);
    await page.clock.install({ time: Date.now() + 20 * 86_400_000 });
    expect(difference(before, await look())).toBeLessThan(shareTolerance);
    await page.route("**/*.css", (route) => route.abort());
    expect(difference(before, await look())).toBeGreaterThan(shareTolerance * 2);
    await context.close();
  });
});

/** A time zone in which it is about noon, so that no day ends while pictures are taken, and its last midnight. */
function noonZone(now: number): { zone: string; midnight: number } {
  const ahead = 12 - new Date(now).getUTCHours();
  const aheadMs = ahead * 3_600_000;
  // The signs of these names are those of POSIX: minus is east.
  const zone = ahead === 0 ? "UTC" : `Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`;
  return { zone, midnight: Math.floor((now + aheadMs) / dayMs) * dayMs - aheadMs };
}

/** A picture of a page that does not change any more; how long ago things were takes the same room each time. */
async function settled(page: Page): Promise<Buffer> {
  await page.mouse.move(0, 0);
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(
      "time { display: inline-block; overflow: hidden; width: 8em; height: 1.2em; color: transparent }",
    );
    document.adoptedStyleSheets = [sheet];
  });
  let last = await page.screenshot();
  await until(async () => {
    // A count replaces a shorter text and may wrap: what is below moves.
    const loading = page.locator(".skeleton").or(page.getByText(messages.flag.counting));
    const isLoading = (await loading.count()) > 0;
    const next = await page.screenshot();
    const isSame = !isLoading && next.equals(last);
    last = next;
    return isSame;
  }, "the page does not change any more");
  return last;
}

/** Each block of pixels as one of their average color. */
async function small(desk: Page, png: Buffer, by = scale): Promise<Picture> {
  return await desk.evaluate(
    async ([source, size]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${source}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d")!;
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      const width = Math.floor(image.width / size);
      const height = Math.floor(image.height / size);
      const colors = Array.from({ length: width * height * 3 }, (_, index) => {
        const color = index % 3;
        const block = Math.floor(index / 3);
        const left = (block % width) * size;
        const top = Math.floor(block / width) * size;
        let sum = 0;
        for (let y = top; y < top + size; y++)
          for (let x = left; x < left + size; x++) sum += data[(y * image.width + x) * 4 + color]!;
        return Math.round(sum / size ** 2);
      });
      return { width, colors };
    },
    [png.toString("base64"), by] as const,
  );
}

/** Pictures of one size below each other, as PNG. */
async function getSheet(desk: Page, pictures: readonly Picture[]): Promise<Buffer> {
  const whole = { width: pictures[0]!.width, colors: pictures.flatMap(({ colors }) => colors) };
  const text = await desk.evaluate(({ width, colors }) => {
    const height = colors.length / 3 / width;
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height });
    const pixels = new ImageData(width, height);
    for (let pixel = 0; pixel < width * height; pixel++)
      pixels.data.set([...colors.slice(pixel * 3, pixel * 3 + 3), 255], pixel * 4);
    canvas.getContext("2d")!.putImageData(pixels, 0, 0);
    return canvas.toDataURL("image/png").split(",")[1]!;
  }, whole);
  return Buffer.from(text, "base64");
}

/** The share of pixels that are not of the same color. */
function difference(one: Picture, other: Picture): number {
  const pixels = one.colors.length / 3;
  if (one.width !== other.width || one.colors.length !== other.colors.length) return 1;
  let differing = 0;
  for (let pixel = 0; pixel < pixels; pixel++) {
    const isOther = [0, 1, 2].some(
      (color) => Math.abs(one.colors[pixel * 3 + color]! - other.colors[pixel * 3 + color]!) > colorTolerance,
    );
    if (isOther) differing++;
  }
  return differing / pixels;
}

/** How wide this machine's fonts are. */
async function textWidths(desk: Page): Promise<string> {
  return await desk.evaluate(() => {
    const context = new OffscreenCanvas(1, 1).getContext("2d")!;
    const widths = ["system-ui", "monospace"].map((font) => {
      context.font = `100px ${font}`;
      return Math.round(context.measureText("Who gets it, and why: 0123456789").width);
    });
    return widths.join(" ");
  });
}
