/** Changes of a flag in the browser: review, two people on one flag, proposals, history, cohorts, explanation. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { createFlag, flagPath, hostile, readFlag } from "./flag-pages.ts";
import { axeFindings, chooseIn, openConsole, openSignedIn, useConsole } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("changes of flags", () => {
  useConsole();

  test("a draft is reviewed and saved; two people on one flag see both changes", async () => {
    const flag = await createFlag({
      key: "shared",
      filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
    });
    const { page, context, errors } = await openConsole({ expectedStatus: [409] });
    await page.goto(`/console/flags/${flag.id}`);
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).fill("40");
    await page.getByText("1 unsaved change", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").getByText("condition set 1: rollout 10 → 40%").waitFor();
    await page.getByRole("dialog").getByLabel("Reason (optional)").fill(hostile);
    await page.getByRole("button", { name: "Save changes" }).click();
    await until(
      async () => (await readFlag(flag.id)).filters.groups[0]!.rollout_percentage === 40,
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
    await page.reload();
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
      async () => (await readFlag(flag.id)).filters.groups[0]!.rollout_percentage === 50,
      "mine is on top",
    );
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a change that another user has to agree to is proposed; a change at a time is scheduled", async () => {
    const flag = await createFlag({
      key: "agreed",
      filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
    });
    const { page, context, errors } = await openConsole();
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
      expect((await readFlag(flag.id)).filters.groups[0]!.rollout_percentage).toBe(10);

      // Turning a flag off also needs approval; the list shows pending changes.
      await page.goto("/console/flags?search=agreed");
      await page.getByText("1 change awaiting approval:").waitFor();
      await page.getByRole("switch", { name: "agreed" }).click();
      const dialog = page.getByRole("dialog", { name: "Propose change: agreed" });
      await dialog.getByLabel("Reason (optional)").fill("Too early");
      expect(await axeFindings(page)).toEqual([]);
      await page.keyboard.press("Enter");
      await page.getByText("2 changes awaiting approval:").waitFor();
      expect((await readFlag(flag.id)).active).toBe(true);
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
    const flag = await createFlag({
      key: "tried",
      filters: { groups: [{ properties: [], rollout_percentage: 0 }] },
    });
    const everybody = { filters: { groups: [{ properties: [], rollout_percentage: 100 }] } };
    await server.api(flagPath(flag.id), { method: "PATCH", body: everybody });
    const { page, context, errors } = await openConsole();
    await page.goto(`/console/flags/${flag.id}?tab=history`);
    await page.getByText("condition set 1: rollout 0 → 100%").waitFor();
    await page.getByRole("button", { name: "Restore this version" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Restore this version" }).click();
    await until(
      async () => (await readFlag(flag.id)).filters.groups[0]!.rollout_percentage === 0,
      "it is reverted",
    );

    await page.getByRole("tab", { name: "Release" }).click();
    const counted: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/feature_flags/reach/")) counted.push(request.postData() ?? "");
    });
    await page.getByRole("button", { name: "Add condition", exact: true }).click();
    const property = page.getByRole("textbox", { name: "Property", exact: true });
    await property.focus();
    // What is still being written is not called wrong.
    expect(await page.getByText("The property is missing.").count()).toBe(0);
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).focus();
    await page.getByText("The property is missing.").waitFor();
    await page.getByRole("button", { name: "Remove condition" }).click();
    await page.getByRole("spinbutton", { name: "Rollout percentage" }).fill("100");
    await page.getByRole("textbox", { name: "People" }).fill("user-1");
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
    const flag = await createFlag({
      key: "kept",
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
    const { page, context, errors } = await openConsole();
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
    const flag = await createFlag({ key: "by-country", ...inCohort(await cohort("People in France")) });
    const { page, context, errors } = await openConsole();
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
    await page.goto(`/console/flags/${flag.id}?ids=user-1`);
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
    const flag = await createFlag({ key: "counted" });
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
    const { page, context, errors } = await openConsole();
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
    const flag = await createFlag({
      key: "for-kim",
      filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    });
    const { page, context, errors } = await openConsole();
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
});
