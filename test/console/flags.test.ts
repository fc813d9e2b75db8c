/** Flags in the browser: list, switch, editor, two people on one flag. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { ServerProcess, until } from "../support/server.ts";
import { axeFindings, chooseFilter, chooseIn, openSignedIn, ownerCookie, themes, widths } from "./support.ts";

interface Flag {
  id: number;
  key: string;
  active: boolean;
  deleted?: boolean;
  version: number;
  name: string;
  tags: string[];
  filters: { groups: { rollout_percentage: number; properties: object[] }[] };
}

describe.skipIf(chromiumPath === undefined)("flags", () => {
  let server: ServerProcess;
  let browser: Browser;
  let cookie: string;
  let created: Flag;
  const hostile = `<img src=x onerror="document.title='owned'">`;
  const flagPath = (id: number) => `/api/projects/${server.initialized.project.id}/feature_flags/${id}/`;
  const read = async (id: number) => (await (await server.api(flagPath(id))).json()) as Flag;
  const make = async (body: Record<string, unknown>) => {
    const path = `/api/projects/${server.initialized.project.id}/feature_flags/`;
    const answer = await server.api(path, { method: "POST", body });
    expect(answer.status).toBe(201);
    return (await answer.json()) as Flag;
  };
  const open = (options: { width?: number; theme?: "light" | "dark"; expectedStatus?: number[] } = {}) =>
    openSignedIn(browser, cookie, { url: server.url, ...options });

  beforeAll(async () => {
    server = await ServerProcess.start();
    cookie = await ownerCookie(server);
    browser = await startBrowser();
    for (let number = 0; number < 230; number++) {
      await make({
        key: `service-${number}`,
        filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
      });
    }
    created = await make({
      key: "new-checkout",
      name: hostile,
      tags: ["web"],
      filters: {
        groups: [
          {
            properties: [{ key: hostile, type: "person", operator: "exact", value: [hostile] }],
            rollout_percentage: 40,
          },
        ],
      },
    });
    await make({
      key: "pay",
      tags: ["critical"],
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  });

  test("the switch acts immediately and can be undone; a critical flag requires confirmation", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/flags?search=new-check");
    const toggle = page.getByRole("switch", { name: "new-checkout" });
    await toggle.waitFor();
    expect(await toggle.getAttribute("aria-checked")).toBe("true");
    await toggle.click();
    await until(async () => !(await read(created.id)).active, "the flag is off");
    await page.getByRole("button", { name: "Undo" }).click();
    await until(async () => (await read(created.id)).active, "the flag is on again");

    await page.goto("/console/flags?search=pay");
    await page.getByRole("switch", { name: "pay" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("pay is tagged").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByRole("switch", { name: "pay" }).getAttribute("aria-checked")).toBe("true");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a deleted flag is restored from the message, and from the list of deleted flags", async () => {
    const deleted = await make({
      key: "short-lived",
      filters: { groups: [{ properties: [], rollout_percentage: 30 }] },
    });
    const { page, context, errors } = await open();
    const deleteIt = async () => {
      await page.goto(`/console/flags/${deleted.id}`);
      await page.getByRole("button", { name: "Actions" }).click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      const dialog = page.getByRole("dialog", { name: "Delete: short-lived" });
      await dialog.getByText("You can restore it from Flags → Deleted.").waitFor();
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("short-lived is deleted.").waitFor();
    };
    await deleteIt();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { level: 1, name: "short-lived" }).waitFor();
    expect((await read(deleted.id)).deleted).toBe(false);

    await deleteIt();
    await chooseFilter(page, "Status", "Deleted");
    await page.getByText("1 flag", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Restore: short-lived/ }).click();
    await page.getByText("short-lived restored").waitFor();
    await page.getByText("0 flags", { exact: true }).waitFor();
    const restored = await read(deleted.id);
    expect(restored).toMatchObject({ key: "short-lived", deleted: false });
    expect(restored.filters.groups![0]!.rollout_percentage).toBe(30);
    await server.api(flagPath(deleted.id), { method: "PATCH", body: { deleted: true } });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the list is searched by the server, scrolls through all, and keeps its filters in the address", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/flags");
    await page.getByText("232 flags").waitFor();
    await page.getByRole("table", { name: "Flags" }).waitFor();
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.getByRole("link", { name: "service-0", exact: true }).waitFor();
    await page.getByRole("searchbox").fill("service-22");
    await page.getByText("11 flags").waitFor();
    expect(page.url()).toContain("search=service-22");
    await page.reload();
    await page.getByText("11 flags").waitFor();
    expect(await page.getByRole("searchbox").inputValue()).toBe("service-22");
    await page.getByRole("searchbox").fill("nothing is called so");
    await page.getByText("No flag matches.").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("with keys alone: a flag is created, found by the palette, opened from the list", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/flags");
    await page
      .getByText(/flags$/)
      .first()
      .waitFor();
    // Everything that is typed behind the shortcut is meant for what it opens.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("service-2", { delay: 0 });
    expect(await page.getByRole("combobox", { name: "Search or jump" }).inputValue()).toBe("service-2");
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New flag" }).waitFor();
    await page.keyboard.type("by-keys");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "by-keys" }).waitFor();
    // A flag of which only the key was said is for nobody yet.
    await page.getByText("No condition sets: off for everyone.").waitFor();
    expect(await page.title()).toBe("by-keys · Flagkeep");
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await page.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
    // What was kept of the list gives way to what is there now.
    await page.getByRole("row").nth(1).getByRole("link", { name: "by-keys" }).waitFor();
    await page.keyboard.press("j");
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-rowindex") === "2");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Release" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("new-checkout");
    await page.getByRole("option", { name: /^new-checkout/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "new-checkout" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a flag that SDKs cannot evaluate shows it, and the reason", async () => {
    const groups = [{ properties: [], rollout_percentage: 100 }];
    const steady = await make({ key: "steady", ensure_experience_continuity: true, filters: { groups } });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${steady.id}`);
    await page.getByText("SDKs cannot evaluate this flag locally").click();
    await page.getByText("Experience continuity: only the server knows").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.goto(`/console/flags/${created.id}`);
    await page.getByRole("heading", { level: 1, name: "new-checkout" }).waitFor();
    expect(await page.getByText("SDKs cannot evaluate this flag locally").count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the form for a flag names the allowed characters of a key, and the invalid ones", async () => {
    const { page, context, errors } = await open({ expectedStatus: [400] });
    await page.goto("/console/flags");
    await page.getByRole("button", { name: "New flag" }).click();
    await page.getByText("Used in code. Letters, digits, - and _.").waitFor();
    for (const key of ["a.b", "a/b"]) {
      await page.getByLabel("Key", { exact: true }).fill(key);
      const answer = page.waitForResponse((response) => response.request().method() === "POST");
      await page.keyboard.press("Enter");
      expect((await answer).status()).toBe(400);
      await page.getByText("Only letters, numbers, hyphens (-) & underscores (_) are allowed.").waitFor();
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a draft is reviewed and saved; two people on one flag see both changes", async () => {
    const flag = await make({
      key: "shared",
      filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
    });
    const { page, context, errors } = await open({ expectedStatus: [409] });
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).fill("40");
    await page.getByText("1 unsaved change", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").getByText("condition set 1: rollout 10 → 40%").waitFor();
    await page.getByRole("dialog").getByLabel("Reason (optional)").fill(hostile);
    await page.getByRole("button", { name: "Save changes" }).click();
    await until(
      async () => (await read(flag.id)).filters.groups[0]!.rollout_percentage === 40,
      "it is stored",
    );
    await page.getByText("1 unsaved change", { exact: true }).waitFor({ state: "detached" });

    await page.getByRole("tab", { name: "History" }).click();
    await page.getByRole("listitem").filter({ hasText: "rollout 10 → 40%" }).getByText(hostile).waitFor();
    await page.getByRole("tab", { name: "Release" }).click();
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).fill("50");
    // Left and come back: nothing typed is lost.
    await page.getByRole("link", { name: "Flags" }).first().click();
    await page.goBack();
    await page.getByText("1 unsaved change", { exact: true }).waitFor();
    await server.api(flagPath(flag.id), {
      method: "PATCH",
      body: { filters: { groups: [{ properties: [], rollout_percentage: 75 }] } },
    });
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("button", { name: "Save changes" }).click();
    const dialog = page.getByRole("dialog", { name: "This flag was changed by someone else" });
    await dialog.getByText("condition set 1: rollout 40 → 75%").waitFor();
    await dialog.getByText("condition set 1: rollout 40 → 50%").waitFor();
    expect((await axeFindings(page)).filter((text) => !text.includes("scrollable"))).toEqual([]);
    await dialog.getByRole("button", { name: "Apply mine on top" }).click();
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").getByText("condition set 1: rollout 75 → 50%").waitFor();
    await page.getByRole("button", { name: "Save changes" }).click();
    await until(
      async () => (await read(flag.id)).filters.groups[0]!.rollout_percentage === 50,
      "mine is on top",
    );
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a change that another user has to agree to is proposed; a change at a time is scheduled", async () => {
    const flag = await make({
      key: "agreed",
      filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
    });
    const { page, context, errors } = await open();
    const rejected: string[] = [];
    page.on("response", (response) => {
      if (response.status() === 403) rejected.push(response.url());
    });
    await page.goto(`/console/flags/${flag.id}?tab=settings`);
    await page.getByLabel("When (your local time)").fill("2099-01-02T03:04");
    await page.getByRole("button", { name: "Schedule", exact: true }).click();
    await page.getByText("2099").first().waitFor();
    await page.getByRole("button", { name: "Edit the change of 2 Jan 2099" }).click();
    expect(await page.getByLabel("When (your local time)").inputValue()).toBe("2099-01-02T03:04");
    expect(await page.getByLabel("Action", { exact: true }).inputValue()).toBe("off");
    await page.getByLabel("Action", { exact: true }).selectOption("on");
    await page.getByLabel("When (your local time)").fill("2098-05-06T07:08");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("listitem").filter({ hasText: "6 May 2098" }).getByText("Turn on").waitFor();
    await page.getByRole("button", { name: "Cancel scheduled change of 6 May 2098" }).click();
    await page.getByText("2098").waitFor({ state: "detached" });
    const approve = (approvals: string) =>
      server.api(`/api/projects/${server.initialized.project.id}/`, { method: "PATCH", body: { approvals } });
    expect((await approve("all")).status).toBe(200);
    try {
      await page.goto(`/console/flags/${flag.id}`);
      await page.getByRole("spinbutton", { name: "Rollout percentage" }).fill("60");
      await page.getByRole("button", { name: "Propose change" }).click();
      const review = page.getByRole("dialog", { name: "Propose change" });
      await review.getByText("Needs approval").waitFor();
      await review.getByLabel("Reason (optional)").fill("Requested by support.");
      await review.getByRole("button", { name: "Propose change" }).click();
      const proposal = page.getByRole("region", { name: "Proposed change" });
      await proposal.getByText("condition set 1: rollout 10 → 60%").waitFor();
      const agree = proposal.getByRole("button", { name: /^Approve/ });
      expect(await agree.getAttribute("aria-disabled")).toBe("true");
      expect((await read(flag.id)).filters.groups[0]!.rollout_percentage).toBe(10);

      // A switch is proposed, too; the list tells what waits.
      await page.goto("/console/flags?search=agreed");
      await page.getByText("1 change awaiting approval:").waitFor();
      await page.getByRole("switch", { name: "agreed" }).click();
      const dialog = page.getByRole("dialog", { name: "Propose change: agreed" });
      await dialog.getByLabel("Reason (optional)").fill("Too early");
      expect(await axeFindings(page)).toEqual([]);
      await page.keyboard.press("Enter");
      await page.getByText("2 changes awaiting approval:").waitFor();
      expect((await read(flag.id)).active).toBe(true);
      await page.getByRole("main").getByRole("link", { name: "agreed" }).first().click();
      const second = page.getByRole("region", { name: "Proposed change" }).filter({ hasText: "Too early" });
      await second.getByText("turned off").waitFor();
      await second.getByRole("button", { name: "Withdraw" }).click();
      await second.waitFor({ state: "detached" });

      // What another user approves names both.
      const bob = await server.api("/api/organizations/@current/members/", {
        method: "POST",
        body: { email: "agreeing@example.com", first_name: "Bob", level: 15 },
      });
      const { console_url: link } = (await bob.json()) as { console_url: string };
      const started = await fetch(`${server.url}/api/session/setup/`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
        body: JSON.stringify({ token: link.split("#")[1], password: "another few quiet words" }),
      });
      const other = await openSignedIn(browser, started.headers.get("set-cookie")!.split(";")[0]!, {
        url: server.url,
      });
      await other.page.goto(`/console/flags/${flag.id}`);
      await other.page.getByRole("button", { name: "Approve" }).click();
      await other.page.getByText("Change approved and applied").waitFor();
      await other.page.getByRole("tab", { name: "History" }).click();
      await other.page.getByText("proposed by Ann, approved by Bob").waitFor();
      expect(await other.page.getByText("performed rollback").count()).toBe(0);
      await other.context.close();
      expect([rejected, other.errors]).toEqual([[], []]);
    } finally {
      await approve("off");
    }
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a change is reverted from the history; a draft is tested on people next to the saved flag", async () => {
    const flag = await make({
      key: "tried",
      filters: { groups: [{ properties: [], rollout_percentage: 0 }] },
    });
    const everybody = { filters: { groups: [{ properties: [], rollout_percentage: 100 }] } };
    await server.api(flagPath(flag.id), { method: "PATCH", body: everybody });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}?tab=history`);
    await page.getByText("condition set 1: rollout 0 → 100%").waitFor();
    await page.getByRole("button", { name: "Restore this version" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Restore this version" }).click();
    await until(
      async () => (await read(flag.id)).filters.groups[0]!.rollout_percentage === 0,
      "it is reverted",
    );

    await page.getByRole("tab", { name: "Release" }).click();
    const counted: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/feature_flags/reach/")) counted.push(request.postData() ?? "");
    });
    await page.getByRole("button", { name: "Add condition", exact: true }).click();
    const property = page.getByRole("combobox", { name: "Property", exact: true });
    await property.focus();
    // What is still being written is not called wrong.
    expect(await page.getByText("The property is missing.").count()).toBe(0);
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).focus();
    await page.getByText("The property is missing.").waitFor();
    await page.getByRole("button", { name: "Remove condition" }).click();
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).fill("100");
    await page.getByRole("textbox", { name: "People" }).fill("somebody");
    await page.getByText("Condition set 1: matched", { exact: true }).waitFor();
    await page.getByText("Saved off").waitFor();
    await page.getByText("Draft on").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText("Draft on").waitFor({ state: "detached" });
    // The effect of an invalid draft is not asked for: the server would reject it.
    expect(counted.length).toBeGreaterThan(0);
    expect(counted.filter((body) => body.includes('"key":""'))).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("people with a flag are saved as a cohort, which shows its progress; its dashboard is one step away", async () => {
    await server.batch([{ event: "came", distinct_id: "kim" }]);
    await server.eventsWhenStored(1);
    const flag = await make({
      key: "kept",
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}?tab=evaluations`);
    await page.getByRole("link", { name: "Open its dashboard" }).click();
    // The flag's own page has such a heading, too.
    await page.waitForURL((url) => !url.pathname.includes("/flags/"));
    await page.getByRole("heading", { level: 1, name: /kept/ }).waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Actions" }).click();
    await page.getByRole("button", { name: "Save matching people as a cohort" }).click();
    await page.getByRole("heading", { level: 1, name: /^Users with feature flag kept/ }).waitFor();
    await page.getByRole("table", { name: "Members" }).getByText("kim").first().waitFor();
    await page.getByText("1 person", { exact: true }).first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("conditions name their cohort in the list, the review, the history and the trace", async () => {
    const cohorts = `/api/projects/${server.initialized.project.id}/cohorts/`;
    const cohort = async (name: string) => {
      const properties = [{ key: "country", type: "person", operator: "exact", value: [name] }];
      const filters = {
        properties: { type: "OR", values: [{ type: "AND", values: properties }] },
      };
      const created = await server.api(cohorts, { method: "POST", body: { name, filters } });
      return ((await created.json()) as { id: number }).id;
    };
    const inCohort = (value: number) => ({
      filters: {
        groups: [
          { properties: [{ key: "id", type: "cohort", operator: "in", value }], rollout_percentage: 50 },
        ],
      },
    });
    const flag = await make({ key: "by-country", ...inCohort(await cohort("People in France")) });
    const { page, context, errors } = await open();
    const said = 'People in "People in Germany"';
    await server.api(flagPath(flag.id), {
      method: "PATCH",
      body: inCohort(await cohort("People in Germany")),
    });
    await page.goto("/console/flags?search=by-country");
    await page.getByText(said).first().waitFor();
    await page.goto(`/console/flags/${flag.id}?tab=history`);
    await page
      .getByText(`condition set 1: People in "People in France" → ${said}`, { exact: true })
      .waitFor();
    await page.goto(`/console/flags/${flag.id}?ids=somebody`);
    await page.getByText(said).waitFor();
    expect(await page.getByText(/cohort \d+|performed rollback/).count()).toBe(0);
    await page.goto(`/console/flags/${flag.id}`);
    await chooseIn(page, "Cohort", "People in France");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page
      .getByRole("dialog")
      .getByText(`condition set 1: ${said} → People in "People in France"`)
      .waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("evaluations: SDKs and the last evaluation agree with the range and the events", async () => {
    const flag = await make({ key: "counted" });
    const called = (daysAgo: number, version: string) => ({
      event: "$feature_flag_called",
      distinct_id: "user-1",
      timestamp: new Date(Date.now() - daysAgo * 86_400_000).toISOString(),
      properties: {
        $feature_flag: "counted",
        $feature_flag_response: true,
        $lib: "posthog-node",
        $lib_version: version,
      },
    });
    await server.batch([called(0, "9.0.0"), called(2, "9.0.0"), called(40, "1.0.0")]);
    const where = "event = '$feature_flag_called' AND prop('$feature_flag') = 'counted'";
    await until(
      async () => (await server.query(`SELECT 1 AS n FROM events WHERE ${where}`)).length === 3,
      "the events are stored",
    );
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}?tab=evaluations`);
    await page.getByText("2 evaluations in 2 weeks.").waitFor();
    await page.getByRole("row", { name: /^posthog-node 9\.0\.0 2/ }).waitFor();
    expect(await page.getByText("1.0.0").count()).toBe(0);
    await page.getByText(/First evaluated: .*Last evaluated: (just now|\d+ seconds ago)/).waitFor();
    await page.getByRole("group", { name: "Range" }).getByText("90 days").click();
    await page.getByText("3 evaluations in 90 days.").waitFor();
    await page.getByRole("row", { name: /^posthog-node 1\.0\.0 1/ }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("an e-mail offers the person; the result names the condition and the bucket", async () => {
    const $set = { email: "kim@example.com", name: "Kim Lee" };
    await server.batch([{ event: "$identify", distinct_id: "user-kim", properties: { $set } }]);
    await until(
      async () =>
        (await server.query("SELECT 1 AS n FROM persons WHERE properties->>'name' = 'Kim Lee'")).length === 1,
      "the person is stored",
    );
    const flag = await make({
      key: "for-kim",
      filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    });
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByRole("textbox", { name: "People" }).fill("kim@example.com");
    await page
      .getByRole("list", { name: "Matching people" })
      .getByRole("button", { name: /Kim Lee|kim@example.com/ })
      .click();
    expect(await page.getByRole("textbox", { name: "People" }).inputValue()).toBe("user-kim");
    await page.getByText(/^Condition set 1: /).waitFor();
    await page.getByText(/^Bucket [\d.]+ \/ 100, rollout 50%: (included|excluded)$/).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("text of flags stays text", async () => {
    const { page, context, errors } = await open();
    await page.goto(`/console/flags/${created.id}`);
    await page.getByRole("heading", { level: 1, name: "new-checkout" }).waitFor();
    await page.getByText(hostile).first().waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.title()).toBe("new-checkout · Flagkeep");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a member sees what may not be done, switched off", async () => {
    await server.api("/api/organizations/@current/", {
      method: "PATCH",
      body: { feature_flags_access_level: 21 },
    });
    const answer = await server.api("/api/organizations/@current/members/", {
      method: "POST",
      body: { email: "bob@example.com", level: 1 },
    });
    expect(answer.status).toBe(201);
    const { console_url: link } = (await answer.json()) as { console_url: string };
    const started = await fetch(`${server.url}/api/session/setup/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
      body: JSON.stringify({ token: link.split("#")[1], password: "another few quiet words" }),
    });
    const memberCookie = started.headers.get("set-cookie")!.split(";")[0]!;
    const { page, context, errors } = await openSignedIn(browser, memberCookie, { url: server.url });
    await page.goto("/console/flags?search=new-check");
    const toggle = page.getByRole("switch", { name: "new-checkout" });
    await toggle.waitFor();
    expect(await toggle.getAttribute("aria-disabled")).toBe("true");
    expect(await toggle.getAttribute("title")).toBe("You may not edit this flag");
    await toggle.click({ force: true });
    await page.goto(`/console/flags/${created.id}`);
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).waitFor();
    expect(await page.getByRole("spinbutton", { name: "Rollout percentage" }).isDisabled()).toBe(true);
    expect((await read(created.id)).active).toBe(true);
    await context.close();
    expect(errors).toEqual([]);
  });

  for (const theme of themes) {
    for (const width of widths) {
      test(`axe finds nothing, and nothing is wider than the screen, ${theme}, ${width}`, async () => {
        const { page, context, errors } = await open({ theme, width, expectedStatus: [404] });
        const look = async (path: string, ready: string) => {
          await page.goto(path);
          await page.getByText(ready).first().waitFor();
          expect(await axeFindings(page)).toEqual([]);
          expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
          expect(await page.locator("h1").count()).toBe(1);
        };
        await look("/console/flags", "service-229");
        await look("/console/flags?new=1", "Used in code");
        await look("/console/flags?search=nothing-like-that", "No flag matches.");
        await look(`/console/flags/${created.id}`, "Affected people");
        await look(`/console/flags/${created.id}?tab=history`, "Ann");
        await look(`/console/flags/${created.id}?tab=settings`, "No roles have access yet");
        await look(`/console/flags/${created.id}?tab=code`, "flagkeep_flags");
        await look("/console/flags/999999", "Not found");
        await context.close();
        expect(errors).toEqual([]);
      });
    }
  }
});
