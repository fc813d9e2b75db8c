/** What is sent as a file, and keys of others: imports, fixed cohorts, the keys of a member. */

import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { server } from "../support/use-server.ts";
import { axeFindings, openConsole, password, useConsole } from "./support.ts";

/** Opens the import dialog and selects a file with these lines. */
async function startImport(page: Page, name: string, lines: readonly string[]): Promise<Locator> {
  await page.goto("/console/instance?tab=imports");
  await page.getByRole("button", { name: "Import a file" }).click();
  const dialog = page.getByRole("dialog", { name: "Import a file" });
  await dialog
    .getByLabel("File", { exact: true })
    .setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(lines.join("\n")) });
  return dialog;
}

describe.skipIf(chromiumPath === undefined)("uploads", () => {
  const open = () => openConsole();

  useConsole();
  beforeAll(async () => {
    await server.batch([
      { event: "$set", distinct_id: "user-1", properties: { $set: { plan: "pro" } } },
      { event: "$set", distinct_id: "-user,2", properties: { $set: { plan: "free" } } },
    ]);
    await server.eventsWhenStored(2);
  });

  test("a file of the past is checked, then loaded; rejected records are read", async () => {
    const lines = Array.from({ length: 50 }, (_, index) =>
      JSON.stringify({
        event: "old",
        distinct_id: `user-${index}`,
        timestamp: index === 7 ? "never" : "2025-01-01T00:00:00Z",
      }),
    );
    const { page, context, errors } = await open();
    const dialog = await startImport(page, "old.ndjson", lines);
    const currentStep = dialog.getByRole("list", { name: "Steps of the import" }).locator("[aria-current]");
    expect(await currentStep.textContent()).toBe("2Columns");
    expect(await dialog.getByLabel("File", { exact: true }).isVisible()).toBe(false);
    await dialog.getByRole("button", { name: "Back" }).click();
    expect(await currentStep.textContent()).toBe("1File");
    expect(await dialog.getByLabel("File", { exact: true }).inputValue()).toEndWith("old.ndjson");
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Next" }).click();
    expect(await dialog.getByLabel("Dry run").isChecked()).toBe(true);
    await dialog.getByRole("button", { name: "Upload" }).click();
    await dialog.getByText("Summary of the dry run: nothing was loaded").waitFor();
    await dialog.getByText("ignored_invalid_timestamp: 1").waitFor();
    expect(await currentStep.textContent()).toBe("3Check result");
    expect(await axeFindings(page)).toEqual([]);
    // A file that was checked stays in the list, whether or not it is loaded from here.
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Load it" }).click();
    await page.getByText("50 records · 1 rejected").waitFor();
    await until(
      async () => (await server.query("SELECT count(*) AS n FROM events WHERE event = 'old'"))[0]?.n === 49,
      "the events are loaded",
    );
    await page.getByText("Summary", { exact: true }).click();
    const figures = page.locator("dl.properties");
    await figures.getByText("Accepted").waitFor();
    expect(await figures.textContent()).toContain("49");
    expect(await axeFindings(page)).toEqual([]);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Rejected records" }).click(),
    ]);
    expect(file.suggestedFilename()).toBe("old.ndjson.rejected.ndjson");
    expect(readFileSync(await file.path(), "utf8")).toContain('"line":8');
    await page.getByRole("button", { name: "Remove old.ndjson" }).click();
    await page.getByText("Nothing was imported").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a table is previewed, its columns are mapped, and rejected rows are shown with reasons", async () => {
    const rows = [
      "who;what;at;note",
      ...Array.from({ length: 30 }, (_, row) => `user-${row};click;2025-02-01T00:00:00Z;"a;b"`),
    ];
    rows[3] = "user-2;click;never;x";
    const { page, context, errors } = await open();
    const dialog = await startImport(page, "clicks.csv", rows);
    await dialog.getByText("Preview: first 20 rows").waitFor();
    const table = dialog.getByRole("region", { name: "Preview" });
    expect(await table.getByRole("columnheader").allTextContents()).toEqual(["who", "what", "at", "note"]);
    expect(await table.getByRole("row").count()).toBe(21);
    await table.getByRole("cell", { name: "a;b" }).first().waitFor();
    // A wrong mapping: the check reports it, and going back changes it.
    const fill = (field: string, source: string) =>
      dialog.getByRole("combobox", { name: field, exact: true }).fill(source);
    await fill("event", "'clicked'");
    await fill("distinct_id", "user_id|who");
    await fill("timestamp", "note");
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Upload" }).click();
    await dialog
      .getByText(/invalid_timestamp/)
      .first()
      .waitFor();
    await dialog.getByRole("button", { name: "Back" }).click();
    await fill("event", "what");
    await fill("timestamp", "at");
    await dialog.getByRole("button", { name: "Add field" }).click();
    await fill("Field or property", "remark");
    await fill("Column", "note");
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Upload" }).click();
    await dialog.getByText("Summary of the dry run: nothing was loaded").waitFor();
    await dialog.getByRole("button", { name: "Load it" }).click();
    await until(
      async () => (await server.query("SELECT count(*) AS n FROM events WHERE event = 'click'"))[0]?.n === 29,
      "the events are loaded",
    );
    const remarks = "SELECT DISTINCT properties->>'remark' AS remark FROM events WHERE event = 'click'";
    expect(await server.query(remarks)).toEqual([{ remark: "a;b" }]);
    // The upload with the wrong mapping was deleted.
    expect(await page.getByText("clicks.csv", { exact: true }).count()).toBe(1);
    await page.getByText("Rejected rows").click();
    await page
      .getByRole("region", { name: "Rejected rows: clicks.csv" })
      .getByText("timestamp")
      .first()
      .waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove clicks.csv" }).click();
    await page.getByText("Nothing was imported").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a file whose check failed is not loaded: it goes back to its columns, or is removed", async () => {
    const { page, context, errors } = await open();
    const dialog = await startImport(page, "unknown.csv", ["when,who,what", "2025-01-01,user-1,old"]);
    await dialog.getByRole("button", { name: "Upload" }).click();
    await dialog.getByText("unknown.csv was not recognized").waitFor();
    expect(await dialog.getByRole("button", { name: "Load it" }).isDisabled()).toBe(true);
    await dialog.getByRole("button", { name: "Close" }).click();
    const line = page.getByRole("listitem").filter({ hasText: "unknown.csv" });
    await line.getByText("failed").waitFor();
    expect(await line.getByRole("button").allTextContents()).toEqual([""]);
    await line.getByRole("button", { name: "Remove unknown.csv" }).click();
    await line.waitFor({ state: "detached" });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a static cohort is created from a file and from typed ids", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/cohorts/new");
    await page.getByLabel("Name").fill("Friends");
    await page.getByLabel("Static").check();
    await page.getByLabel("File of distinct IDs").setInputFiles({
      name: "ids.csv",
      mimeType: "text/csv",
      buffer: Buffer.from('note,distinct_id\nyes,"-user,2"\nno,user-3\n'),
    });
    await page.getByLabel("Distinct IDs", { exact: true }).fill("user-1");
    await page.getByRole("button", { name: "Save cohort" }).click();
    await page.getByRole("heading", { level: 1, name: "Friends" }).waitFor();
    const members = page.getByRole("table", { name: "Members" });
    await members.getByText("user-1").first().waitFor();
    await members.getByText("-user,2").first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("keys of a member are seen and revoked", async () => {
    const { page, context, errors } = await open();
    const created = await server.api("/api/personal_api_keys/", {
      method: "POST",
      body: { label: "laptop", scopes: ["*"] },
    });
    const { value: key } = (await created.json()) as { value: string };
    await page.goto("/console/settings?tab=team");
    await page.getByRole("button", { name: "Keys" }).first().click();
    const dialog = page.getByRole("dialog", { name: /^Personal keys of/ });
    await dialog.getByText("laptop").waitFor();
    await dialog.getByRole("listitem").filter({ hasText: "laptop" }).getByRole("button").click();
    const question = page.getByRole("dialog", { name: "Revoke" });
    await question.getByText("Requests with “laptop” are rejected from now on.").waitFor();
    await question.getByRole("button", { name: "Revoke" }).click();
    await dialog.getByText("laptop").waitFor({ state: "detached" });
    const answer = await server.api("/api/users/@me/", { key });
    expect(answer.status).toBe(401);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a project is archived and opened again", async () => {
    const { page, context, errors } = await openConsole({ expectedStatus: [403, 404] });
    await page.goto("/console/settings");
    await page.getByRole("button", { name: "New project" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Second");
    await page.getByRole("button", { name: "Create project" }).click();
    await page.getByRole("button", { name: "Project: Second", exact: true }).waitFor();
    await page.getByRole("button", { name: "Archive project" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Archive project" }).click();
    const asks = page.getByRole("dialog", { name: "Confirm your password" });
    await asks.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Open again Second" }).click();
    await page.getByText("Second is open again.").waitFor();
    await page.getByRole("button", { name: /^Project: / }).click();
    await page.getByRole("option", { name: "Second" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });
});
