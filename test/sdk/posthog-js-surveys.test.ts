/** posthog-js in a real browser: surveys, early access features and exposures of experiments. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { widgetDefaults } from "../../src/console/page/model/surveys.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { server, useServer } from "../support/use-server.ts";

const browserTest = testWhen(chromiumPath !== undefined, "posthog-js in a browser", "no Chromium here");

let browser: Browser;
let site: ReturnType<typeof serveSite>;
if (chromiumPath !== undefined) useServer();
beforeAll(async () => {
  if (chromiumPath === undefined) return;
  site = serveSite();
  browser = await startBrowser();
}, 60_000);
afterAll(async () => {
  await browser?.close();
  await site?.stop(true);
});

/** A page on an origin of its own. */
function serveSite() {
  return Bun.serve({
    hostname: "localhost",
    port: 0,
    fetch: (request) =>
      new URL(request.url).pathname === "/favicon.ico"
        ? new Response(null, { status: 204 })
        : new Response(pageText, { headers: { "Content-Type": "text/html; charset=utf-8" } }),
  });
}

const pageText = `<!doctype html><title>Shop</title><h1>Shop</h1>
<script>
  window.posthog = [];
  posthog.__SV = 1;
  const url = new URL(location.href);
  posthog._i = [[url.searchParams.get("token"), {
    api_host: url.searchParams.get("host"),
    opt_out_useragent_filter: true,
    disable_web_experiments: false,
    // Known from the first request on: an anonymous visitor would see the survey again.
    bootstrap: url.searchParams.has("person") ? { distinctID: url.searchParams.get("person"), isIdentifiedID: true } : {},
    request_queue_config: { flush_interval_ms: 250 },
    loaded: (library) => { window.library = library; },
  }, "posthog"]];
  const script = document.createElement("script");
  script.crossOrigin = "anonymous";
  script.src = url.searchParams.get("host") + "/static/array.js";
  document.head.append(script);
</script>`;

async function openSite(context: BrowserContext, person?: string): Promise<Page> {
  const page = await context.newPage();
  const address = new URL(site.url);
  address.searchParams.set("token", server.token);
  address.searchParams.set("host", server.url);
  if (person !== undefined) address.searchParams.set("person", person);
  await page.goto(address.href);
  await page.waitForFunction("window.library && window.library.featureFlags.hasLoadedFlags");
  return page;
}

async function api(path: string, body?: object, method = "POST") {
  const response = await server.api(`/api/projects/1/${path}`, body === undefined ? {} : { method, body });
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  return (await response.json()) as any;
}

async function isOn(key: string, distinctId: string): Promise<boolean> {
  const response = await server.post("/flags?v=2", { token: server.token, distinct_id: distinctId });
  const { flags } = (await response.json()) as { flags: Record<string, { enabled: boolean }> };
  return flags[key]?.enabled ?? false;
}

const popover = "[class^=PostHogSurvey]";

