/** Overview: figures, lists, filters, comparison, flag changes, and its states. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { noon, webEvents } from "../events/web/visits-fixture.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { ServerProcess, until } from "../support/server.ts";
import { axeFindings, openSignedIn, ownerCookie, ownersBrowser, themes, widths } from "./support.ts";

const day = 86_400_000;
/** Moves the fixture to three days ago. */
const shift = Math.floor(Date.now() / day) * day - 3 * day + day / 2 - noon;

async function fill(server: ServerProcess): Promise<void> {
  await server.batch(
    webEvents.map(({ event, distinctId, time, properties }) => ({
      event,
      distinct_id: distinctId,
      properties,
      timestamp: new Date(time! + shift).toISOString(),
    })),
  );
  await server.eventsWhenStored(webEvents.length);
}

const figure = (page: Page, name: string) =>
  page.getByRole("button", { name: new RegExp(`^${name}`) }).locator(".figure-value");

async function figures(page: Page): Promise<string[]> {
  const names = ["Visitors", "Visits", "Page views", "Views per visit", "Bounce rate", "Visit duration"];
  return await Promise.all(
    names.map((name) =>
      figure(page, name)
        .textContent()
        .then((text) => text ?? ""),
    ),
  );
}

const all = ["9", "12", "17", "1.42", "41.7%", "2 h 3 min"];

