/** The log of changes: who is named where no person acted. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { flagkeep, osUser, until } from "../support/server.ts";
import { browser, useBrowser } from "../support/use-browser.ts";
import { server, useServer } from "../support/use-server.ts";
import { axeFindings, chooseFilter, openSignedIn, ownerCookie, password } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("the log of changes", () => {
  useBrowser();
  useServer();

  test("names the command line with its user, and the origin of a failed sign-in", async () => {
    const cookie = await ownerCookie(server);
    const created = await flagkeep(["flags", "create", "new-checkout", "--data-dir", server.dataDir]);
    expect(created).toMatchObject({ stderr: "", code: 0 });
    const claim = { email: server.initialized.user.email, password: "something else entirely" };
    await server.post("/api/session/", claim, { "X-Flagkeep-Console": "1" });

    const { page, context, errors } = await openSignedIn(browser, cookie, { url: server.url });
    const line = (text: string) => page.getByRole("listitem").filter({ hasText: text }).first();
    await page.goto("/console/activity");
    await line(`the command line (user ${osUser}) created flag new-checkout`).waitFor();
    await flagkeep(["flags", "delete", "new-checkout", "--data-dir", server.dataDir]);
    await page.reload();
    await page.getByRole("button", { name: "Restore: new-checkout" }).click();
    await page.getByText("new-checkout restored").waitFor();
    await line("Ann restored flag new-checkout").waitFor();
    expect(await page.getByRole("button", { name: "Restore: new-checkout" }).count()).toBe(0);
    await page.goto("/console/activity?where=organization");
    await line(`a client at 127.0.0.1 failed to sign in as person ${claim.email}`).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("describes actions in sentences, equal ones once, with values side by side, and of one object", async () => {
    const flags = `/api/projects/${server.initialized.project.id}/feature_flags/`;
    const write = async (path: string, method: string, body: object) => {
      const answer = await server.api(path, { method, body });
      expect(answer.ok).toBe(true);
      return ((await answer.json()) as { id: number }).id;
    };
    const groups = (share: number) => ({
      filters: { groups: [{ properties: [], rollout_percentage: share }] },
    });
    for (let number = 0; number < 5; number++) await write(flags, "POST", { key: `many-${number}` });
    const id = await write(flags, "POST", { key: "followed", ...groups(10) });
    await write(`${flags}${id}/`, "PATCH", { active: false });
    await write(`${flags}${id}/`, "PATCH", groups(50));
    const email = server.initialized.user.email;
    const signed = await fetch(`${server.url}/api/session/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Flagkeep-Console": "1" },
      body: JSON.stringify({ email, password }),
    });
    const cookie = signed.headers.get("set-cookie")!.split(";")[0]!;
    const { page, context, errors } = await openSignedIn(browser, cookie, { url: server.url });
    await page.goto("/console/activity");
    const line = (text: string | RegExp) => page.getByRole("listitem").filter({ hasText: text }).first();
    await line("turned off followed").waitFor();
    const many = line(/created 6 flags/);
    await many.getByText("Show 6 changes").click();
    await many.getByRole("link", { name: "many-3" }).waitFor();

    const changed = line("condition set 1: rollout 10 → 50%");
    await changed.getByText("Before and after").click();
    await changed.locator("del").getByText("Condition set 1: 10%").waitFor();
    await changed.locator("ins").getByText("Condition set 1: 50%").waitFor();
    expect(await axeFindings(page)).toEqual([]);

    await chooseFilter(page, "Object", "flag followed");
    await page.waitForURL((url) => url.searchParams.get("object") === `FeatureFlag:${id}`);
    const isFiltered = async () => (await page.locator("li.change").count()) === 3;
    await until(isFiltered, "only the flag's changes are listed");
    await line("created flag followed").waitFor();
    await page.reload();
    await line("turned off followed").waitFor();
    await until(isFiltered, "they still are");
    await context.close();
    expect(errors).toEqual([]);
  });
});