describe("posthog-js", () => {
  browserTest(
    "a survey is shown, answered once per person, counted, and gone after its end",
    async () => {
      const question = { type: "open", id: "why", question: "What is <b>missing</b>?" };
      const draft = { name: "Missing", type: "popover", questions: [question] };
      const hidden = await api("surveys/", { ...draft, name: "Draft" });
      const survey = await api("surveys/", { ...draft, start_date: new Date().toISOString() });
      await using context = await browser.newContext();
      const page = await openSite(context, "kim");
      await page.locator(popover).getByText("What is <b>missing</b>?").waitFor();
      expect(await page.locator(`.PostHogSurvey-${hidden.id}`).count()).toBe(0);
      const text = "Ships & <i>sails</i>";
      await page.locator(`${popover} textarea`).fill(text);
      await page.locator(`${popover} button[type=submit], ${popover} .form-submit`).first().click();
      const stats = await until(async () => {
        const found = await api(`surveys/${survey.id}/stats/?refresh=true`);
        // Two queries: events may be loaded between them.
        return found.responses === 1 && found.stats["survey sent"].total_count === 1 && found;
      }, "the answer is counted");
      expect(stats.stats["survey shown"].unique_persons).toBe(1);
      const { results } = await api(`surveys/${survey.id}/responses/`);
      expect(results).toMatchObject([
        { distinct_id: "kim", answers: [{ question_id: "why", answer: text }] },
      ]);
      expect(results[0].submission_id).toBeString();

      const key = survey.internal_targeting_flag.key as string;
      await until(async () => !(await isOn(key, "kim")), "the person has answered");
      // Neither after a reload nor on a second device of the same person.
      await using second = await browser.newContext();
      for (const again of [await openSite(context), await openSite(second, "kim")]) {
        await again.waitForFunction(
          `library.getFeatureFlag(${JSON.stringify(key)}, { send_event: false }) !== true`,
        );
        const matching = await again.evaluate(
          "new Promise((done) => library.getActiveMatchingSurveys((all) => done(all.map(({ id }) => id)), true))",
        );
        expect(matching).toEqual([]);
        expect(await again.locator(popover).count()).toBe(0);
      }

      await using third = await browser.newContext();
      await (await openSite(third, "lee")).locator(popover).getByText("missing").waitFor();
      await api(`surveys/${survey.id}/`, { end_date: new Date().toISOString() }, "PATCH");
      await using last = await browser.newContext();
      const after = await openSite(last, "max");
      const shown = await after.evaluate(
        "fetch(library.config.api_host + '/api/surveys/?token=' + library.config.token).then((answer) => answer.json())",
      );
      expect(shown).toMatchObject({ surveys: [] });
      expect(await after.locator(popover).count()).toBe(0);
    },
    90_000,
  );

  browserTest(
    "a feedback button opens its survey",
    async () => {
      const survey = await api("surveys/", {
        name: "Feedback",
        type: "widget",
        questions: [{ type: "open", question: "What is wrong?" }],
        appearance: { ...widgetDefaults },
        start_date: new Date().toISOString(),
      });
      await using context = await browser.newContext();
      const page = await openSite(context, "lee");
      await page.locator(".ph-survey-widget-tab", { hasText: widgetDefaults.widgetLabel }).click();
      await page.getByText("What is wrong?").waitFor();
      await api(`surveys/${survey.id}/`, { end_date: new Date().toISOString() }, "PATCH");
    },
    60_000,
  );

  browserTest(
    "a survey is shown in the language of the browser",
    async () => {
      const question = {
        type: "single_choice",
        question: "Which plan?",
        choices: ["Free", "Paid"],
        translations: { de: { question: "Welcher Tarif?", choices: ["Kostenlos", "Bezahlt"] } },
      };
      const survey = await api("surveys/", {
        name: "Plan",
        type: "popover",
        questions: [question],
        appearance: { displayThankYouMessage: true, thankYouMessageHeader: "Thanks!" },
        translations: { de: { thankYouMessageHeader: "Danke!" } },
        start_date: new Date().toISOString(),
      });
      const shown = `.PostHogSurvey-${survey.id}`;
      for (const [locale, plan, thanks] of [
        ["de-AT", "Bezahlt", "Danke!"],
        ["fr-FR", "Paid", "Thanks!"],
      ] as const) {
        await using context = await browser.newContext({ locale });
        const page = await openSite(context, locale);
        await page.locator(shown).getByText(plan).click();
        await page.locator(`${shown} .form-submit`).first().click();
        await page.locator(shown).getByText(thanks).waitFor();
      }
      const ended = await api(`surveys/${survey.id}/`, { end_date: new Date().toISOString() }, "PATCH");
      expect(ended.status).toBe("completed");
    },
    60_000,
  );

  browserTest(
    "a person enrolls in an early access feature, and leaves it",
    async () => {
      const feature = await api("early_access_feature/", { name: "New editor", stage: "beta" });
      await api("early_access_feature/", { name: "Secret", stage: "draft" });
      const key = feature.feature_flag.key as string;
      await using context = await browser.newContext();
      const page = await openSite(context, "nora");
      const listed = (await page.evaluate(
        "new Promise((done) => library.getEarlyAccessFeatures(done, true))",
      )) as { name: string; flagKey: string }[];
      expect(listed).toMatchObject([{ name: "New editor", flagKey: key }]);
      const read = (page: Page) => page.evaluate(`library.isFeatureEnabled(${JSON.stringify(key)})`);
      expect(await read(page)).toBeFalse();
      for (const isEnrolled of [true, false]) {
        await page.evaluate(
          `library.updateEarlyAccessFeatureEnrollment(${JSON.stringify(key)}, ${isEnrolled})`,
        );
        expect(await read(page)).toBe(isEnrolled);
        await until(async () => (await isOn(key, "nora")) === isEnrolled, `enrolled: ${isEnrolled}`);
        const reloaded = await openSite(context);
        await reloaded.waitForFunction(
          `library.isFeatureEnabled(${JSON.stringify(key)}, { send_event: false }) === ${isEnrolled}`,
        );
      }
      const { enrolled, opted_out } = await api(`early_access_feature/${feature.id}/enrollment/`);
      expect([enrolled, opted_out]).toEqual([0, 1]);
    },
    60_000,
  );

  browserTest(
    "exposures of 12 persons are those that the results count",
    async () => {
      const { id, feature_flag_key: key } = await api("experiments/", { name: "Checkout" });
      await api(`experiments/${id}/launch/`, {});
      const seen: Record<string, number> = {};
      for (let person = 0; person < 12; person++) {
        await using context = await browser.newContext();
        const page = await openSite(context, `person-${person}`);
        const variant = (await page.evaluate(`library.getFeatureFlag(${JSON.stringify(key)})`)) as string;
        seen[variant] = (seen[variant] ?? 0) + 1;
        await page.waitForRequest(/\/e\/|\/i\/v0\/e\//, { timeout: 5_000 }).catch(() => undefined);
      }
      const exposures = await until(async () => {
        const results = await api(`experiments/${id}/results/?refresh=true`);
        return results.exposures.total === 12 && results.exposures;
      }, "all exposures are counted");
      const counted = exposures.variants.map(
        ({ key: variant, persons }: { key: string; persons: number }) => [variant, persons],
      );
      expect(Object.fromEntries(counted)).toEqual({ control: 0, test: 0, ...seen });
    },
    90_000,
  );

  browserTest(
    "a web experiment changes the page for its variant only, and runs no scripts",
    async () => {
      const transforms = [
        {
          selector: "h1",
          html: "<b>Sale</b><img src=x onerror='window.isHacked = true'>",
          css: "color: red",
        },
        { selector: "title", text: "<i>Sale</i>" },
      ];
      const { id, feature_flag_key: key } = await api("web_experiments/", {
        name: "Heading",
        variants: {
          control: { rollout_percentage: 50 },
          test: { rollout_percentage: 50, transforms },
        },
      });
      await api(`experiments/${id}/launch/`, {});
      const headings: Record<string, Set<string | null>> = { control: new Set(), test: new Set() };
      // posthog-js leaves the page alone for robots, by their names.
      const hide = "Object.defineProperty(Navigator.prototype, 'userAgentData', { value: undefined });";
      const userAgent =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0";
      for (let person = 0; headings.control!.size + headings.test!.size < 2; person++) {
        await using context = await browser.newContext({ userAgent });
        await context.addInitScript(
          `${hide} Object.defineProperty(Navigator.prototype, 'webdriver', { value: false });`,
        );
        const page = await openSite(context, `visitor-${person}`);
        const variant = (await page.evaluate(`library.getFeatureFlag(${JSON.stringify(key)})`)) as string;
        if (variant === "test") await page.locator("h1", { hasText: "Sale" }).waitFor();
        if (variant === "test") expect(await page.title()).toBe("<i>Sale</i>");
        headings[variant]!.add(await page.locator("h1").textContent());
        expect(await page.evaluate("window.isHacked")).toBeUndefined();
      }
      expect(headings).toEqual({ control: new Set(["Shop"]), test: new Set(["Sale"]) });
    },
    90_000,
  );
});
