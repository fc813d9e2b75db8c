/** Get started: its steps notice that they are done; the code of each SDK is complete. */

import { describe, expect, test } from "bun:test";
import { snippets } from "../../src/console/page/model/snippets.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("Get started", () => {
  const owner = ownersBrowser(["--backup-schedule", "0 3 * * *"]);

  test("each step is done once its fact is there, and the menu counts the same steps", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/start");
    const done = async () =>
      await page
        .locator(".step")
        .evaluateAll((steps) => steps.map((step) => step.querySelector(".step-number.done") !== null));
    const pill = page.getByRole("link", { name: /^Get started/ });
    // The server has a schedule for backups.
    await page.getByText("Schedule backups").waitFor({ state: "attached" });
    await until(
      async () => Bun.deepEquals(await done(), [false, false, false, true]),
      "backups are scheduled",
    );
    await page.getByText("Waiting for the first event…").waitFor();
    await until(async () => (await pill.textContent())?.trim() === "Get started 1/4", "one step is counted");
    await owner.server.capture({ event: "signed up", distinct_id: "user-1" });
    await page.getByText(/^signed up from user-1/).waitFor();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await until(async () => Bun.deepEquals(await done(), [true, true, false, true]), "the flag is created");
    await page.getByText("Waiting for the first evaluation…").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await owner.server.capture({
      event: "$feature_flag_called",
      distinct_id: "user-1",
      properties: { $feature_flag: "new-checkout", $feature_flag_response: true },
    });
    await page.getByText("value true for user-1").waitFor();
    expect(await done()).toEqual([true, true, true, true]);
    // A later visit knows it from the flags.
    await owner.server.eventsWhenStored(2);
    await page.reload();
    await page.getByText(/^Last evaluated /).waitFor();
    expect(await page.getByText("Waiting for the first event…").count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the code for HTML sends an event and evaluates a flag unchanged", async () => {
    const { server } = owner;
    const { html } = snippets(server.url, server.initialized.project.api_key, "from-html");
    await server.api(`/api/projects/${server.initialized.project.id}/feature_flags/`, {
      method: "POST",
      body: { key: "from-html", filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
    });
    // The library sends nothing for a headless browser by default.
    const body = `${html!.event}${html!.flag}`.replaceAll(
      "{ api_host",
      "{ opt_out_useragent_filter: true, api_host",
    );
    using site = Bun.serve({
      port: 0,
      fetch: () => new Response(`<!doctype html>${body}`, { headers: { "Content-Type": "text/html" } }),
    });
    const browser = await startBrowser();
    try {
      const page = await browser.newPage();
      const logged: string[] = [];
      page.on("console", (message) => logged.push(message.text()));
      await page.goto(site.url.href);
      await until(() => logged.includes("true"), "the flag is evaluated");
      await until(async () => {
        const rows = await server.query(
          "SELECT count(*) AS n FROM events WHERE event = 'signed up' AND prop('$lib') = 'web'",
        );
        return rows[0]?.n === 1;
      }, "the event arrived");
    } finally {
      await browser.close();
    }
  });

  test("the code for JavaScript can be parsed, and imports what its packages export", async () => {
    const library = await Bun.file("node_modules/posthog-js/react/dist/esm/index.js").text();
    const { exports: react } = new Bun.Transpiler().scan(library);
    for (const hasVariants of [false, true]) {
      const all = snippets("http://127.0.0.1:8000", "phc_x", "a-flag", hasVariants);
      for (const name of ["javascript", "react", "next", "vue", "node"]) {
        const { event, flag } = all[name]!;
        for (const code of [event, flag]) {
          const { imports } = new Bun.Transpiler({ loader: "jsx" }).scan(code);
          expect(imports.map(({ path }) => path)).toContain(name === "node" ? "posthog-node" : "posthog-js");
          for (const [, names] of code.matchAll(/import \{ (.+) \} from "posthog-js\/react"/g))
            for (const exported of names!.split(", ")) expect(react).toContain(exported);
        }
      }
    }
  });
});