describe.skipIf(chromiumPath === undefined)("Overview", () => {
  const owner = ownersBrowser();

  test("an empty project leads to the SDK; with page views it is the home page", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/overview");
    await page.getByText("No page views yet").waitFor();
    expect(await page.getByRole("link", { name: "Install the SDK" }).getAttribute("href")).toContain(
      "/start",
    );
    await fill(owner.server);
    await page.goto("/console/");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(page.url()).toEndWith("/console/overview");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("figures, lists and chart; a row filters everything, and back restores", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/overview");
    await figure(page, "Visitors").waitFor();
    expect(await figures(page)).toEqual(all);
    await page.getByText("0 online").waitFor();
    const getRows = async (panel: string, tab: string) => {
      const section = page.getByRole("region", { name: panel, exact: true });
      await section.getByRole("tab", { name: tab, exact: true }).click();
      await section.getByRole("columnheader", { name: tab, exact: true }).waitFor();
      await section.locator("tbody tr").first().waitFor();
      return await section
        .locator("tbody tr")
        .evaluateAll((rows) =>
          rows.map((row) =>
            [...row.querySelectorAll(".share-name, td")].map(({ textContent }) => textContent),
          ),
        );
    };
    expect(await getRows("Sources", "Channels")).toContainEqual(["Direct", "4", "6", "25%"]);
    expect(await getRows("Sources", "Referrers")).toContainEqual(["Direct", "7", "9", "42.9%"]);
    expect(await getRows("Sources", "Campaigns")).toContainEqual(["spring", "1", "2", "0%"]);
    expect(await getRows("Pages", "Pages")).toContainEqual(["/pricing", "2", "3", "50%"]);
    expect(await getRows("Pages", "Entry pages")).toContainEqual(["/blog", "1", "2", "0%"]);
    expect(await getRows("Pages", "Exit pages")).toContainEqual(["/thanks", "1", "2", "0%"]);
    expect(await getRows("Places", "Countries")).toContainEqual(["Germany", "3", "6", "50%"]);
    await page.getByText("Estimated from time zone").waitFor();
    expect(await getRows("Places", "Languages")).toContainEqual(["English", "7", "11", "37.5%"]);
    expect(await getRows("Clients", "Systems")).toContainEqual(["Linux", "3", "6", "50%"]);
    expect(await getRows("Clients", "Devices")).toContainEqual(["Mobile", "3", "3", "66.7%"]);
    expect(await getRows("Clients", "Screen sizes")).toContainEqual(["1280×720", "9", "17", "41.7%"]);
    await getRows("Clients", "Browsers");
    await page.getByRole("button", { name: "Firefox" }).click();
    await page.getByText("Browser: Firefox").waitFor();
    await figure(page, "Visits").filter({ hasText: /^4$/ }).waitFor();
    expect(page.url()).toContain("browser=Firefox");
    expect((await figures(page)).slice(0, 3)).toEqual(["3", "4", "6"]);
    await page.goBack();
    await figure(page, "Visits").filter({ hasText: /^12$/ }).waitFor();
    expect(await page.getByText("Browser: Firefox").count()).toBe(0);
    // The language of a list and of its filter agree, although clients send regions.
    await page.goto("/console/overview?language=en");
    await figure(page, "Visitors").filter({ hasText: /^7$/ }).waitFor();
    await page.getByRole("button", { name: "Remove filter Language: English" }).click();
    await figure(page, "Visitors").filter({ hasText: /^9$/ }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a figure becomes the chart; comparison shows changes; a filter can be typed", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/overview");
    await page.getByRole("region", { name: "Visitors" }).getByRole("img").waitFor();
    const legend = page.locator(".overview-course .legend th");
    expect(await legend.allInnerTexts()).toEqual(["Visitors"]);
    // Pointing at it names the dates of both periods.
    const tip = page.locator(".plot-tip");
    await page.locator(".overview-course .u-over").hover();
    await tip
      .getByText(/^\d+ \w{3}$/)
      .nth(1)
      .waitFor();
    expect(await tip.getByRole("row").allInnerTexts()).toEqual([
      expect.stringMatching(/^Visitors\s\d+\s–$/),
      expect.stringMatching(/^\d+ \w{3}\s0$/),
    ]);
    expect(await axeFindings(page)).toEqual([]);
    // The keyboard walks through the buckets; the last one is not over.
    await page.mouse.move(0, 0);
    await tip.waitFor({ state: "detached" });
    const cursor = page.getByRole("slider", { name: "Values of Visitors" });
    await cursor.focus();
    await tip.getByText(/is not complete$/).waitFor();
    const today = await cursor.getAttribute("aria-valuetext");
    await page.keyboard.press("ArrowLeft");
    await tip.getByText(/is not complete$/).waitFor({ state: "detached" });
    expect(await cursor.getAttribute("aria-valuetext")).not.toBe(today);
    await cursor.blur();
    // Without a previous value.
    expect(await page.locator(".figure-change").allInnerTexts()).toEqual(["–", "–", "–", "–", "–", "–"]);
    await page.getByRole("button", { name: /^Bounce rate/ }).click();
    await page.getByRole("region", { name: "Bounce rate" }).getByRole("img").waitFor();
    expect(page.url()).toContain("figure=bounce");
    await page.getByLabel("Comparison").selectOption("none");
    await page.locator(".figure-change").first().waitFor({ state: "detached" });
    expect(await legend.allInnerTexts()).toEqual(["Bounce rate"]);
    await page.getByLabel("Range").selectOption("-24h");
    await page.getByText("No visits in this period.").waitFor();
    await page.getByLabel("Range").selectOption("-7d");
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByLabel("Filter by").selectOption("Channel");
    await page.getByRole("textbox", { name: "Value" }).fill("Social");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("Channel: Social").waitFor();
    await figure(page, "Visits").filter({ hasText: /^2$/ }).waitFor();
    await page.getByRole("button", { name: "Details: Pages" }).click();
    const dialog = page.getByRole("dialog", { name: "Pages" });
    await dialog.getByText("/blog/post").waitFor();
    await dialog.getByRole("searchbox").fill("pric");
    await dialog.getByText("/blog/post").waitFor({ state: "detached" });
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      dialog.getByRole("button", { name: "CSV" }).click(),
    ]);
    expect(await Bun.file(await file.path()).text()).toBe(
      "Pages,Visitors,Page views,Bounce rate\n/pricing,1,1,1\n",
    );
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a cold cache needs eight files, within the budget of bytes", async () => {
    const { page, context, errors } = await owner.open();
    const files: string[] = [];
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (!pathname.startsWith("/api/")) files.push(pathname);
    });
    await page.goto("/console/overview");
    await page.locator(".overview-course .u-over").waitFor();
    await figure(page, "Visitors").waitFor();
    const asked = files.filter((path) => !path.endsWith(".svg"));
    expect(asked.length).toBeLessThanOrEqual(8);
    const html = await (await fetch(`${owner.server.url}/console/`)).text();
    const own = asked.filter((path) => path.endsWith(".js") && !html.includes(path));
    const sizes = own.map(async (path) => {
      const headers = { "Accept-Encoding": "gzip" };
      return (await (await fetch(`${owner.server.url}${path}`, { headers, decompress: false })).bytes())
        .length;
    });
    const bytes = (await Promise.all(sizes)).reduce((total, size) => total + size, 0);
    expect(bytes).toBeLessThanOrEqual(40_000);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the axis of a chart of counts has whole numbers only", async () => {
    const { page, context, errors } = await owner.open();
    await page.addInitScript(() => {
      const drawn: string[] = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
        drawn.push(text);
        fillText.call(this, text, ...more);
      };
      Object.assign(window, { drawn });
    });
    await page.goto("/console/overview");
    await page.locator(".plot canvas").first().waitFor();
    const ticks = async () =>
      (await page.evaluate(() => (window as unknown as { drawn: string[] }).drawn)).filter((text) =>
        /^[\d.,]+$/.test(text),
      );
    await until(async () => (await ticks()).length >= 3, "the axis is drawn");
    expect((await ticks()).filter((text) => text.includes("."))).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("goals are added, measured and removed", async () => {
    const { page, context, errors } = await owner.open(400);
    await page.goto("/console/overview");
    const panel = page.getByRole("region", { name: "Goals" });
    await panel.getByText("No goals yet.").waitFor();
    await panel.getByRole("button", { name: "Edit goals" }).click();
    const dialog = page.getByRole("dialog", { name: "Edit goals" });
    await dialog.getByLabel("Name").fill("Signup");
    await dialog.getByRole("combobox", { name: "Event" }).click();
    await dialog.getByRole("option", { name: /^signup/ }).click();
    await dialog.getByRole("button", { name: "Add goal" }).click();
    await dialog.getByRole("button", { name: "Remove goal Signup" }).waitFor();
    await dialog.getByLabel("Name").fill("Broken");
    await dialog.getByLabel("Goal is").selectOption("a page");
    await dialog.getByLabel("Path").fill("pricing");
    await dialog.getByRole("button", { name: "Add goal" }).click();
    await dialog.getByText('must start with "/"').waitFor();
    await dialog.getByLabel("Path").fill("/pricing/");
    await dialog.getByRole("button", { name: "Add goal" }).click();
    await dialog.getByRole("button", { name: "Remove goal Broken" }).waitFor();
    await page.keyboard.press("Escape");
    await panel.getByRole("row", { name: "Signup 1 1 11.1%" }).waitFor();
    await panel.getByRole("row", { name: "Broken 2 3 22.2%" }).waitFor();
    await panel.getByRole("button", { name: "Signup" }).click();
    expect(new URL(page.url()).searchParams.get("goal")).toBe("Signup");
    const clients = page.getByRole("region", { name: "Clients" });
    await clients.getByRole("row", { name: "Safari 3 1 33.3%" }).waitFor();
    expect(await clients.getByRole("columnheader").allTextContents()).toEqual([
      "Browsers",
      "Visitors",
      "Conversions",
      "Rate",
    ]);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove filter Goal: Signup" }).click();
    await clients.getByRole("columnheader", { name: "Bounce rate" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a share link shows figures, chart and lists without a session", async () => {
    await owner.confirm();
    const { page, context, errors } = await owner.open();
    await page.goto("/console/overview?browser=Firefox");
    await page.getByRole("button", { name: "Share", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Share Overview" });
    await dialog.getByRole("button", { name: "Create link" }).click();
    const url = (await dialog.locator("pre").first().textContent())!.trim();
    await page.close();
    await context.clearCookies();
    const shown = await context.newPage();
    await shown.goto(url);
    await shown.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await figure(shown, "Visitors").getByText("3", { exact: true }).waitFor();
    await shown
      .getByRole("region", { name: "Clients" })
      .getByRole("row", { name: /^Firefox 3 / })
      .waitFor();
    await shown.getByRole("button", { name: /^Visits/ }).click();
    await shown.getByRole("region", { name: "Visits" }).waitFor();
    await shown.getByRole("tab", { name: "Entry pages" }).click();
    await shown.getByRole("columnheader", { name: "Entry pages" }).waitFor();
    expect(await axeFindings(shown)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag changed during the range is a mark with key, change and person", async () => {
    const { page, context, errors } = await owner.open();
    const path = `/api/projects/${owner.server.initialized.project.id}/feature_flags/`;
    const created = await owner.server.api(path, { method: "POST", body: { key: "new-checkout" } });
    const { id } = (await created.json()) as { id: number };
    await owner.server.api(`${path}${id}/`, { method: "PATCH", body: { active: false } });
    await page.goto("/console/overview");
    const mark = page.getByRole("link", { name: /^2 flag changes on \d+ \w{3}$/ });
    await mark.hover();
    await page
      .getByRole("tooltip")
      .getByText(/^new-checkout: turned off, .+, \d+ \w{3} /)
      .waitFor();
    await page
      .getByRole("region", { name: "Flag changes" })
      .getByText(/^new-checkout: created/)
      .waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the setting Count screens counts $screen as a page view", async () => {
    const { page, context, errors } = await owner.open();
    const screen = { event: "$screen", distinct_id: "app", properties: { $session_id: "app-1" } };
    await owner.server.capture(screen);
    await owner.server.eventsWhenStored(webEvents.length + 1);
    await page.goto("/console/overview");
    await figure(page, "Visits").filter({ hasText: /^12$/ }).waitFor();
    await page.goto("/console/settings");
    await page.getByLabel("Count screens").check();
    await page.getByRole("button", { name: "Save" }).first().click();
    await page.goto("/console/overview");
    await figure(page, "Visits").filter({ hasText: /^13$/ }).waitFor();
    await owner.server.api("/api/projects/1/", { method: "PATCH", body: { count_screens: false } });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("panels that fail report it, and the others remain", async () => {
    const { page, context } = await owner.open(500);
    let isBroken = true;
    await page.route("**/query/", async (route) => {
      const body = route.request().postData() ?? "";
      if (isBroken && /"(Page|Country|InitialChannelType)"|WebGoalsQuery/.test(body))
        await route.fulfill({
          status: 500,
          json: { type: "server_error", code: "error", detail: "Broken.", attr: null },
        });
      else await route.continue();
    });
    await page.goto("/console/overview");
    await figure(page, "Visitors").waitFor();
    await page.getByText("This panel couldn't be loaded. Broken.").nth(3).waitFor();
    await page.getByRole("button", { name: "Firefox" }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    isBroken = false;
    const panel = page.getByRole("region", { name: "Pages", exact: true });
    await panel.getByRole("button", { name: "Try again" }).click();
    await panel.getByRole("button", { name: "/pricing", exact: true }).waitFor();
    expect(await page.getByText("This panel couldn't be loaded.").count()).toBe(3);
    await context.close();
  });

  for (const theme of themes) {
    for (const width of widths) {
      test(`accessible and without sideways scrolling: ${theme}, ${width}`, async () => {
        const cookie = await signInCookie();
        const browser = await startBrowser();
        try {
          const { page, errors } = await openSignedIn(browser, cookie, {
            url: owner.server.url,
            theme,
            width,
          });
          await page.goto("/console/overview?browser=Firefox");
          await page
            .getByRole("region", { name: "Clients" })
            .getByRole("button", { name: "Firefox" })
            .waitFor();
          await page.getByRole("region", { name: "Visitors" }).getByRole("img").waitFor();
          expect(await axeFindings(page)).toEqual([]);
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          expect(overflow).toBe(0);
          expect(errors).toEqual([]);
        } finally {
          await browser.close();
        }
      });
    }
  }

  async function signInCookie(): Promise<string> {
    const response = await fetch(`${owner.server.url}/api/session/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
      body: JSON.stringify({
        email: owner.server.initialized.user.email,
        password: "correct horse battery staple",
      }),
    });
    return response.headers.get("set-cookie")!.split(";")[0]!;
  }
});

describe.skipIf(chromiumPath === undefined)("Overview of a stopped server", () => {
  test("the figures stay, with their age", async () => {
    await using server = await ServerProcess.start();
    await fill(server);
    const cookie = await ownerCookie(server);
    const browser = await startBrowser();
    try {
      const { page } = await openSignedIn(browser, cookie, { url: server.url });
      await page.goto("/console/overview");
      await figure(page, "Visitors").waitFor();
      await page.getByRole("button", { name: "Firefox" }).waitFor();
      await page.getByRole("button", { name: "Health: ready" }).waitFor();
      await server.kill();
      await page.getByText(/^Can't reach the server\. Showing data from \d+ seconds ago\.$/).waitFor();
      expect(await figures(page)).toEqual(all);
      expect(await page.getByRole("button", { name: "Firefox" }).count()).toBe(1);
    } finally {
      await browser.close();
    }
  });
});
