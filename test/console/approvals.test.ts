/** Changes that need approval: of cohorts that protected flags use, and of several flags at once. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("a cohort that a critical flag uses through another flag", () => {
  const at = ownersBrowser();
  const project = (path: string) => `/api/projects/${at.server.initialized.project.id}/${path}`;
  const send = async (method: string, path: string, body: object) => {
    const answer = await at.server.api(project(path), { method, body });
    expect([path, answer.ok]).toEqual([path, true]);
    return (await answer.json()) as { id: number };
  };
  const byPlan = (value: string) => ({
    properties: {
      type: "OR",
      values: [{ type: "AND", values: [{ key: "plan", type: "person", operator: "exact", value }] }],
    },
  });
  const used = (property: object) => ({ groups: [{ properties: [property], rollout_percentage: 100 }] });
  const stored = async (id: number) =>
    JSON.stringify(await (await at.server.api(project(`cohorts/${id}/`))).json());
  async function prepared(name: string, approvals: string, cohort: object) {
    await send("PATCH", "", { approvals: "off" });
    const { id } = await send("POST", "cohorts/", { name, ...cohort });
    const middle = await send("POST", "feature_flags/", {
      key: `${name}-middle`,
      filters: used({ key: "id", type: "cohort", value: id }),
    });
    await send("POST", "feature_flags/", {
      key: `${name}-careful`,
      tags: ["critical"],
      filters: used({
        key: String(middle.id),
        type: "flag",
        operator: "flag_evaluates_to",
        value: true,
      }),
    });
    await send("PATCH", "", { approvals });
    return id;
  }

  test("is changed after a confirmation that names the flag", async () => {
    const id = await prepared("asked", "off", { filters: byPlan("pro") });
    const { page, context, errors } = await at.open();
    await page.goto(`/console/cohorts/${id}`);
    const save = page.getByRole("button", { name: "Save cohort" });
    await page.getByLabel("Description").fill("Those who pay");
    await save.click();
    await page.getByText("asked is saved.").waitFor();
    const value = page.getByLabel("Value").first();
    await value.fill("max");
    await value.press("Enter");
    await save.click();
    const dialog = page.getByRole("dialog", { name: "asked is used by critical flags" });
    await dialog.getByText("asked-careful").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await stored(id)).not.toContain("max");
    await save.click();
    await dialog.getByRole("button", { name: "Save cohort" }).click();
    await until(async () => (await stored(id)).includes("max"), "the cohort is changed");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("is changed when another user approves; lists, the diff and the flags are shown", async () => {
    const id = await prepared("agreed", "critical", { filters: byPlan("pro") });
    const list = await prepared("listed", "critical", { is_static: true });
    const { page, context, errors } = await at.open(403, 400);
    const propose = async (name: string, note: string) => {
      const dialog = page.getByRole("dialog", { name: `Propose change: ${name}` });
      await dialog.getByText("Needs approval").waitFor();
      await dialog.getByLabel("Reason (optional)").fill(note);
      await dialog.getByRole("button", { name: "Propose change" }).click();
    };
    await page.goto(`/console/cohorts/${id}`);
    const value = page.getByLabel("Value").first();
    await value.fill("max");
    await value.press("Enter");
    await page.getByRole("button", { name: "Save cohort" }).click();
    await propose("agreed", "Requested by sales");
    const proposal = page.getByRole("region", { name: "Proposed change" });
    await proposal.getByText("Requested by sales").waitFor();
    await proposal.getByText(/^conditions plan = pro → plan = .*max$/).waitFor();
    await proposal.getByText("Affects protected flags: agreed-careful").waitFor();
    expect(await proposal.getByRole("button", { name: /^Approve/ }).getAttribute("aria-disabled")).toBe(
      "true",
    );
    expect(await axeFindings(page)).toEqual([]);

    // A list of members, uploaded as a file, is proposed, too; a deletion that is impossible is not.
    await page.goto(`/console/cohorts/${list}?tab=conditions`);
    const ids = Buffer.from("distinct_id\nkim\nlee\n");
    await page.getByLabel("File of distinct IDs").setInputFiles({
      name: "ids.csv",
      mimeType: "text/csv",
      buffer: ids,
    });
    await page.getByRole("button", { name: "Save cohort" }).click();
    await propose("listed", "Two more");
    await page.getByText("adds members: 3 lines").waitFor();
    await page.goto(`/console/cohorts/${id}`);
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await propose("agreed", "Too late");
    await page.getByText("Please remove the cohort from these feature flags before deleting it").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();

    await page.goto("/console/cohorts");
    await page.getByText("2 changes awaiting approval:").waitFor();
    await page.getByText("2 changes awaiting approval:").getByRole("link", { name: "listed" }).click();
    await page.getByRole("button", { name: "Withdraw" }).click();
    await page.getByText("Request closed.").waitFor();
    await page.getByRole("region", { name: "Proposed change" }).waitFor({ state: "detached" });
    await context.close();

    const bob = await at.server.api("/api/organizations/@current/members/", {
      method: "POST",
      body: { email: "agreeing@example.com", first_name: "Bob", level: 15 },
    });
    const { console_url: link } = (await bob.json()) as { console_url: string };
    const started = await fetch(`${at.server.url}/api/session/setup/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
      body: JSON.stringify({ token: link.split("#")[1], password: "another few quiet words" }),
    });
    const second = await at.open();
    const [name, session] = started.headers.get("set-cookie")!.split(";")[0]!.split("=") as [string, string];
    await second.context.addCookies([
      { name, value: session, url: at.server.url, httpOnly: true, sameSite: "Strict" },
    ]);
    await second.page.goto(`/console/cohorts/${id}`);
    await second.page.getByRole("button", { name: "Approve" }).click();
    await second.page.getByText("Change approved and applied").waitFor();
    await second.page.getByRole("region", { name: "Proposed change" }).waitFor({ state: "detached" });
    expect(await stored(id)).toContain("max");
    await second.page.getByRole("main").getByText("max").first().waitFor();
    await second.context.close();
    expect([errors, second.errors]).toEqual([[], []]);
  });
});

describe.skipIf(chromiumPath === undefined)("an earlier version of a flag", () => {
  const at = ownersBrowser();

  test.each(["critical", "all"])(
    "is proposed where approvals are %s, also by a flag's dependents",
    async (approvals) => {
      const project = `/api/projects/${at.server.initialized.project.id}/`;
      const send = async (method: string, path: string, body: object) => {
        const answer = await at.server.api(project + path, { method, body });
        expect([path, answer.ok]).toEqual([path, true]);
        return (await answer.json()) as { id: number };
      };
      await send("PATCH", "", { approvals: "off" });
      const { id } = await send("POST", "feature_flags/", {
        key: `earlier-${approvals}`,
        rollout_percentage: 10,
      });
      await send("PATCH", `feature_flags/${id}/`, { rollout_percentage: 60 });
      await send("POST", "feature_flags/", {
        key: `needs-${approvals}`,
        tags: ["critical"],
        filters: {
          groups: [
            {
              properties: [{ key: String(id), type: "flag", operator: "flag_evaluates_to", value: true }],
              rollout_percentage: 100,
            },
          ],
        },
      });
      await send("PATCH", "", { approvals });
      // Of a flag that only its dependents protect, the server says so.
      const { page, context, errors } = await at.open(403);
      await page.goto(`/console/flags/${id}?tab=history`);
      await page.getByRole("button", { name: "Restore this version" }).first().click();
      if (approvals === "critical")
        await page.getByRole("dialog").getByRole("button", { name: "Restore this version" }).click();
      const dialog = page.getByRole("dialog", { name: `Propose change: earlier-${approvals}` });
      await dialog.getByLabel("Reason (optional)").fill("Back to 10 %");
      expect(await axeFindings(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Propose change" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByRole("tab", { name: "Release" }).click();
      const proposal = page.getByRole("region", { name: "Proposed change" });
      await proposal.getByText("Back to 10 %").waitFor();
      await proposal.getByText(/rollout 60 → 10%/).waitFor();
      const answer = await at.server.api(`${project}feature_flags/${id}/`);
      expect(await answer.json()).toMatchObject({ rollout_percentage: 60 });
      await context.close();
      expect(errors).toEqual([]);
    },
  );
});

describe.skipIf(chromiumPath === undefined)("several flags together", () => {
  const at = ownersBrowser();

  test("those that need approval are proposed with one reason; the others change", async () => {
    const project = `/api/projects/${at.server.initialized.project.id}/`;
    for (const key of ["one", "two", "free"]) {
      const body = { key, rollout_percentage: 10, tags: key === "free" ? [] : ["critical"] };
      const created = await at.server.api(`${project}feature_flags/`, { method: "POST", body });
      expect(created.status).toBe(201);
    }
    await at.server.api(project, { method: "PATCH", body: { approvals: "critical" } });
    const { page, context, errors } = await at.open(403);
    await page.goto("/console/flags");
    for (const key of ["one", "two", "free"]) await page.getByLabel(`Select ${key}`).check();
    await page.getByRole("button", { name: "Turn off" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Turn off" }).click();
    const dialog = page.getByRole("dialog", { name: "Propose 2 changes" });
    await dialog
      .getByText("Need approval: one, two.")
      .or(dialog.getByText("Need approval: two, one."))
      .waitFor();
    await dialog.getByLabel("Reason (optional)").fill("End of the sale");
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Propose change" }).click();
    await page.getByText("2 changes awaiting approval:").waitFor();
    const list = async (path: string) =>
      ((await (await at.server.api(project + path)).json()) as { results: Record<string, unknown>[] })
        .results;
    const requests = await list("change_requests/");
    expect(requests.map(({ flag_key: key, changes, note }) => [key, changes, note]).sort()).toEqual(
      ["one", "two"].map((key) => [key, { active: false }, "End of the sale"]),
    );
    const flags = await list("feature_flags/");
    expect(
      flags
        .filter(({ active }) => active)
        .map(({ key }) => key)
        .sort(),
    ).toEqual(["one", "two"]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
